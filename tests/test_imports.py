"""The folders of `matrix` are floors: an import leads to the same floor or to one below it.

The rule is read off the source with ast, so an import inside a function or under TYPE_CHECKING counts like any other.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

# From the ground up. Names on one floor lie side by side, and none of them imports another one.
FLOORS: Final = (
    ("matrix",),  # the version
    ("findings|errors",),
    ("github",),
    ("config",),
    ("recipes", "changelog"),
    ("points",),
    ("workspace",),
    ("checks",),
    ("plan",),
    ("answers",),
    ("report",),
    ("cli",),
)
# Modules that share a room, and those that are not in the folder of their floor.
ROOM_OF: Final = {
    "findings": "findings|errors",
    "errors": "findings|errors",
    "lean": "findings|errors",
    "record": "findings|errors",
    "forge": "github",
    "address": "github",
    "refusal": "github",
    "retry": "github",
    "store": "github",
    "sticky": "github",
    "skeleton": "github",
    "__main__": "cli",
}
FLOOR_OF: Final = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
LAZY: Final = frozenset({"matrix.github"})
BY_NAME: Final = frozenset({"__import__", "import_module", "importlib.import_module"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One module that one line of another one names."""

    source: str
    target: str
    line: int
    at_start: bool  # carried out when the source module is imported

    def __str__(self) -> str:
        return f"{self.source}:{self.line} imports {self.target}"


def modules(root: Path, package: str) -> dict[str, Path]:
    """Dotted name -> file of every module of a package."""
    found = {}
    for file in sorted((root / package).rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        if all(part.isidentifier() for part in parts):  # leaves out runners/srt-slurm
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def statements(node: ast.AST, *, at_start: bool = True) -> Iterator[tuple[ast.AST, bool]]:
    """Every node below, and whether it runs when the module is imported."""
    for child in ast.iter_child_nodes(node):
        yield child, at_start
        lazy = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_type_checking(child)
        yield from statements(child, at_start=at_start and not lazy)


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def imports(root: Path, package: str) -> list[Import]:
    """Every import of our own packages in the modules of one of them."""
    known = modules(root, "matrix") | modules(root, "runners")
    found = []
    for source, file in modules(root, package).items():
        for node, at_start in statements(ast.parse(file.read_text(encoding="utf-8"), filename=str(file))):
            for name in imported_names(node):
                target = longest_module(name, known)
                if target is not None:
                    line = getattr(node, "lineno", 0)
                    found.append(Import(source=source, target=target, line=line, at_start=at_start))
    return found


def imported_names(node: ast.AST) -> list[str]:
    """What a statement asks the import system for; a relative import shows its dots."""
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            origin = "." * level + (module or "")
            return [f"{origin}.{alias.name}" for alias in names]
        case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]) if ast.unparse(function) in BY_NAME:
            return [name]
    return []


def longest_module(name: str, known: dict[str, Path]) -> str | None:
    """The module that a dotted name leads to: `matrix.errors.Refused` is `matrix.errors`."""
    if name.startswith("."):
        return name
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        candidate = ".".join(parts[:length])
        if candidate in known:
            return candidate
    return None


def room(module: str) -> str:
    """The part of `matrix` that a module belongs to."""
    parts = module.split(".")
    name = parts[1] if len(parts) > 1 else parts[0]
    return ROOM_OF.get(name, name)


def faults(root: Path) -> list[str]:
    """What is wrong with the import graph of the tree under `root`, one line each."""
    found = [f"{module} has no floor" for module in modules(root, "matrix") if room(module) not in FLOOR_OF]
    graph = imports(root, "matrix")
    for arrow in graph:
        if arrow.target.startswith("."):
            found.append(f"{arrow}: a relative import")
        elif arrow.target.partition(".")[0] != "matrix":
            found.append(f"{arrow}: another package stands on matrix, not under it")
        elif {room(arrow.source), room(arrow.target)} <= FLOOR_OF.keys() and runs_up(arrow):
            found.append(f"{arrow}: {room(arrow.target)} is not below {room(arrow.source)}")
    found += [
        f"{arrow}: only inside a function"
        for arrow in [*graph, *imports(root, "runners")]
        if arrow.target in LAZY and arrow.at_start
    ]
    found += [f"a circle of imports: {' -> '.join(circle)}" for circle in circles(graph)]
    return found


def runs_up(arrow: Import) -> bool:
    source, target = room(arrow.source), room(arrow.target)
    return source != target and FLOOR_OF[target] >= FLOOR_OF[source]


def circles(graph: list[Import]) -> list[list[str]]:
    """Modules that wait for each other while they are imported, each circle once, from its first name."""
    arrows: dict[str, set[str]] = {}
    for arrow in graph:
        if arrow.at_start and arrow.source != arrow.target:
            arrows.setdefault(arrow.source, set()).add(arrow.target)
    found: dict[frozenset[str], list[str]] = {}
    done: set[str] = set()

    def walk(module: str, path: list[str]) -> None:
        if module in path:
            circle = path[path.index(module) :]
            start = circle.index(min(circle))
            found.setdefault(frozenset(circle), [*circle[start:], *circle[:start], min(circle)])
        elif module not in done:
            for target in sorted(arrows.get(module, ())):
                walk(target, [*path, module])
            done.add(module)

    for module in sorted(arrows):
        walk(module, [])
    return list(found.values())


def test_no_arrow_runs_up(root: Path) -> None:
    assert imports(root, "matrix"), "no import found: the graph was not read"
    assert faults(root) == []


TREES: Final = {
    "down": ({"matrix/cli/main.py": "from matrix.config import source", "matrix/config/source.py": ""}, []),
    "same room": ({"matrix/config/a.py": "import matrix.config.b", "matrix/config/b.py": ""}, []),
    "bottom room": ({"matrix/errors.py": "from matrix.findings import Finding", "matrix/findings.py": ""}, []),
    "the version from anywhere": ({"matrix/errors.py": "from matrix import __version__"}, []),
    "runners on matrix": ({"runners/launch.py": "import matrix.plan.plan", "matrix/plan/plan.py": ""}, []),
    "up": (
        {"matrix/config/a.py": "\nfrom matrix.points.b import c", "matrix/points/b.py": ""},
        ["matrix.config.a:2 imports matrix.points.b: points is not below config"],
    ),
    "up from a function": (
        {"matrix/plan/a.py": "def f():\n    from matrix.cli import main", "matrix/cli/main.py": ""},
        ["matrix.plan.a:2 imports matrix.cli.main: cli is not below plan"],
    ),
    "up for a type": (
        {"matrix/plan/a.py": "if TYPE_CHECKING:\n    import matrix.report.text", "matrix/report/text.py": ""},
        ["matrix.plan.a:2 imports matrix.report.text: report is not below plan"],
    ),
    "up by name": (
        {"matrix/plan/a.py": "import_module('matrix.report.text')", "matrix/report/text.py": ""},
        ["matrix.plan.a:1 imports matrix.report.text: report is not below plan"],
    ),
    "up from the ground": (
        {"matrix/__init__.py": "from matrix.errors import Refused", "matrix/errors.py": ""},
        ["matrix:1 imports matrix.errors: findings|errors is not below matrix"],
    ),
    "side by side": (
        {"matrix/recipes/a.py": "import matrix.changelog.b", "matrix/changelog/b.py": ""},
        ["matrix.recipes.a:1 imports matrix.changelog.b: changelog is not below recipes"],
    ),
    "relative": (
        {"matrix/config/a.py": "from . import b", "matrix/config/b.py": ""},
        ["matrix.config.a:1 imports ..b: a relative import"],
    ),
    "matrix on runners": (
        {"matrix/cli/a.py": "from runners.launch import launch", "runners/launch.py": ""},
        ["matrix.cli.a:1 imports runners.launch: another package stands on matrix, not under it"],
    ),
    "a room without a floor": ({"matrix/attic/a.py": ""}, ["matrix.attic.a has no floor"]),
    "github at the start": (
        {"matrix/cli/a.py": "from matrix import github", "matrix/github.py": ""},
        ["matrix.cli.a:1 imports matrix.github: only inside a function"],
    ),
    "github at the start of runners": (
        {"runners/a.py": "import matrix.github", "matrix/github.py": ""},
        ["runners.a:1 imports matrix.github: only inside a function"],
    ),
    "github when needed": (
        {"matrix/cli/a.py": "def f():\n    import matrix.github", "matrix/github.py": ""},
        [],
    ),
    "a circle": (
        {"matrix/plan/a.py": "import matrix.plan.b", "matrix/plan/b.py": "import matrix.plan.a"},
        ["a circle of imports: matrix.plan.a -> matrix.plan.b -> matrix.plan.a"],
    ),
    "a circle that a function opens": (
        {"matrix/plan/a.py": "import matrix.plan.b", "matrix/plan/b.py": "def f():\n    import matrix.plan.a"},
        [],
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_the_rule_itself(tmp_path: Path, name: str) -> None:
    files, expected = TREES[name]
    for path, text in {"matrix/__init__.py": "", "runners/__init__.py": "", **files}.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert faults(tmp_path) == expected
