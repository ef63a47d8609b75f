"""GitHub's answers to read, and its refusals in words: what was asked, what came back, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matrix.forge import ForgeError, ForgeRule
from matrix.retry import is_limited

if TYPE_CHECKING:
    from matrix.retry import Answer

__all__ = ["Record", "cause", "impatient", "odd_answer", "parsed", "refusal"]


_STRANGER: Final = "set GITHUB_TOKEN: without it GitHub answers as it does to strangers"


class Record(NamedTuple):
    """An object of an answer; ``where`` is the request, for the messages. A field of another type is refused."""

    where: str
    data: Any

    def text(self, name: str) -> str:
        """A string."""
        value = self._value(name)
        if not isinstance(value, str):
            raise odd_answer(self.where, name, value)
        return value

    def number(self, name: str) -> int:
        """An integer, which a boolean is not."""
        value = self._value(name)
        if type(value) is not int:
            raise odd_answer(self.where, name, value)
        return value

    def flag(self, name: str) -> bool:
        """A boolean; GitHub leaves some out, which means no."""
        value = self._value(name)
        if not isinstance(value, bool | None):
            raise odd_answer(self.where, name, value)
        return bool(value)

    def part(self, name: str) -> Record:
        """An object in it."""
        value = self._value(name)
        if not isinstance(value, dict):
            raise odd_answer(self.where, name, value)
        return Record(self.where, value)

    def has(self, name: str) -> bool:
        """Whether a field is there and not null."""
        return self._value(name) is not None

    def _value(self, name: str) -> Any:
        if not isinstance(self.data, dict):
            raise odd_answer(self.where, name, self.data)
        return self.data.get(name)


def parsed(where: str, answer: Answer) -> Any:
    """The JSON of an answer."""
    from json import loads

    try:
        return loads(answer.text)
    except (ValueError, RecursionError):
        raise odd_answer(where, "JSON", answer.text) from None


def odd_answer(where: str, wanted: str, found: object) -> ForgeError:
    """The answer is not in the form that GitHub documents."""
    message = f"{where}: the answer has no usable {wanted}, but {_short(repr(found))}."
    return ForgeError(
        ForgeRule.ANSWER, message, "try again; GITHUB_API_URL may name something that is not GitHub's API"
    )


def cause(error: BaseException) -> str:
    """The innermost cause: what wraps it repeats it at length."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return f"{type(error).__name__}: {_short(str(error))}"


def impatient(where: str, answer: Answer, wait: float, left: float, *, stranger: bool = False) -> ForgeError:
    """There is not enough patience left to make the request again. ``stranger``: it went without a token."""
    why = f"{answer.status} {_told(answer)}" if answer.status else answer.text
    message = f"{where}: {why}. It may come again in {wait:.0f} s, and {max(left, 0.0):.0f} s are left to wait."
    rule = ForgeRule.LIMIT if is_limited(answer) else ForgeRule.DOWN
    fix = _STRANGER if stranger and rule is ForgeRule.LIMIT else "run the command again later"
    return ForgeError(rule, message, fix, status=answer.status)


def refusal(where: str, needs: str, answer: Answer, failures: int, *, stranger: bool = False) -> ForgeError:
    """The last answer of a request that is not made again.

    ``needs``: the permission that it takes; ``stranger``: it went without a token.
    """
    status = answer.status
    tried = f" {failures} times" if failures > 1 else ""
    told = f"{status}{tried}: {_told(answer)}" if status else f"no answer{tried}: {answer.text}"
    if is_limited(answer):
        rule, fix = ForgeRule.LIMIT, "run the command again later"
    elif status == 0 or status >= 500:
        rule, fix = ForgeRule.DOWN, "run the command again later"
        if not where.startswith("GET "):
            fix = "see whether it was carried out, then run the command again"
    elif status == 401:
        rule, fix = ForgeRule.TOKEN, "set GITHUB_TOKEN to a valid token"
    elif status == 403:
        rule, fix = ForgeRule.PERMISSION, f"give the job `permissions: {needs}`; in a run of a fork nothing can write"
    elif status in (404, 410):
        rule = ForgeRule.MISSING
        fix = f"check the number, and that the token may see the repository (`permissions: {needs}`)"
    elif status in (301, 302, 307, 308):
        rule, fix = ForgeRule.MOVED, "use the new name of the repository, and check GITHUB_API_URL"
    else:
        rule, fix = ForgeRule.ANSWER, "this request is not accepted; the answer says why"
    if stranger and (status in (401, 403, 404) or rule is ForgeRule.LIMIT):
        fix = _STRANGER
    return ForgeError(rule, f"{where}: {told}.", fix, status=status)


def _told(answer: Answer) -> str:
    from json import loads

    try:
        return _short(str(loads(answer.text)["message"])).rstrip(".")
    except (ValueError, KeyError, TypeError, RecursionError):
        return _short(answer.text) or "no reason given"


def _short(text: str, length: int = 200) -> str:
    text = "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
    return text if len(text) <= length else f"{text[: length - 1]}…"
