"""A distribution that is known beforehand: DIP then keeps it exactly (Theorem 1), and every row is released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from dipriv._base.near_names import did_you_mean
from dipriv.errors import InputError
from dipriv.references._models.distributions import Distribution, Frozen, Mixture, as_distribution
from dipriv.references._models.independent import Independent
from dipriv.references._models.normal import Normal
from dipriv.references.protocol import Order, ReferenceRows
from dipriv.schema import Continuous, Kind


@dataclass(frozen=True, eq=False)
class Known:
    """A known distribution, stated without looking at the rows.

    Parameters
    ----------
    dist : a frozen distribution of scipy.stats or a `Mixture` for a table of one column; {column: distribution}, whose
        columns are released as independent; or a frozen multivariate normal.

    Raises
    ------
    InputError : it is none of these.

    Examples
    --------
    >>> from scipy import stats
    >>> Known({"age": stats.norm(40, 12), "visits": stats.poisson(3)}).describe()
    'known distribution (independent columns)'
    """

    dist: Frozen = field(repr=False)
    _marginals: Mapping[str, Distribution] = field(init=False, repr=False, default_factory=dict)
    order: ClassVar[Order] = None
    by: ClassVar[None] = None
    uses_counts: ClassVar[bool] = False
    source: ClassVar[Literal["nothing"]] = "nothing"

    def __post_init__(self) -> None:
        dists = {} if _is_normal(self.dist) else self._dists()
        marginals = {name: as_distribution(dist) for name, dist in dists.items()}
        object.__setattr__(self, "_marginals", marginals)

    def kinds(self, names: Sequence[str]) -> Mapping[str, Kind]:
        if _is_normal(self.dist):
            if len(names) != len(self.dist.mean):
                raise InputError(
                    f"the known normal distribution has {len(self.dist.mean)} columns, the table {len(names)}.",
                    "Choose the table's columns with columns=[...], in the order of the distribution.",
                )
            return dict.fromkeys(names, Continuous())
        return {name: known.kind for name, known in match_columns(self._marginals, names, "distribution").items()}

    def fit(self, rows: ReferenceRows) -> Independent | Normal:
        if not _is_normal(self.dist):
            return Independent(tuple(match_columns(self._marginals, rows.names, "distribution").values()))
        return Normal.of(self.dist.mean, self.dist.cov)

    def describe(self) -> str:
        if _is_normal(self.dist):
            return "known distribution (multivariate normal)"
        return "known distribution" + (" (independent columns)" if isinstance(self.dist, Mapping) else "")

    def exposes(self, columns: int) -> bool:
        return False

    def _dists(self) -> Mapping[str, Frozen]:
        return self.dist if isinstance(self.dist, Mapping) else {"": self.dist}


def match_columns(given: Mapping[str, Any], names: Sequence[str], what: str) -> dict[str, Any]:
    """{column: given}, where a single unnamed entry means the only column of the table."""
    if "" in given and len(given) == 1:
        if len(names) != 1:
            raise InputError(
                f"one {what} is given for {len(names)} columns.",
                f"Give a {what} for each, {{column: {what}}}, or a multivariate normal.",
            )
        return {names[0]: given[""]}
    if lacking := [name for name in names if name not in given]:
        raise InputError(
            f"column {lacking[0]!r} has no {what} ({len(lacking)} of {len(names)} columns lack one).",
            "Give one for each column, or choose columns with columns=[...].",
        )
    if extra := [name for name in given if name not in names]:
        raise InputError(
            f"a {what} is given for {extra[0]!r}, which is not a column{did_you_mean(extra[0], names)}.",
            "Remove or rename it.",
        )
    return {name: given[name] for name in names}


def _is_normal(dist: Frozen) -> bool:
    if isinstance(dist, (Mapping, Mixture)):
        return False
    from scipy.stats import multivariate_normal

    return isinstance(dist, type(multivariate_normal()))
