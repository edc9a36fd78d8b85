WITH fogline_numbers AS (
  SELECT CAST(`age` AS FLOAT64) AS x0, CAST(`stay` AS FLOAT64) AS x1, `person_id` AS who
  FROM `clinic`.`visits`
), fogline_box AS (
  SELECT CASE WHEN x0 >= CAST(0 AS FLOAT64) AND x0 <= CAST(125 AS FLOAT64) THEN x0 ELSE CAST(0 AS FLOAT64) END AS y0, CASE WHEN x1 >= (CAST(-3602879701896397 AS FLOAT64) / CAST(36028797018963968 AS FLOAT64)) AND x1 <= CAST(60 AS FLOAT64) THEN x1 ELSE (CAST(-3602879701896397 AS FLOAT64) / CAST(36028797018963968 AS FLOAT64)) END AS y1, who
  FROM fogline_numbers
  WHERE x0 >= CAST(0 AS FLOAT64) AND x0 <= CAST(125 AS FLOAT64) AND x1 >= (CAST(-3602879701896397 AS FLOAT64) / CAST(36028797018963968 AS FLOAT64)) AND x1 <= CAST(60 AS FLOAT64) AND who IS NOT NULL
), fogline_places AS (
  SELECT FLOOR((y0 - CAST(0 AS FLOAT64)) / CAST(1 AS FLOAT64) + (CAST(1 AS FLOAT64) / CAST(2 AS FLOAT64))) AS p0, FLOOR((y1 - (CAST(-3602879701896397 AS FLOAT64) / CAST(36028797018963968 AS FLOAT64))) / (CAST(8458323050155213 AS FLOAT64) / CAST(36028797018963968 AS FLOAT64)) + CAST(0 AS FLOAT64)) AS p1, who
  FROM fogline_box
), fogline_cells AS (
  SELECT (CAST(CASE WHEN p0 > CAST(125 AS FLOAT64) THEN CAST(125 AS FLOAT64) ELSE p0 END AS INT64)) * 256 + CAST(CASE WHEN p1 > CAST(255 AS FLOAT64) THEN CAST(255 AS FLOAT64) ELSE p1 END AS INT64) AS cell, who
  FROM fogline_places
), fogline_twins AS (
  SELECT who, cell, ROW_NUMBER() OVER (PARTITION BY who, cell ORDER BY cell) AS twin
  FROM fogline_cells
), fogline_order AS (
  SELECT who, cell, twin, TO_HEX(SHA256('0123456789abcdef' || '|' || CAST(who AS STRING) || '|' || CAST(cell AS STRING) || '|' || CAST(twin AS STRING))) AS lot
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
SELECT cell, records, CAST(SUM(records) OVER () AS INT64) AS total, 'fogline-counts-1 bigquery d3b5c39b3d09d04b d4c816ab7e1be623' AS grid
FROM fogline_answer
