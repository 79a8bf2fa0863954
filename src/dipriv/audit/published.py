"""A way to publish tables, as an audit runs it: a table in, the released rows and where they come from out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv.fitting import Fitted
from dipriv.randomness import Rng
from dipriv.release import privatize


@dataclass(frozen=True, eq=False)
class Published:
    """The released rows, their positions in the table, in order, and with what they were made if that is known."""

    data: pa.Table = field(repr=False)
    rows: NDArray[np.intp] = field(repr=False)
    fitted: Fitted | None = field(repr=False, default=None)


Publish: TypeAlias = Callable[[pa.Table, Rng], Published]


def publisher(epsilon: float, **options: Any) -> Publish:
    """`dipriv.privatize` with these options; columns that pass through unchanged are left out of what it gives.

    >>> publish = publisher(1.0, reference="holdout")
    >>> published = publish(pa.table({"age": range(20, 70)}), 7)
    >>> published.data.num_rows == len(published.rows) < 50
    True
    """

    def publish(table: pa.Table, rng: Rng) -> Published:
        release = privatize(table, epsilon, rng=rng, **options)
        privatized = [name for name in release.data.column_names if name not in options.get("keep", ())]
        return Published(release.data.select(privatized), release.rows, release.fitted)

    return publish
