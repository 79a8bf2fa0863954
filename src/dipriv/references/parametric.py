"""A parametric family estimated on reference rows: the paper's technical note after Theorem 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv.errors import InputError, ReferenceDataError
from dipriv.references._models.distributions import Frozen, as_distribution
from dipriv.references._models.independent import Independent
from dipriv.references._models.normal import Normal
from dipriv.references.known import match_columns
from dipriv.references.protocol import Order, ReferenceRows
from dipriv.schema import Continuous, Discrete, Kind

_NORMAL = "multivariate_normal"
_DISCRETE = ("bernoulli", "binom", "geom", "nbinom", "poisson")


@dataclass(frozen=True)
class Parametric:
    """A parametric family whose parameters are estimated on reference rows, by maximum likelihood.

    Parameters
    ----------
    family : the name of a family of scipy.stats for a table of one column; {column: family}, whose columns are released
        as independent; or "multivariate_normal".
    fixed : known parameters by scipy's names, {parameter: value}, or {column: {parameter: value}} with several
        families. The paper's N(μ, 1) is `Parametric("norm", fixed={"scale": 1.0})`; "binom" needs its `n`.

    Raises
    ------
    InputError : a family or a parameter is unknown.

    Examples
    --------
    >>> Parametric({"age": "norm", "visits": "poisson"}).describe()
    'norm, poisson fitted to the reference rows (independent columns)'
    """

    family: str | Mapping[str, str]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    order: ClassVar[Order] = None
    by: ClassVar[None] = None
    uses_counts: ClassVar[bool] = False
    source: ClassVar[Literal["rows"]] = "rows"

    def __post_init__(self) -> None:
        if self.family != _NORMAL:
            for name, family in self._families().items():
                _check_family(family, self._fixed_of(name))

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
            _estimate(name, families[name], rows.v[:, column], self._fixed_of(name))
            for column, name in enumerate(rows.names)
        ]
        return Independent(tuple(as_distribution(dist) for dist in fitted))

    def describe(self) -> str:
        if self.family == _NORMAL:
            return "multivariate normal fitted to the reference rows"
        names = ", ".join(self._families().values())
        return f"{names} fitted to the reference rows" + (
            " (independent columns)" if isinstance(self.family, Mapping) else ""
        )

    def exposes(self, columns: int) -> bool:
        return False

    def _fixed_of(self, name: str) -> Mapping[str, float]:
        return self.fixed if isinstance(self.family, str) else self.fixed.get(name, {})

    def _families(self) -> Mapping[str, str]:
        return {"": self.family} if isinstance(self.family, str) else self.family


def _check_family(family: Any, fixed: Mapping[str, float]) -> None:
    from scipy import stats

    known = family in _DISCRETE or isinstance(getattr(stats, str(family), None), stats.rv_continuous)
    if not (isinstance(family, str) and known):
        raise InputError(
            f"family {family!r} is not known.",
            f"Use a continuous family of scipy.stats, one of {', '.join(_DISCRETE)}, or {_NORMAL!r}.",
        )
    shapes = getattr(stats, family).shapes
    parameters = [*(shapes.replace(" ", "").split(",") if shapes else []), "loc"]
    parameters += [] if family in _DISCRETE else ["scale"]
    if unknown := sorted(set(fixed) - set(parameters)):
        raise InputError(
            f"family {family!r} has no parameter {unknown[0]!r} to fix.", f"Use one of {', '.join(parameters)}."
        )
    if family == "binom" and "n" not in fixed:
        raise InputError("family 'binom' needs its number of trials.", 'Give fixed={"n": ...}.')


def _estimate(name: str, family: str, v: FloatArray, fixed: Mapping[str, float]) -> Frozen:
    """The maximum-likelihood estimate. Scipy's messages about a failure may quote the data: they are dropped."""
    from scipy import stats

    try:
        if family in _DISCRETE:
            parameters = dict(fixed)
            counts = np.ceil(v) - parameters.get("loc", 0.0)  # V = Z - U with U in [0, 1), so Z is its ceiling
            parameters.update({k: x for k, x in _discrete_estimate(family, counts, fixed).items() if k not in fixed})
            estimated = getattr(stats, family)(**parameters)
            fits = bool(np.all(estimated.pmf(np.ceil(v)) > 0))
        else:
            options = {f"f{parameter}": value for parameter, value in fixed.items()}
            estimated = getattr(stats, family)(*getattr(stats, family).fit(v, **options))
            fits = bool(np.isfinite(estimated.ppf(0.5)))
    except (ValueError, TypeError, RuntimeError, ArithmeticError):
        fits = False
    if not fits:
        raise ReferenceDataError(
            f"column {name!r}: the family {family!r} does not fit the {len(v)} reference rows.",
            "Choose another family, check `fixed`, or use the empirical reference.",
        ) from None
    return estimated


def _discrete_estimate(family: str, counts: FloatArray, fixed: Mapping[str, float]) -> dict[str, float]:
    """Maximum likelihood: a function of the mean, but for the size of the negative binomial."""
    mean = float(counts.mean())
    if family == "nbinom":
        n = float(fixed.get("n", 0.0)) or _negative_binomial_size(counts)
        return {"n": n, "p": n / (n + mean)}
    return {
        "bernoulli": {"p": mean},
        "binom": {"p": mean / fixed.get("n", 1.0)},
        "geom": {"p": 1.0 / max(mean, 1.0)},
        "poisson": {"mu": mean},
    }[family]


def _negative_binomial_size(counts: FloatArray) -> float:
    from scipy import optimize, stats

    mean = float(counts.mean())

    def loss(log_n: float) -> float:
        n = np.exp(log_n)
        return -float(stats.nbinom.logpmf(counts, n, n / (n + mean)).sum())

    return float(np.exp(optimize.minimize_scalar(loss, bounds=(-7.0, 14.0), method="bounded").x))
