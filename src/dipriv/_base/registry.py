"""Registries that classes enter by a decorator, so that a new codec, kernel or reference is one file.

`serializable` lists the classes that may stand in a file: only these are ever rebuilt from one, which makes a file data
and never code. `Names` lists what users may write as a name, such as `kernel="laplace"`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from dipriv._base.near_names import did_you_mean
from dipriv.errors import InputError, InternalError

T = TypeVar("T")
C = TypeVar("C", bound=type)

MAX_LENGTH = 1 << 22
"""An array in a file has at most this many rows, unless its class says otherwise."""


class ChecksItself(Protocol):
    """An object with checks that cost too much, or are too strict, for every construction: loading calls them."""

    def check_invariants(self) -> None:
        """Raises InputError unless the object may be used although it comes from a file."""
        ...


class CostsToBuild(Protocol):
    """A class whose construction takes long for some fields, for example because it proves its ε on a large matrix."""

    @staticmethod
    def is_cheap_to_build(fields: Mapping[str, Any]) -> bool:
        """Whether fields from a file, which have their declared types, are small enough to build the object."""
        ...


@dataclass(frozen=True)
class Serializable:
    """How a class may be rebuilt from a file."""

    of: type[Any]
    max_length: int | None
    former_fields: frozenset[str]

    def is_cheap_to_build(self, fields: Mapping[str, Any]) -> bool:
        """Whether these fields keep to the limits of the class."""
        arrays = [value for value in fields.values() if isinstance(value, np.ndarray)]
        if self.max_length is not None and any(array.size and len(array) > self.max_length for array in arrays):
            return False
        limits: Callable[[Mapping[str, Any]], bool] | None = getattr(self.of, "is_cheap_to_build", None)
        return limits is None or limits(fields)


_serializable: dict[str, Serializable] = {}
_former_names: dict[str, str] = {}
_implementations: dict[type, tuple[type, ...]] = {}


def serializable(
    *protocols: type,
    former_name: str | None = None,
    former_fields: tuple[str, ...] = (),
    max_length: int | None = MAX_LENGTH,
) -> Callable[[C], C]:
    """Register a dataclass whose objects may stand in an exported reference.

    Parameters
    ----------
    *protocols : the protocols that the class implements, so that a field declared as one of them may hold it.
    former_name : what older files call the class.
    former_fields : fields of older files, which are left out.
    max_length : how many rows an array of it may have in a file; None leaves that to the size of the file.

    Raises
    ------
    InternalError : the class is no dataclass, or another class has its name.
    """

    def register(of: C) -> C:
        known = _serializable.get(of.__name__)
        if not is_dataclass(of) or (known and known.of.__module__ != of.__module__):
            raise InternalError(
                f"{of.__module__}.{of.__name__} cannot be registered: it is no dataclass, or its name is taken.",
                "Decorate a dataclass whose name is not taken.",
            )
        _serializable[of.__name__] = Serializable(of, max_length, frozenset(former_fields))
        if former_name is not None:
            _former_names[former_name] = of.__name__
        for protocol in protocols:
            _implementations[protocol] = (*_implementations.get(protocol, ()), of)
        return of

    return register


def find_serializable(name: str) -> Serializable:
    """The registered class of this name, or former name; raises KeyError for any other."""
    return _serializable[_former_names.get(name, name)]


def is_serializable(of: type) -> bool:
    """Whether this very class is registered."""
    known = _serializable.get(of.__name__)
    return known is not None and known.of is of


def implementations(protocol: type) -> tuple[type, ...]:
    """The registered classes that implement a protocol."""
    return _implementations.get(protocol, ())


class Names(Generic[T]):
    """Classes by the names that users write; each can be made without arguments."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._classes: dict[str, Callable[[], T]] = {}

    def __iter__(self) -> Any:
        return iter(self._classes)

    def register(self, name: str) -> Callable[[C], C]:
        """A decorator: objects of the class may be written as this name.

        Raises
        ------
        InputError : another class has this name.
        """

        def enter(of: C) -> C:
            if self._classes.setdefault(name, of) is not of:
                raise InputError(f"a {self._what} is registered as {name!r} already.", "Choose another name.")
            return of

        return enter

    def make(self, name: str) -> T:
        """What a name stands for.

        Raises
        ------
        InputError : no class has this name; the error lists the names that there are.
        """
        if name not in self._classes:
            names = ", ".join(f'"{known}"' for known in self._classes)
            raise InputError(
                f"{self._what}={name!r:.40} is unknown{did_you_mean(name, self._classes)}.",
                f"Use one of {names}, or an object.",
                command=f"Use one of {', '.join(self._classes)}.",
            )
        return self._classes[name]()
