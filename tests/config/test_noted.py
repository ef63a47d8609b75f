"""Places that are noted while a file is read, for who asks for nearly all of them."""

from __future__ import annotations

import pytest

from matrix.config.source import loads, places_noted
from matrix.errors import RefusedError

DATA = b"a:\n  - {b: 1}\n"


def test_who_asks_for_all_places_has_them_noted() -> None:
    with places_noted():
        inside = loads(DATA, "m.yaml", noted=False)
    outside = loads(DATA, "m.yaml", noted=False)
    assert (isinstance(inside.root.places, list), isinstance(outside.root.places, list)) == (True, False)
    assert inside.of_value(inside.root["a"][0], "b") == outside.of_value(outside.root["a"][0], "b")


def test_a_refusal_ends_it() -> None:
    with pytest.raises(RefusedError), places_noted():
        loads(b"a: [", "m.yaml")
    assert not isinstance(loads(DATA, "m.yaml", noted=False).root.places, list)
