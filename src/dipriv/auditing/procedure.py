"""The release procedure under audit: a table in, the released rows and their positions out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._random.bits import Seed
from dipriv.release.fitting import FittedMechanism
from dipriv.release.options import ReleaseOptions
from dipriv.release.plan import Plan, prepare
from dipriv.release.result import Release
from dipriv.sources.contribution_bound import ContributionBound
from dipriv.sources.in_memory import TableSource


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
        release = self.release(table, seed)
        privatized = [name for name in release.data.column_names if name in release.schema]
        secrets = release.secrets
        return ReleasedTable(
            release.data.select(privatized),
            secrets.row_positions,
            secrets.mechanism,
            all_protected=self.learns_privately,
        )

    def release(self, table: pa.Table, seed: Seed) -> Release[pa.Table]:
        """One release of a table, as `dipriv.privatize` gives it."""
        return self._plan(table, seed).run()

    def with_options(self, **options: Any) -> Privatize:
        """The same procedure with some options replaced."""
        return replace(self, options=self.options | options)

    @property
    def learns_privately(self) -> bool:
        """Whether the reference is learned under differential privacy, so that it costs a part of ε."""
        return self._asked(None).spec.source == "private"

    @property
    def uses_holdout(self) -> bool:
        """Whether the reference is fitted on rows that are held out."""
        return self._asked(None).uses_holdout

    @property
    def first_measured(self) -> set[str]:
        """The columns that a private reference measures first."""
        spec = self._asked(None).spec
        target = getattr(spec, "target", None)
        named = {name for pair in getattr(spec, "pairs", ()) for name in pair}
        return named if target is None else named | {target}

    def row_epsilon(self, table: pa.Table) -> float:
        """The part of ε that the noise on released rows may cost; the rest is for learning the reference from them.

        It is what the plan says before anything is fitted. The fitted kernel, which is under audit, is not used.
        """
        return self._plan(table, None).fit_plan.row_epsilon

    @property
    def unit(self) -> ContributionBound | None:
        """Whose rows share ε, if the guarantee is that of a person."""
        return self._asked(None).contribution_bound

    def budget_of_a_row(self, table: pa.Table) -> tuple[Fraction, float]:
        """The part of ε that learning from one row may cost, and the δ of a row, as the plan states them."""
        plan = self._plan(table, None)
        delta = plan.guarantee.delta if self.unit is None else float(plan.fit_plan.delta)
        return plan.fit_plan.reference_epsilon, delta

    def delta(self, table: pa.Table) -> float:
        """The δ of the guarantee, as the plan states it before anything is fitted."""
        return self._plan(table, None).guarantee.delta

    def labels_found(self, table: pa.Table) -> tuple[str, ...]:
        """The columns whose labels are found under differential privacy: nothing declares them."""
        return self._plan(table, None).fit_plan.labels_found

    def _asked(self, seed: Seed) -> ReleaseOptions:
        return ReleaseOptions(self.epsilon, seed=seed, **self.options)

    def _plan(self, table: pa.Table, seed: Seed) -> Plan[pa.Table]:
        return prepare(TableSource.open(table), self._asked(seed))
