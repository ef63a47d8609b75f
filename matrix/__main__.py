"""``python -m matrix``."""

from matrix.cli.main import main

if __name__ == "__main__":
    main()
