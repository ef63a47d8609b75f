"""``python -m matrix``."""

import gc

# What a short command allocates lives until its end, also what it imports: collecting it over and over is wasted time.
gc.disable()

from matrix.cli.main import main  # noqa: E402 - see above

if __name__ == "__main__":
    main()
