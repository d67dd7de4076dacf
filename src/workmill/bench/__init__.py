"""What this machine can do: one file a benchmark, each on a store of its own, measured beside what the database alone can do."""
