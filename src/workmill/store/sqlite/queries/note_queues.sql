-- Remember the names of queues. Guard: known ones keep their settings.
INSERT INTO workmill_queues (name) VALUES :given ON CONFLICT DO NOTHING
