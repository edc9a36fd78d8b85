WITH fogline_numbers AS (
  SELECT CASE WHEN typeof(`age`) IN ('integer', 'real') THEN CAST(`age` AS REAL) END AS x0, CASE WHEN typeof(`stay`) IN ('integer', 'real') THEN CAST(`stay` AS REAL) END AS x1, `person_id` AS who
  FROM `clinic`.`visits`
), fogline_box AS (
  SELECT CASE WHEN x0 >= CAST(0 AS REAL) AND x0 <= CAST(125 AS REAL) THEN x0 ELSE CAST(0 AS REAL) END AS y0, CASE WHEN x1 >= (CAST(-3602879701896397 AS REAL) / CAST(36028797018963968 AS REAL)) AND x1 <= CAST(60 AS REAL) THEN x1 ELSE (CAST(-3602879701896397 AS REAL) / CAST(36028797018963968 AS REAL)) END AS y1, who
  FROM fogline_numbers
  WHERE x0 >= CAST(0 AS REAL) AND x0 <= CAST(125 AS REAL) AND x1 >= (CAST(-3602879701896397 AS REAL) / CAST(36028797018963968 AS REAL)) AND x1 <= CAST(60 AS REAL) AND who IS NOT NULL
), fogline_places AS (
  SELECT CAST(CAST((y0 - CAST(0 AS REAL)) / CAST(1 AS REAL) + (CAST(1 AS REAL) / CAST(2 AS REAL)) AS INTEGER) AS REAL) AS p0, CAST(CAST((y1 - (CAST(-3602879701896397 AS REAL) / CAST(36028797018963968 AS REAL))) / (CAST(8458323050155213 AS REAL) / CAST(36028797018963968 AS REAL)) + CAST(0 AS REAL) AS INTEGER) AS REAL) AS p1, who
  FROM fogline_box
), fogline_cells AS (
  SELECT (CAST(CASE WHEN p0 > CAST(125 AS REAL) THEN CAST(125 AS REAL) ELSE p0 END AS INTEGER)) * 256 + CAST(CASE WHEN p1 > CAST(255 AS REAL) THEN CAST(255 AS REAL) ELSE p1 END AS INTEGER) AS cell, who
  FROM fogline_places
), fogline_twins AS (
  SELECT who, cell, ROW_NUMBER() OVER (PARTITION BY who, cell ORDER BY cell) AS twin
  FROM fogline_cells
), fogline_order AS (
  SELECT who, cell, twin, random() AS lot
  FROM fogline_twins
), fogline_ranked AS (
  SELECT cell, ROW_NUMBER() OVER (PARTITION BY who ORDER BY lot, cell, twin) AS place
  FROM fogline_order
), fogline_counts AS (
  SELECT cell, COUNT(*) AS records
  FROM fogline_ranked
  WHERE place <= 2
  GROUP BY cell
), fogline_answer AS (
  SELECT cell, records
  FROM fogline_counts
  UNION ALL
  SELECT -1 AS cell, 0 AS records
)
SELECT cell, records, CAST(SUM(records) OVER () AS INTEGER) AS total, 'fogline-counts-1 sqlite d3b5c39b3d09d04b d4c816ab7e1be623' AS grid
FROM fogline_answer
