"""A parametric family estimated on reference rows: the paper's technical note after Theorem 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from dipriv.errors import InputError, ReferenceRowsError
from dipriv.randomness import FloatArray
from dipriv.references.known import Independent, Normal, match_columns
from dipriv.references.laws import Frozen, as_law
from dipriv.references.protocol import Order, ReferenceRows
from dipriv.schema import Continuous, Discrete, Kind

_NORMAL = "multivariate_normal"
_DISCRETE = ("bernoulli", "geom", "poisson")


@dataclass(frozen=True)
class Parametric:
    """A named scipy.stats family, {column: family}, or "multivariate_normal", with estimated parameters.

    `fixed` holds parameters that are known, by scipy's names: the paper's N(μ, 1) is
    `Parametric("norm", fixed={"scale": 1.0})`. Columns with families of their own are released as independent.

    >>> Parametric({"age": "norm", "visits": "poisson"}).describe()
    'norm, poisson fitted to the reference rows (independent columns)'
    """

    family: str | Mapping[str, str]
    fixed: Mapping[str, float] = field(default_factory=dict)
    order: ClassVar[Order] = None
    source: ClassVar[Literal["rows"]] = "rows"

    def __post_init__(self) -> None:
        if self.family != _NORMAL:
            for family in self._families().values():
                _check_family(family)

    def kinds(self, names: Sequence[str]) -> Mapping[str, Kind]:
        if self.family == _NORMAL:
            return dict.fromkeys(names, Continuous())
        families = match_columns(self._families(), names, "family")
        return {name: Discrete(step=1) if family in _DISCRETE else Continuous() for name, family in families.items()}

    def fit(self, rows: ReferenceRows) -> Independent | Normal:
        if self.family == _NORMAL:
            return Normal.of(rows.v.mean(axis=0), np.atleast_2d(np.cov(rows.v, rowvar=False)))
        families = match_columns(self._families(), rows.names, "family")
        fitted = [
            _estimate(name, families[name], rows.v[:, column], self.fixed) for column, name in enumerate(rows.names)
        ]
        return Independent(tuple(as_law(dist) for dist in fitted))

    def describe(self) -> str:
        if self.family == _NORMAL:
            return "multivariate normal fitted to the reference rows"
        names = ", ".join(self._families().values())
        return f"{names} fitted to the reference rows" + (
            " (independent columns)" if isinstance(self.family, Mapping) else ""
        )

    def _families(self) -> Mapping[str, str]:
        return {"": self.family} if isinstance(self.family, str) else self.family


def _check_family(family: Any) -> None:
    from scipy import stats

    known = family in _DISCRETE or isinstance(getattr(stats, str(family), None), stats.rv_continuous)
    if not (isinstance(family, str) and known):
        raise InputError(
            f"family {family!r} is not known.",
            f"Use a continuous family of scipy.stats, one of {', '.join(_DISCRETE)}, or {_NORMAL!r}.",
        )


def _estimate(name: str, family: str, v: FloatArray, fixed: Mapping[str, float]) -> Frozen:
    """Maximum likelihood; the mean is the maximum-likelihood statistic of all three discrete families."""
    from scipy import stats

    if family in _DISCRETE:
        mean = float(np.ceil(v).mean())  # V = Z - U with U in [0, 1), so Z is its ceiling
        limits = {"bernoulli": (0.0, 1.0), "geom": (1.0, np.inf), "poisson": (0.0, np.inf)}
        low, high = limits[family]
        if not low <= mean <= high or (family == "bernoulli" and np.ceil(v).max() > 1):
            raise ReferenceRowsError(
                f"column {name!r}: the reference rows do not fit the family {family!r}.", "Choose another family."
            )
        return getattr(stats, family)(1.0 / mean if family == "geom" else mean)
    options = {f"f{parameter}": value for parameter, value in fixed.items()}
    try:
        return getattr(stats, family)(*getattr(stats, family).fit(v, **options))
    except (ValueError, TypeError, RuntimeError) as fault:
        del fault  # scipy's message may quote the data
        raise ReferenceRowsError(
            f"column {name!r}: the family {family!r} could not be fitted to the {len(v)} reference rows.",
            "Choose another family, check `fixed`, or use the empirical reference.",
        ) from None
