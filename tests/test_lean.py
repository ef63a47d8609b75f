"""What is taken from inside the standard library is the same as its public functions, with or without that inside."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.lean import quoted, sha256

if TYPE_CHECKING:
    from pathlib import Path

USED = """\
import sys
for name in {absent!r}:
    sys.modules[name] = None
from matrix.lean import quoted, sha256
print(quoted("a\\u00e9"), sha256(b"abc").hexdigest()[:8], *sorted({{"json", "hashlib"}} & sys.modules.keys()))
"""


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_the_hash_is_hashlibs_also_when_it_goes_on_from_a_copy(first: bytes, second: bytes) -> None:
    begun = sha256(first)
    went_on = begun.copy()
    went_on.update(second)
    assert begun.hexdigest() == hashlib.sha256(first).hexdigest()
    assert went_on.hexdigest() == hashlib.sha256(first + second).hexdigest()


@given(st.text())
def test_a_quoted_text_is_json(text: str) -> None:
    assert quoted(text) == json.dumps(text)


@pytest.mark.parametrize(
    ("absent", "loaded"), [((), ()), (("_json",), ("json",)), (("_sha256", "_sha2"), ("hashlib",))]
)
def test_a_python_without_these_parts(root: Path, absent: tuple[str, ...], loaded: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", USED.format(absent=absent)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ['"a\\u00e9"', "ba7816bf", *loaded]
