"""``python -m runners``."""

from runners.cli.main import main

if __name__ == "__main__":
    main(prog_name="python -m runners")
