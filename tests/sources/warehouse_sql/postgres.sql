WITH fogline_numbers AS (
  SELECT CAST(CASE WHEN "age" BETWEEN 1e-300 AND 1.7976931348623157e308 OR "age" BETWEEN -1.7976931348623157e308 AND -1e-300 OR "age" = 0 THEN "age" WHEN "age" > -1 AND "age" < 1 THEN sign("age") * 1e-300 END AS double precision) AS x0, CAST(CASE WHEN "stay" BETWEEN 1e-300 AND 1.7976931348623157e308 OR "stay" BETWEEN -1.7976931348623157e308 AND -1e-300 OR "stay" = 0 THEN "stay" WHEN "stay" > -1 AND "stay" < 1 THEN sign("stay") * 1e-300 END AS double precision) AS x1, "person_id" AS who
  FROM "clinic"."visits"
), fogline_box AS (
  SELECT CASE WHEN x0 >= CAST(0 AS double precision) AND x0 <= CAST(125 AS double precision) THEN x0 ELSE CAST(0 AS double precision) END AS y0, CASE WHEN x1 >= (CAST(-3602879701896397 AS double precision) / CAST(36028797018963968 AS double precision)) AND x1 <= CAST(60 AS double precision) THEN x1 ELSE (CAST(-3602879701896397 AS double precision) / CAST(36028797018963968 AS double precision)) END AS y1, who
  FROM fogline_numbers
  WHERE x0 >= CAST(0 AS double precision) AND x0 <= CAST(125 AS double precision) AND x1 >= (CAST(-3602879701896397 AS double precision) / CAST(36028797018963968 AS double precision)) AND x1 <= CAST(60 AS double precision) AND who IS NOT NULL
), fogline_places AS (
  SELECT FLOOR((CASE WHEN (y0 - CAST(0 AS double precision)) < (CAST(1 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(256 AS double precision)) THEN CAST(0 AS double precision) ELSE (y0 - CAST(0 AS double precision)) / CAST(1 AS double precision) END) + (CAST(1 AS double precision) / CAST(2 AS double precision))) AS p0, FLOOR((CASE WHEN (y1 - (CAST(-3602879701896397 AS double precision) / CAST(36028797018963968 AS double precision))) < (CAST(8458323050155213 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(4611686018427387904 AS double precision) / CAST(2 AS double precision)) THEN CAST(0 AS double precision) ELSE (y1 - (CAST(-3602879701896397 AS double precision) / CAST(36028797018963968 AS double precision))) / (CAST(8458323050155213 AS double precision) / CAST(36028797018963968 AS double precision)) END) + CAST(0 AS double precision)) AS p1, who
  FROM fogline_box
), fogline_cells AS (
  SELECT (CAST(CASE WHEN p0 > CAST(125 AS double precision) THEN CAST(125 AS double precision) ELSE p0 END AS bigint)) * 256 + CAST(CASE WHEN p1 > CAST(255 AS double precision) THEN CAST(255 AS double precision) ELSE p1 END AS bigint) AS cell, who
  FROM fogline_places
), fogline_twins AS (
  SELECT who, cell, ROW_NUMBER() OVER (PARTITION BY who, cell ORDER BY cell) AS twin
  FROM fogline_cells
), fogline_order AS (
  SELECT who, cell, twin, encode(sha256(convert_to('0123456789abcdef' || '|' || CAST(who AS text) || '|' || CAST(cell AS text) || '|' || CAST(twin AS text), getdatabaseencoding())), 'hex') AS lot
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
SELECT cell, records, CAST(SUM(records) OVER () AS bigint) AS total, 'fogline-counts-1 postgres d3b5c39b3d09d04b d4c816ab7e1be623' AS grid
FROM fogline_answer
