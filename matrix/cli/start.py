"""Where every command begins, before click is imported."""

from __future__ import annotations

import gc
import sys
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["matrix", "postpone", "validate_perf_changelog"]


def matrix() -> NoReturn:
    """``python -m matrix`` and the console script of that name."""
    from matrix.cli.main import main

    main()


def validate_perf_changelog() -> NoReturn:
    """The console script of that name."""
    from matrix.cli.changelog import check
    from matrix.cli.main import run

    sys.exit(run(check, prog="validate_perf_changelog"))


def postpone(name: str) -> None:
    """Let whoever imports a module load it only when he asks something of it.

    For one that is imported everywhere and seldom used. The standard library's `LazyLoader` does not help before Python
    3.12: there the import itself asks. No command of this package has a second thread that could ask meanwhile.
    """
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or spec.loader is None:
        return
    module, loader = module_from_spec(spec), spec.loader

    def load(wanted: str) -> Any:
        del module.__getattr__
        loader.exec_module(module)
        return getattr(module, wanted)

    module.__getattr__ = load  # type: ignore[method-assign]
    sys.modules[name] = module


# What a short command allocates lives until its end, also what it imports: collecting it over and over is wasted time.
gc.disable()

# click imports it, and with it the compiler's parts, to tidy the texts of commands and options when they are shown.
postpone("inspect")
