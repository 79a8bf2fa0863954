"""A way to publish tables, as an audit runs it: a table in, the released rows and where they come from out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._random.bits import Seed
from dipriv.references import Private
from dipriv.release.fitting import FittedMechanism
from dipriv.release.privatize import as_reference_spec, privatize


@dataclass(frozen=True, eq=False)
class ReleasedTable:
    """The released rows, their positions in the table, in order, and with what they were made if that is known.

    `all_protected` says that ε is promised to every row of the table, also to those that are not released.
    """

    data: pa.Table = field(repr=False)
    rows: NDArray[np.intp] = field(repr=False)
    fitted: FittedMechanism | None = field(repr=False, default=None)
    all_protected: bool = False


Publish: TypeAlias = Callable[[pa.Table, Seed], ReleasedTable]


def publisher(epsilon: float, **options: Any) -> Publish:
    """`dipriv.privatize` with these options; columns that pass through unchanged are left out of what it gives.

    >>> publish = publisher(1.0, reference="holdout")
    >>> published = publish(pa.table({"age": range(20, 70)}), 7)
    >>> published.data.num_rows == len(published.rows) < 50
    True
    """
    recipe = as_reference_spec(options.get("reference", "private"), options.get("public"))

    def publish(table: pa.Table, seed: Seed) -> ReleasedTable:
        release = privatize(table, epsilon, seed=seed, **options)
        privatized = [name for name in release.data.column_names if name not in options.get("keep", ())]
        data = release.data.select(privatized)
        return ReleasedTable(
            data, release.secrets.row_positions, release.secrets.mechanism, all_protected=isinstance(recipe, Private)
        )

    return publish
