"""What a codec is tested with: a module beside the suite lists cases of its own in `CODEC_CASES`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from dipriv._base.columns import Storage
from dipriv.codecs import Codec
from dipriv.schema import Kind


@dataclass(frozen=True, eq=False)
class Case:
    """A column's kind, storage, number of labels and values, and how its codec is built if `fit_codec` does not."""

    kind: Kind
    storage: Storage
    levels: int | None
    values: NDArray[Any]
    build: Callable[[NDArray[Any], tuple[int, ...]], Codec] | None = None
