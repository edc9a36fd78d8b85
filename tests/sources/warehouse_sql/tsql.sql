WITH fogline_numbers AS (
  SELECT CAST([age] AS double precision) AS x0, CAST([stay] AS double precision) AS x1, [person_id] AS who
  FROM [clinic].[visits]
), fogline_box AS (
  SELECT CASE WHEN x0 >= CAST(CAST(0 AS bigint) AS double precision) AND x0 <= CAST(CAST(125 AS bigint) AS double precision) THEN x0 ELSE CAST(CAST(0 AS bigint) AS double precision) END AS y0, CASE WHEN x1 >= (CAST(CAST(-3602879701896397 AS bigint) AS double precision) / CAST(CAST(36028797018963968 AS bigint) AS double precision)) AND x1 <= CAST(CAST(60 AS bigint) AS double precision) THEN x1 ELSE (CAST(CAST(-3602879701896397 AS bigint) AS double precision) / CAST(CAST(36028797018963968 AS bigint) AS double precision)) END AS y1, who
  FROM fogline_numbers
  WHERE x0 >= CAST(CAST(0 AS bigint) AS double precision) AND x0 <= CAST(CAST(125 AS bigint) AS double precision) AND x1 >= (CAST(CAST(-3602879701896397 AS bigint) AS double precision) / CAST(CAST(36028797018963968 AS bigint) AS double precision)) AND x1 <= CAST(CAST(60 AS bigint) AS double precision) AND who IS NOT NULL
), fogline_places AS (
  SELECT FLOOR((CASE WHEN (y0 - CAST(CAST(0 AS bigint) AS double precision)) < (CAST(CAST(1 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(256 AS bigint) AS double precision)) THEN CAST(CAST(0 AS bigint) AS double precision) ELSE (y0 - CAST(CAST(0 AS bigint) AS double precision)) / CAST(CAST(1 AS bigint) AS double precision) END) + (CAST(CAST(1 AS bigint) AS double precision) / CAST(CAST(2 AS bigint) AS double precision))) AS p0, FLOOR((CASE WHEN (y1 - (CAST(CAST(-3602879701896397 AS bigint) AS double precision) / CAST(CAST(36028797018963968 AS bigint) AS double precision))) < (CAST(CAST(8458323050155213 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(4611686018427387904 AS bigint) AS double precision) / CAST(CAST(2 AS bigint) AS double precision)) THEN CAST(CAST(0 AS bigint) AS double precision) ELSE (y1 - (CAST(CAST(-3602879701896397 AS bigint) AS double precision) / CAST(CAST(36028797018963968 AS bigint) AS double precision))) / (CAST(CAST(8458323050155213 AS bigint) AS double precision) / CAST(CAST(36028797018963968 AS bigint) AS double precision)) END) + CAST(CAST(0 AS bigint) AS double precision)) AS p1, who
  FROM fogline_box
), fogline_cells AS (
  SELECT (CAST(CASE WHEN p0 > CAST(CAST(125 AS bigint) AS double precision) THEN CAST(CAST(125 AS bigint) AS double precision) ELSE p0 END AS bigint)) * 256 + CAST(CASE WHEN p1 > CAST(CAST(255 AS bigint) AS double precision) THEN CAST(CAST(255 AS bigint) AS double precision) ELSE p1 END AS bigint) AS cell, who
  FROM fogline_places
), fogline_twins AS (
  SELECT who, cell, ROW_NUMBER() OVER (PARTITION BY who, cell ORDER BY cell) AS twin
  FROM fogline_cells
), fogline_order AS (
  SELECT who, cell, twin, CONVERT(varchar(64), HASHBYTES('SHA2_256', CONCAT('0123456789abcdef', '|', CAST(who AS nvarchar(3900)), '|', CAST(cell AS nvarchar(3900)), '|', CAST(twin AS nvarchar(3900)))), 2) AS lot
  FROM fogline_twins
), fogline_ranked AS (
  SELECT cell, ROW_NUMBER() OVER (PARTITION BY who ORDER BY lot, cell, twin) AS place
  FROM fogline_order
), fogline_counts AS (
  SELECT cell, COUNT_BIG(*) AS records
  FROM fogline_ranked
  WHERE place <= 2
  GROUP BY cell
), fogline_answer AS (
  SELECT cell, records
  FROM fogline_counts
  UNION ALL
  SELECT -1 AS cell, 0 AS records
)
SELECT cell, records, CAST(SUM(records) OVER () AS bigint) AS total, 'fogline-counts-1 tsql d3b5c39b3d09d04b d4c816ab7e1be623' AS grid
FROM fogline_answer
