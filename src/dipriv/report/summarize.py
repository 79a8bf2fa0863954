"""Two tables -> plain data that says how they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dipriv._tables import frames as tables
from dipriv.errors import InputError
from dipriv.guarantee.guarantee import Guarantee
from dipriv.report.columns import column_facts
from dipriv.report.dependence import dependence
from dipriv.report.downstream import downstream
from dipriv.report.facts import Comparison
from dipriv.report.pairing import pair_columns, sample
from dipriv.schema import Schema

if TYPE_CHECKING:
    from dipriv.auditing import Audit


def compare(
    original: Any,
    released: Any,
    *,
    schema: Schema | None = None,
    rows: NDArray[np.intp] | None = None,
    guarantee: Guarantee | dict[str, Any] | None = None,
    fidelity: Mapping[str, float] | None = None,
    target: str | None = None,
    audit: Audit | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare a private table with its release. The result contains statistics of the private table.

    Parameters
    ----------
    original, released : pandas, polars or pyarrow tables; columns that only one has are named and left out.
    schema : what privatized columns were taken as (`release.schema`); for others it is inferred from the original.
    rows : for each released row its row number in the original (`release.secrets.row_positions`); tables of equal
        length are taken to have the same rows in the same order.
    guarantee : the guarantee of the release, as an object or as its `to_dict()`.
    fidelity : the expected correlation of each column with what it was (`release.fidelity`).
    target : a column to regress on the others, in both tables.
    audit : the result of `dipriv.audit`, to be shown with it.
    seed : of the samples that are drawn for tables over 200,000 rows and to see what sampling alone gives.

    Returns
    -------
    Comparison : distances, dependence and a regression, before and after; `dipriv.report.write_report` shows it.

    Raises
    ------
    InputError : the tables have no column in common, or an argument does not fit them.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": range(20, 70), "smokes": [True, False] * 25})
    >>> compare(table, table)
    Comparison(rows=(50, 50), used=(50, 50), paired=True)
    """
    before, after = (_read(table, which) for table, which in ((original, "original"), (released, "release")))
    sampled = sample(before, after, rows, np.random.default_rng([seed, 0]))
    pairs, left_out = pair_columns(before, after, sampled, schema or Schema({}))
    names = [pair.name for pair in pairs]
    _check(before, after, names, target)
    stated = as_guarantee(guarantee)
    changed = [pair.name for pair in pairs if not pair.unchanged]
    privatized = list(dict.fromkeys([*(schema or ()), *changed]))
    with np.errstate(all="ignore"):  # numbers near the largest have no finite moments, which are then left out
        columns = [
            column_facts(pair, fidelity or {}, np.random.default_rng([seed, 1, place]))
            for place, pair in enumerate(pairs)
        ]
        return Comparison(
            rows=(before.rows, after.rows),
            used=(len(sampled.before), len(sampled.after)),
            paired=sampled.mates is not None,
            columns=tuple(columns),
            left_out=tuple(left_out),
            guarantee="" if stated is None else str(stated),
            dependence=dependence(pairs),
            downstream=None if target is None else downstream(pairs, target, privatized or names),
            audit=audit,
        )


def as_guarantee(guarantee: Guarantee | dict[str, Any] | None) -> Guarantee | None:
    """The guarantee itself, or the one that `to_dict` wrote."""
    if guarantee is None or isinstance(guarantee, Guarantee):
        return guarantee
    return Guarantee.from_dict(guarantee)


def _check(before: tables.Table, after: tables.Table, names: list[str], target: str | None) -> None:
    if not names:
        raise InputError(
            f"the original ({len(before.names)} columns) and the release ({len(after.names)} columns) have no column "
            "in common that can be compared.",
            "Compare a table with its own release; column names and types must agree.",
        )
    if target is not None and target not in names:
        raise InputError(
            f"the target {target!r} is not a column that both tables have and that can be compared.",
            "Name a column of both tables.",
        )


def _read(table: Any, which: str) -> tables.Table:
    try:
        return tables.read(table)
    except InputError as error:
        raise InputError(f"the {which}: {error.fault}", error.remedy) from None
