WITH fogline_numbers AS (
  SELECT toFloat64(`age`) AS x0, toFloat64(`stay`) AS x1, `person_id` AS who
  FROM `clinic`.`visits`
), fogline_box AS (
  SELECT CASE WHEN x0 >= toFloat64(0) AND x0 <= toFloat64(125) THEN x0 ELSE toFloat64(0) END AS y0, CASE WHEN x1 >= (toFloat64(-3602879701896397) / toFloat64(36028797018963968)) AND x1 <= toFloat64(60) THEN x1 ELSE (toFloat64(-3602879701896397) / toFloat64(36028797018963968)) END AS y1, who
  FROM fogline_numbers
  WHERE x0 >= toFloat64(0) AND x0 <= toFloat64(125) AND x1 >= (toFloat64(-3602879701896397) / toFloat64(36028797018963968)) AND x1 <= toFloat64(60) AND who IS NOT NULL
), fogline_places AS (
  SELECT FLOOR((y0 - toFloat64(0)) / toFloat64(1) + (toFloat64(1) / toFloat64(2))) AS p0, FLOOR((y1 - (toFloat64(-3602879701896397) / toFloat64(36028797018963968))) / (toFloat64(8458323050155213) / toFloat64(36028797018963968)) + toFloat64(0)) AS p1, who
  FROM fogline_box
), fogline_cells AS (
  SELECT (toInt64(CASE WHEN p0 > toFloat64(125) THEN toFloat64(125) ELSE p0 END)) * 256 + toInt64(CASE WHEN p1 > toFloat64(255) THEN toFloat64(255) ELSE p1 END) AS cell, who
  FROM fogline_places
), fogline_twins AS (
  SELECT who, cell, ROW_NUMBER() OVER (PARTITION BY who, cell ORDER BY cell) AS twin
  FROM fogline_cells
), fogline_order AS (
  SELECT who, cell, twin, hex(SHA256('0123456789abcdef' || '|' || toString(who) || '|' || toString(cell) || '|' || toString(twin))) AS lot
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
SELECT cell, records, toInt64(SUM(records) OVER ()) AS total, 'fogline-counts-1 clickhouse d3b5c39b3d09d04b d4c816ab7e1be623' AS grid
FROM fogline_answer
