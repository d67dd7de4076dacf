"""The command line. `main` is what the `workmill` script and `python -m workmill` run."""

from workmill.cli.program import main

__all__ = ["main"]
