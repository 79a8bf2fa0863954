"""Two tables -> plain data that says how they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dipriv._base.near_names import did_you_mean
from dipriv._base.parallel import in_parallel
from dipriv._tables import frames as tables
from dipriv.errors import InputError
from dipriv.guarantee.guarantee import AssumptionKind, Guarantee
from dipriv.guarantee.wording import largest_correlation
from dipriv.release.result import Release, is_lazy
from dipriv.report.columns import column_facts
from dipriv.report.dependence import dependence
from dipriv.report.distances import FEW_REPEATS, REPEATS
from dipriv.report.downstream import downstream
from dipriv.report.facts import MAX_DETAILED, ColumnFacts, Comparison
from dipriv.report.grades import in_order_of_gravity
from dipriv.report.pairing import Pair, pair_columns, sample
from dipriv.report.rules import rule_facts
from dipriv.schema import SchemaLike, as_schema
from dipriv.sources.stream import ReleasedBatches

if TYPE_CHECKING:
    from dipriv.auditing import Audit
    from dipriv.utility.plan import Forecast
    from dipriv.utility.verdict import Verdict


def compare(
    original: Any,
    released: Any,
    *,
    schema: SchemaLike = None,
    rows: NDArray[np.intp] | None = None,
    guarantee: Guarantee | dict[str, Any] | None = None,
    fidelity: Mapping[str, float] | None = None,
    verdict: Verdict | None = None,
    forecast: Forecast | None = None,
    target: str | None = None,
    audit: Audit | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare a private table with its release. The result contains statistics of the private table.

    Parameters
    ----------
    original : a pandas, polars or pyarrow table.
    released : another one, or what `dipriv.privatize` returned, which has schema, rows, guarantee, fidelity,
        verdict and forecast with it; columns that only one of the tables has are named and left out.
    schema : what privatized columns were taken as (`release.schema`), or what was declared: a `dipriv.Schema`,
        {column: kind}, or the path of a file. For other columns it is inferred from the original.
    rows : for each released row its row number in the original (`release.secrets.row_positions`); tables of equal
        length are taken to have the same rows in the same order.
    guarantee : the guarantee of the release, as an object or as its `to_dict()`.
    fidelity : the expected correlation of each column with what it was (`release.fidelity`).
    verdict : what the release says about itself (`release.verdict`).
    forecast : what more ε would give (`release.forecast`, or from `dipriv.plan`).
    target : a column to regress on the others, in both tables.
    audit : the result of `dipriv.audit`, to be shown with it.
    seed : of the samples that are drawn for large tables, and to see what sampling alone gives.

    Returns
    -------
    Comparison : grades, distances, dependence and a regression, before and after; `comparison.write(path)` shows it.

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
    expected_rows = None
    if isinstance(released, Release):
        schema, fidelity = released.schema if schema is None else schema, fidelity or released.fidelity
        guarantee, verdict = guarantee or released.guarantee, verdict or released.verdict
        forecast = forecast or released.forecast
        rows, expected_rows = row_numbers(released) if rows is None else rows, released.row_counts.read
        released = released_rows(released)
    before, after = (_read(table, which) for table, which in ((original, "original"), (released, "release")))
    if expected_rows not in (None, before.rows):
        raise InputError(
            f"the original has {before.rows:,} rows, and the release was made from {expected_rows:,}.",
            "Compare a release with the table that it was made from.",
        )
    declared = as_schema(schema)
    sampled = sample(before, after, rows, np.random.default_rng([seed, 0]))
    stated = as_guarantee(guarantee)
    said = () if stated is None else stated.assumptions
    new_keys = [name for one in said if one.kind is AssumptionKind.UNIT_RENUMBERED for name in one.names]
    pairs, left_out = pair_columns(before, after, sampled, declared, new_keys)
    names = [pair.name for pair in pairs]
    _check(before, after, names, target)
    bound = None if stated is None else largest_correlation(stated)
    repeats = REPEATS if len(pairs) <= MAX_DETAILED else FEW_REPEATS
    changed = [pair.name for pair in pairs if not pair.unchanged]
    privatized = list(dict.fromkeys([*declared, *changed]))

    def facts_of(numbered: tuple[int, Pair]) -> ColumnFacts:
        place, pair = numbered
        with np.errstate(all="ignore"):  # that of another thread does not hold here
            return column_facts(pair, fidelity or {}, bound, np.random.default_rng([seed, 1, place]), repeats)

    with np.errstate(all="ignore"):  # numbers near the largest have no finite moments, which are then left out
        columns = in_order_of_gravity(in_parallel(facts_of, enumerate(pairs)))
        worst = {facts.name for facts in columns[:MAX_DETAILED]}
        return Comparison(
            rows=(before.rows, after.rows),
            used=(len(sampled.before), len(sampled.after)),
            paired=sampled.mates is not None,
            columns=columns,
            left_out=tuple(left_out),
            guarantee="" if stated is None else str(stated),
            dependence=dependence(
                [pair for pair in pairs if pair.name in worst], [name for name in names if name not in worst]
            ),
            downstream=None if target is None else downstream(pairs, target, privatized or names),
            verdict=verdict,
            forecast=forecast,
            audit=audit,
            repeats=repeats,
            rules=rule_facts(before, after, declared),
        )


def released_rows(release: Release[Any]) -> Any:
    """The rows of a release as a table in memory."""
    if isinstance(release.data, ReleasedBatches):
        return release.data.to_table()
    if is_lazy(release.data):
        raise InputError(
            "the release: its rows are computed on a cluster.", "Write it, and compare the files: dipriv compare."
        )
    return release.data


def row_numbers(release: Release[Any]) -> NDArray[np.intp] | None:
    """The row of the original that each released row was made from; None where it is not known."""
    try:
        return release.secrets.row_positions
    except InputError:  # a copy of the release, or one of a stream with a hold-out
        return None


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
            f"the target {target!r} is not a column that both tables have and that can be compared"
            f"{did_you_mean(target, names)}.",
            "Name a column of both tables.",
        )


def _read(table: Any, which: str) -> tables.Table:
    try:
        return tables.read(table)
    except InputError as error:
        raise InputError(f"the {which}: {error.fault}", error.remedy, command=error.command) from None
