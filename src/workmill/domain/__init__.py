"""What is true: states, transitions, jobs, outcomes, retries, limits. Pure: no I/O, no clock, no randomness."""
