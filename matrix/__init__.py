"""From a master config to the jobs of a sweep.

The pipeline, each stage a pure function from frozen values to frozen values::

    load -> validate -> expand -> select -> mark evals -> trim -> plan -> emit

Only the two ends touch the world: ``load`` reads files, ``emit`` writes to a stream. Nothing in between asks for the
environment, the clock, git or the network.
"""

from typing import Final

__all__ = ["__version__"]

__version__: Final = "0.1.0"
