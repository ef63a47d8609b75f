"""The command line `python -m runners`."""

import click

from matrix import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="runners")
def main() -> None:
    """Run points of a plan on a Slurm cluster.

    This version has no commands yet: it prints its version and this text.
    """


if __name__ == "__main__":
    main(prog_name="python -m runners")
