WITH fogline_numbers AS (
  SELECT CAST(age AS DOUBLE) AS x0, CAST(stay AS DOUBLE) AS x1, person_id AS who
  FROM clinic.visits
), fogline_box AS (
  SELECT CASE WHEN x0 >= CAST(0 AS DOUBLE) AND x0 <= CAST(125 AS DOUBLE) THEN x0 ELSE CAST(0 AS DOUBLE) END AS y0, CASE WHEN x1 >= (CAST(-3602879701896397 AS DOUBLE) / CAST(36028797018963968 AS DOUBLE)) AND x1 <= CAST(60 AS DOUBLE) THEN x1 ELSE (CAST(-3602879701896397 AS DOUBLE) / CAST(36028797018963968 AS DOUBLE)) END AS y1, who
  FROM fogline_numbers
  WHERE x0 >= CAST(0 AS DOUBLE) AND x0 <= CAST(125 AS DOUBLE) AND x1 >= (CAST(-3602879701896397 AS DOUBLE) / CAST(36028797018963968 AS DOUBLE)) AND x1 <= CAST(60 AS DOUBLE) AND who IS NOT NULL
), fogline_places AS (
  SELECT FLOOR((y0 - CAST(0 AS DOUBLE)) / CAST(1 AS DOUBLE) + (CAST(1 AS DOUBLE) / CAST(2 AS DOUBLE))) AS p0, FLOOR((y1 - (CAST(-3602879701896397 AS DOUBLE) / CAST(36028797018963968 AS DOUBLE))) / (CAST(8458323050155213 AS DOUBLE) / CAST(36028797018963968 AS DOUBLE)) + CAST(0 AS DOUBLE)) AS p1, who
  FROM fogline_box
), fogline_cells AS (
  SELECT (CAST(CASE WHEN p0 > CAST(125 AS DOUBLE) THEN CAST(125 AS DOUBLE) ELSE p0 END AS BIGINT)) * 256 + CAST(CASE WHEN p1 > CAST(255 AS DOUBLE) THEN CAST(255 AS DOUBLE) ELSE p1 END AS BIGINT) AS cell, who
  FROM fogline_places
), fogline_twins AS (
  SELECT who, cell, ROW_NUMBER() OVER (PARTITION BY who, cell ORDER BY cell) AS twin
  FROM fogline_cells
), fogline_order AS (
  SELECT who, cell, twin, SHA2('0123456789abcdef' || '|' || CAST(who AS VARCHAR) || '|' || CAST(cell AS VARCHAR) || '|' || CAST(twin AS VARCHAR), 256) AS lot
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
SELECT cell, records, CAST(SUM(records) OVER () AS BIGINT) AS total, 'fogline-counts-1 snowflake d3b5c39b3d09d04b d4c816ab7e1be623' AS grid
FROM fogline_answer
