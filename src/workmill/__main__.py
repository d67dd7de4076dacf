"""`python -m workmill` is the same as `workmill`."""

import sys

from workmill.cli import main

if __name__ == "__main__":
    sys.exit(main())
