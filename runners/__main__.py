"""``python -m runners``."""

import sys

from matrix.cli.main import run
from runners.cli.main import main

if __name__ == "__main__":
    sys.exit(run(main, prog="python -m runners"))
