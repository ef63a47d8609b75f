"""What the shells need at Tab beyond what click knows of them.

bash takes ``:`` and ``=`` for ends of words, and what it is offered replaces the text behind the last one. zsh and fish
replace the whole word, with an option that stands before ``=`` in it. fish cuts what it is offered at commas.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from click.shell_completion import BashComplete, FishComplete, ZshComplete, add_completion_class, split_arg_string

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    Item = CompletionItem[Any]

__all__ = ["register"]

_BREAKS: Final = frozenset(":=")


def register() -> None:
    """Let click take these for its own shells of the same names."""
    for shell in (_Bash, _Zsh, _Fish):
        add_completion_class(shell)


def _whole(offered: list[Item], incomplete: str) -> list[Item]:
    """Whole words: click offers the value alone where an option stands before it, as in ``--runner-type=mi``."""
    option, equals, _ = incomplete.partition("=")
    if equals and option.startswith("--"):
        for item in offered:
            if item.type == "plain":
                item.value = f"{option}={item.value}"
    return offered


class _Bash(BashComplete):
    cut = ""
    """What stands before the place in the word that bash replaces from."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one at the cursor, and that one, with what bash has broken put together again."""
        words = split_arg_string(os.environ["COMP_WORDS"])
        at = int(os.environ["COMP_CWORD"])
        joined: list[str] = []
        broken = False
        for word in words[1 : at + 1]:
            breaks = bool(word) and _BREAKS.issuperset(word)
            if joined and (breaks or broken):
                self.cut = joined[-1] + (word if breaks else "")
                joined[-1] += word
            else:
                self.cut = ""
                joined.append(word)
            broken = breaks
        if at < len(words):
            return joined[:-1], joined[-1]
        self.cut = ""
        return joined, ""

    def get_completions(self, args: list[str], incomplete: str) -> list[Item]:
        offered = _whole(super().get_completions(args, incomplete), incomplete)
        for item in offered:
            item.value = item.value.removeprefix(self.cut)
        return offered


class _Zsh(ZshComplete):
    def get_completions(self, args: list[str], incomplete: str) -> list[Item]:
        return _whole(super().get_completions(args, incomplete), incomplete)


class _Fish(FishComplete):
    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one at the cursor, and that one; click before 8.4 leaves an open quote in it."""
        args, incomplete = super().get_completion_args()
        if incomplete.startswith(("'", '"')):
            incomplete = split_arg_string(incomplete)[0]
            if args and args[-1] == incomplete:
                args.pop()
        return args, incomplete

    def get_completions(self, args: list[str], incomplete: str) -> list[Item]:
        return _whole(super().get_completions(args, incomplete), incomplete)
