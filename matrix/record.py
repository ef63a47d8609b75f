"""`Record`: frozen values with named fields, for classes that every command makes.

``dataclasses`` and ``typing.NamedTuple`` compile code for each class, which takes 0.1 to 0.7 ms of every run. Records
share one constructor instead. That is slower for each object, so what is made or hashed by the thousand is none.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self, dataclass_transform

__all__ = ["Record"]


@dataclass_transform(frozen_default=True)
class Record:
    """A value of named fields: the annotations of the class, with what it assigns as defaults.

    >>> class Size(Record):
    ...     gpus: int
    ...     nodes: int = 1
    >>> Size(8), Size(8) == Size(gpus=8, nodes=1), Size(8)._replace(nodes=2).nodes
    (Size(gpus=8, nodes=1), True, 2)
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        cls._fields = tuple(cls.__annotations__)
        cls._defaults = {name: cls.__dict__[name] for name in cls._fields if name in cls.__dict__}

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = self._fields
        given = dict(zip(fields, values, strict=False))
        own = self.__dict__
        own.update(self._defaults)
        own.update(given)
        own.update(named)
        if len(values) > len(fields) or given.keys() & named or own.keys() != set(fields):
            message = f"{type(self).__name__} takes {', '.join(fields)}, not {values!r} and {named!r}"
            raise TypeError(message)

    def _replace(self, **changes: Any) -> Self:
        """The same with other values in some fields."""
        return type(self)(**{**self.__dict__, **changes})

    def __setattr__(self, name: str, value: object) -> NoReturn:
        message = f"{type(self).__name__} is frozen: {name} stays as it is"
        raise AttributeError(message)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple([self.__dict__[name] for name in self._fields]))

    def __repr__(self) -> str:
        shown = ", ".join([f"{name}={self.__dict__[name]!r}" for name in self._fields])
        return f"{type(self).__name__}({shown})"
