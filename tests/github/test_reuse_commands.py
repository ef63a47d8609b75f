"""`/reuse-sweep-run`: what is heard, of whom, and what is only talk about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from matrix.errors import RefusedError
from matrix.forge import Comment
from matrix.plan.approval import Asking
from matrix.plan.reuse import Request, find_request

if TYPE_CHECKING:
    from matrix.github import GitHub
    from tests.github.server import Site


class Said(NamedTuple):
    body: str
    wanted: tuple[int | None] | str | None  # (run,), no command, or the refusal


BODIES: Final = {
    "bare": Said("/reuse-sweep-run", (None,)),
    "with a run": Said("/reuse-sweep-run 1001", (1001,)),
    "with blanks around": Said("/reuse-sweep-run   1001  \r\n", (1001,)),
    "below a text": Said("It is the same code.\n\n/reuse-sweep-run 7\n", (7,)),
    "the last of two": Said("/reuse-sweep-run 7\n/reuse-sweep-run 8", (8,)),
    "in a sentence": Said("please do not use `/reuse-sweep-run` here", None),
    "quoted": Said("> /reuse-sweep-run 1001\n\nWhy?", None),
    "indented code": Said("    /reuse-sweep-run 1001", None),
    "behind three blanks": Said("   /reuse-sweep-run 7", (7,)),
    "behind a tab": Said("\t/reuse-sweep-run 7", None),
    "in a comment that nobody sees": Said("<!--\n/reuse-sweep-run 1001\n-->\nFine.", None),
    "in one that begins behind words and never ends": Said("Fine. <!-- x --> <!--\n/reuse-sweep-run 1001", None),
    "below one that ends": Said("<!-- x -->\n<!--\n-->\n/reuse-sweep-run 5", (5,)),
    "below the word for one": Said("Write `<!--` first.\n/reuse-sweep-run 5", (5,)),
    "in code of HTML": Said("<PRE class=x>\n/reuse-sweep-run 1001\n</pre>\n", None),
    "quoted in HTML": Said("<blockquote>\n\n/reuse-sweep-run 1001\n</blockquote>\n", None),
    "fenced": Said("```\n/reuse-sweep-run 1001\n```", None),
    "fenced with tildes": Said("~~~~text\n/reuse-sweep-run 1001\n~~~\n/reuse-sweep-run\n~~~~", None),
    "fenced and never closed": Said("```\n/reuse-sweep-run 1001", None),
    "below a fence": Said("```\nx\n```\n/reuse-sweep-run 5", (5,)),
    "another command": Said("/reuse-sweep-runs", None),
    "with something behind the run": Said("/reuse-sweep-run 1001 please", "takes the number of a run or nothing"),
    "with a word": Said("/reuse-sweep-run latest", "latest follows"),
    "with an address": Said("/reuse-sweep-run https://x/actions/runs/1", "follows"),
    "with zero": Said("/reuse-sweep-run 0", "follows"),
    "with other digits": Said("/reuse-sweep-run ١٢", "follows"),
    "with a number without end": Said("/reuse-sweep-run " + "9" * 60_000, "follows"),
    "nothing": Said("", None),
}


@pytest.mark.parametrize("name", BODIES)
def test_command(name: str, site: Site, github: GitHub) -> None:
    site.people["ada"] = ("write", "write")
    said = BODIES[name]
    site.comment("ada", said.body)
    asking = Asking(github, str)
    if isinstance(said.wanted, str):
        with pytest.raises(RefusedError, match=said.wanted) as caught:
            find_request(github.comments(77), asking)
        assert len(str(caught.value)) < 500
        return
    found = find_request(github.comments(77), asking)
    assert (None if found is None else (found.run_id,)) == said.wanted
    assert len(site.requests) == 1 + (said.wanted is not None)


def test_the_last_word_of_somebody_who_may(site: Site, github: GitHub) -> None:
    site.people.update(ada=("write", "write"), tri=("read", "triage"))
    site.comment("ada", "/reuse-sweep-run 1")
    mine = site.comment("ada", "/reuse-sweep-run 2")
    site.comment("tri", "/reuse-sweep-run 3")
    site.comment("mallory", "/reuse-sweep-run nonsense", "CONTRIBUTOR")
    site.comment(None, "/reuse-sweep-run 4")
    assert find_request(github.comments(77), Asking(github, str)) == Request(mine, "ada", 2)


def test_order_is_by_id_whatever_the_clocks_say(github: GitHub, site: Site) -> None:
    site.people["ada"] = ("write", "write")
    comments = [Comment(12, "ada", "/reuse-sweep-run 2"), Comment(11, "ada", "/reuse-sweep-run 1")]
    found = find_request(comments, Asking(github, str))
    assert found is not None
    assert found.run_id == 2
