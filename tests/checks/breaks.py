"""What a row of the tables of broken subjects is."""

from __future__ import annotations

from typing import Final, NamedTuple

MASTER: Final = "master.yaml"
MU: Final = "recipes/mu.yaml"
NU: Final = "recipes/nu.yaml"
XI: Final = "recipes/xi.yaml"
CURVE: Final = "golden/mu_dspark.yaml"

Edit = tuple[str, int, str, str]
Place = tuple[str, int]


class Break(NamedTuple):
    """``place`` is where the finding stands, ``others`` the further ones it names; ``points`` share the cause.

    ``also``: rules that the same edit has to break as well, and no others may be.
    """

    rule: str
    edits: tuple[Edit, ...]
    place: Place
    others: tuple[Place, ...]
    says: str
    points: int
    warns: bool
    also: frozenset[str]

    def __str__(self) -> str:
        return f"{self.rule} {self.says[:40]}"


def broken(
    rule: str,
    *edits: Edit,
    at: Place,
    says: str,
    others: tuple[Place, ...] = (),
    points: int = 1,
    warns: bool = False,
    also: tuple[str, ...] = (),
) -> Break:
    return Break(rule, edits, at, others, says, points, warns, frozenset(also))


MU_NAMED: Final = ((MASTER, 20), (MASTER, 27))
NU_NAMED: Final = ((MASTER, 49), (MASTER, 54))
XI_NAMED: Final = ((MASTER, 74),)
"""Where the master names each recipe."""
