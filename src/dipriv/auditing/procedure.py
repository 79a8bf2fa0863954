"""The release procedure under audit: a table in, the released rows and their positions out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._random.bits import Seed
from dipriv.release.fitting import FittedMechanism
from dipriv.release.privatize import as_reference_spec, privatize, uses_holdout

if TYPE_CHECKING:
    from dipriv.references import Private, ReferenceSpec


@dataclass(frozen=True, eq=False)
class ReleasedTable:
    """The released rows, their positions in the input table, and the fitted mechanism if it is known.

    `all_protected` says that the guarantee covers every row of the input, including rows that are held out.
    """

    data: pa.Table = field(repr=False)
    row_positions: NDArray[np.intp] = field(repr=False)
    fitted: FittedMechanism | None = field(repr=False, default=None)
    all_protected: bool = False


ReleaseProcedure: TypeAlias = Callable[[pa.Table, Seed], ReleasedTable]


@dataclass(frozen=True, eq=False)
class Privatize:
    """`dipriv.privatize` with fixed options, as a release procedure. Columns that pass through are left out.

    >>> release = Privatize(1.0, {"reference": "holdout"})
    >>> released = release(pa.table({"age": range(20, 70)}), 7)
    >>> released.data.num_rows == len(released.row_positions) < 50
    True
    """

    epsilon: float
    options: dict[str, Any] = field(repr=False, default_factory=dict)

    def __call__(self, table: pa.Table, seed: Seed) -> ReleasedTable:
        release = privatize(table, self.epsilon, seed=seed, **self.options)
        privatized = [name for name in release.data.column_names if name not in self.options.get("keep", ())]
        return ReleasedTable(
            release.data.select(privatized), release.rows, release.fitted, all_protected=self.learns_privately
        )

    def with_options(self, **options: Any) -> Privatize:
        """The same procedure with some options replaced."""
        return replace(self, options=self.options | options)

    @property
    def learns_privately(self) -> bool:
        """Whether the reference is learned under differential privacy, so that it costs a part of ε."""
        return self._spec.source == "private"

    @property
    def uses_holdout(self) -> bool:
        """Whether the reference is fitted on rows that are held out."""
        return uses_holdout(self._spec, self.options.get("public"), self.options.get("holdout"))

    def row_epsilon(self, n_columns: int) -> float:
        """The part of ε that the noise on released rows may cost; the rest is for learning the reference from them.

        It follows from the options alone. The fitted kernel, which is under audit, is not asked.
        """
        if not self.learns_privately or self.uses_holdout:
            return self.epsilon
        share = cast("Private", self._spec).share(n_columns)
        return float(Fraction(self.epsilon) * (1 - share))

    @property
    def _spec(self) -> ReferenceSpec:
        return as_reference_spec(self.options.get("reference", "private"), self.options.get("public"))
