-- Take the turn of upkeep and move the lease clock. Guard: nobody took it within the interval (or the clock has stepped back).
UPDATE workmill.upkeep
SET observed = observed + least(greatest(:now - turned_at, 0), :most), turned_at = :now
WHERE id = 1 AND (:now >= turned_at + :interval OR :now < turned_at)
RETURNING observed
