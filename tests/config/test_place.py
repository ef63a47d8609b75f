"""The words for a place."""

from __future__ import annotations

from typing import Final

import pytest

from matrix.config.place import Place
from tests.config.support import document

TEXT: Final = """\
k:
  a b: [1, {c: 'x'}]
  "n\\tl": ~
  '': &v 1.50
  y: *v
  w: &w word
  z: [*w, *v]
  long: "%s"
  block: |
    one
    two
  e: []
""" % ("0123456789" * 7)

PLACES: Final = {
    (): ("the file", "m.yaml:1:1", "a mapping"),
    ("k",): ("k", "m.yaml:2:3", "a mapping"),
    ("k", "a b"): ("k: a b", "m.yaml:2:8", "a list"),
    ("k", "a b", 0): ("k: a b[0]", "m.yaml:2:9", "1"),
    ("k", "a b", 1, "c"): ("k: a b[1].c", "m.yaml:2:16", "'x'"),
    ("k", "n\tl"): ("k: n\\tl", "m.yaml:3:11", "~"),
    ("k", ""): ("k: ''", "m.yaml:4:7", "1.50"),
    ("k", "y"): ("k: y", "m.yaml:5:6", "1.50"),
    ("k", "z", 0): ("k: z[0]", "m.yaml:7:7", "'word'"),
    ("k", "long"): ("k: long", "m.yaml:8:9", '"' + "0123456789" * 5 + "012345678…"),
    ("k", "block"): ("k: block", "m.yaml:9:10", "| one two"),
    ("k", "e"): ("k: e", "m.yaml:12:6", "an empty list"),
}


@pytest.mark.parametrize("steps", PLACES, ids=str)
def test_path_place_and_text(steps: tuple[str | int, ...]) -> None:
    place = Place.root(document(TEXT), titled=True).down(steps)
    assert (str(place), str(place.span), place.written) == PLACES[steps]


def test_a_path_without_a_title() -> None:
    assert str(Place.root(document(TEXT)).down(["k", "a b", 1, "c"])) == "k.a b[1].c"


def test_a_mapping_is_looked_for_at_its_key() -> None:
    root = Place.root(document(TEXT))
    assert str(root.at("k").title_span) == "m.yaml:1:1"
    assert str(root.down(["k", "a b", 1]).title_span) == "m.yaml:2:12"
    assert str(root.title_span) == "m.yaml:1:1"


def test_a_scalar_for_a_file() -> None:
    place = Place.root(document("word\n"))
    assert (str(place.span), place.written) == ("m.yaml:1:1", "'word'")


def test_mappings_of_a_list() -> None:
    inner = Place.root(document(TEXT)).at("k")
    assert [str(place) for place in inner.maps("a b")] == ["k.a b[1]"]
    assert list(inner.maps("y")) == list(inner.maps("nothing")) == list(inner.at("y").maps("x")) == []
