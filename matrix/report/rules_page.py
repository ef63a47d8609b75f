"""``docs/checks.md``: every rule, from the docstrings of the checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matrix.checks.registry import BY_FAMILY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matrix.checks.rule import Rule

__all__ = ["rules_page"]

_HEAD: Final = """\
# Checks

<!-- Written by `python -m matrix.cli.rules_page --write`, from the docstrings in matrix/checks. -->

    $ python -m matrix check

holds every row of the masters to the recipe variant that would run, without a cluster and in less than a second. Each
fault comes with file, line and column of both sides, what is wrong and how to mend it. A cause that many points share
is told once, with their number.

    python -m matrix check KEY ID 'dsv4-*'          # some configs or points
    python -m matrix check FILE.yaml:override_x     # a recipe that no entry names yet
    python -m matrix check --strict                 # warnings fail too
    python -m matrix check --select 'recipe-*' --ignore recipe-time-limit
    python -m matrix check --workspace DIR          # DIR is what jobs see as /infmax-workspace
    python -m matrix check --format github          # or json, markdown
    python -m matrix check --explain recipe-budget

It ends with 0 where nothing is wrong, with 1 where there is an error (with `--strict`: anything), with 2 where the
command line is wrong.

What is an error here, `matrix plan` and `validate_perf_changelog` refuse too, in every config that they would run, and
`python -m runners launch` in the entry of its point.

An entry of a master can waive a rule, with a reason:

    - conc-list: [96]
      check-waivers: [{rule: recipe-admission, reason: "the queue is what this point measures"}]

Rules about files or whole configs cannot be waived by an entry; `--ignore` leaves them out.
"""


def rules_page() -> str:
    """The page as it should be."""
    return "\n".join([_HEAD, *(line for title, rules in BY_FAMILY for line in _family(title, rules))])


def _family(title: str, rules: Sequence[Rule[Any]]) -> Iterator[str]:
    yield f"## {title}\n"
    named = {rule.name: rule for rule in rules}
    explained = [rule for rule in named.values() if "Fix:" in rule.text]
    for rule in explained:
        yield f"### `{rule.name}`\n"
        kind = "Error." if rule.severity == "error" else "Warning."
        yield f"{kind} {_paragraphs(rule.text)}\n"
    rest = [rule for rule in named.values() if rule not in explained]
    if rest:
        yield f"{rest[0].text.partition(chr(10) * 2)[2]}\n"
        yield "| rule | what has to hold |"
        yield "|---|---|"
        yield from (f"| `{rule.name}` | {rule.text.partition(chr(10))[0]} |" for rule in rest)
        yield ""


def _paragraphs(text: str) -> str:
    """Each part a paragraph of its own."""
    return text.replace("\nFix:", "\n\nFix:")
