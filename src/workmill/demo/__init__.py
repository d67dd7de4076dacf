"""The demonstration: real worker processes, real jobs, and what is expected of them."""
