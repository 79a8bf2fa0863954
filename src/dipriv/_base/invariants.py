"""Invariants of classes: predicates on arrays, and the error that names the class whose invariant does not hold.

Compiled loops do not check their indices and decoding does not check its ranges. So each class that they read from
states its own invariants with `require`, and an object that violates one cannot be built, from a file or otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv.errors import InputError


def require(holds: object, owner: object, invariant: str) -> None:
    """Raises InputError, which names the class of `owner`, unless the invariant holds.

    >>> require(True, [], "an invariant that holds")
    """
    if not holds:
        raise InputError(
            f"{type(owner).__name__} violates the invariant that {invariant}.", "Fit it anew, or export it again."
        )


def is_vector(array: NDArray[Any], min_length: int = 1) -> bool:
    """Whether an array has one dimension and at least `min_length` entries."""
    return array.ndim == 1 and len(array) >= min_length


def is_increasing(array: NDArray[Any]) -> bool:
    """Whether each entry of a vector is larger than the one before."""
    return bool(np.all(array[1:] > array[:-1]))


def is_nondecreasing(array: NDArray[Any], axis: int = 0) -> bool:
    """Whether no entry is smaller than the one before, along an axis."""
    return bool(np.all(np.diff(array, axis=axis) >= 0))


def is_finite(*arrays: Any) -> bool:
    """Whether all numbers are finite."""
    return all(bool(np.all(np.isfinite(array))) for array in arrays)
