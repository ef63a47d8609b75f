"""Where commands begin: what is not asked for is not loaded, and nobody notices who asks."""

from __future__ import annotations

import pytest

from tests.cli.support import program


def said(*lines: str) -> str:
    """What a program prints, which has begun as a command does."""
    return program("import sys", "from matrix.cli import start", *lines).strip()


@pytest.mark.parametrize(
    "imported", ["inspect", "click", "matrix.cli.main", "matrix.cli.expand", "matrix.cli.changelog"]
)
def test_importing_a_module_does_not_load_it(imported: str) -> None:
    assert said(f"import {imported}", "print({'ast', 'dis'} & sys.modules.keys())") == "set()"


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("inspect.signature(start.postpone)", "(name: 'str') -> 'None'"),
        ("inspect.__name__, inspect.__spec__.name, inspect.__file__[-10:]", "inspect inspect inspect.py"),
        ("inspect.Parameter.empty.__name__, '__getattr__' in vars(inspect)", "_empty False"),
    ],
)
def test_it_is_loaded_when_something_is_asked_of_it(asked: str, answer: str) -> None:
    assert said("import inspect", f"print({asked})") == answer


def test_a_name_may_be_imported_from_it() -> None:
    assert said("from inspect import Parameter", "print(Parameter.empty.__name__)") == "_empty"


def test_what_it_lacks_is_told_as_always() -> None:
    asked = ["import inspect", "try: inspect.nothing", "except AttributeError as error: print(error)"]
    assert said(*asked) == "module 'inspect' has no attribute 'nothing'"


def test_what_is_loaded_stays_and_what_is_missing_is_not_made_up() -> None:
    assert said("import json", "start.postpone('json')", "print('__getattr__' in vars(json))") == "False"
    assert said("start.postpone('no_such')", "print('no_such' in sys.modules)") == "False"


@pytest.mark.parametrize("name", ["matrix", "validate_perf_changelog"])
def test_the_console_scripts(name: str) -> None:
    assert said("sys.argv[1:] = ['--help']", f"start.{name}()").startswith(f"Usage: {name} [OPTIONS]")


def test_the_help_of_options_needs_no_tidying() -> None:
    """`matrix.cli.command.Option` takes it as it is written."""
    walk = """
import click, inspect
from matrix.cli.main import matrix

def walk(command, context):
    texts = [param.help for param in command.params if getattr(param, "help", None)]
    assert texts == [inspect.cleandoc(text) for text in texts]
    below = command.list_commands(context) if isinstance(command, click.Group) else []
    return len(texts) + sum(walk(command.get_command(context, name), context) for name in below)

print(walk(matrix, click.Context(matrix)) > 100)
"""
    assert said(walk) == "True"
