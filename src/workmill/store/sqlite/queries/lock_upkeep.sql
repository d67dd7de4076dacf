-- Hold the place where upkeep's merged rows are written: in a write transaction it is.
SELECT id FROM workmill_upkeep WHERE id = 1
