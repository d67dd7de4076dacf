-- Hold the place where upkeep's merged rows are written: what a fold reads no other may write before it has.
SELECT id FROM workmill.upkeep WHERE id = 1 FOR NO KEY UPDATE
