"""``python -m matrix``."""

from matrix.cli.start import matrix

if __name__ == "__main__":
    matrix()
