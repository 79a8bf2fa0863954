"""`dipriv.plan`: what a release will be good for, before ε is spent.

`public_facts` is the only function here that sees the table; what it returns is all that the forecast is computed from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack, cast

from dipriv._base.progress import Progress, no_progress
from dipriv._tables.codes import Recoding
from dipriv.errors import InputError
from dipriv.references import LearnableSpec
from dipriv.release.bootstrap import BootstrapModel
from dipriv.release.columns import columns_of
from dipriv.release.labels import check_labels, labels_of, read_labels
from dipriv.release.options import OptionTypes, ReleaseOptions
from dipriv.release.rules import Rewriting, bind
from dipriv.sources import open_source
from dipriv.sources.protocol import RowSource, Scan
from dipriv.utility.forecast import PublicFacts, Setting
from dipriv.utility.plan import Forecast, plan_release

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
FACTORS, MAX_EPSILON = (1, 2, 4, 8), 16.0
"""Times its ε, but not beyond the second, a release is compared with others."""
WITHOUT_EFFECT = ("ledger", "dataset", "new_dataset", "seed", "split")
"""Options of a release that a forecast does not depend on."""


def plan(data: Any, epsilon: float | Sequence[float] = EPSILONS, **options: Unpack[OptionTypes]) -> Forecast:
    """What a release will be good for at several ε: expected errors of columns, pairs, and what is left of a row.

    Nothing is spent, and nothing but public facts is used: the number of rows, the names and types of the columns, the
    schema and the options (and, with `labels="public"`, how many labels there are). The forecast may be published.

    Parameters
    ----------
    data : as for `dipriv.privatize`.
    epsilon : one privacy budget, or several to compare.
    options : as for `dipriv.privatize`, for a private reference.

    Returns
    -------
    Forecast : for each ε, the expected error of each column's distribution, how many pairs of columns are measured and
        how well, and the correlation of released with true rows; what other options would change; a recommendation.

    Raises
    ------
    InputError : options do not fit each other or the table, or have no effect on a forecast.
    SchemaError : the schema contradicts the table, or the type of a column is undecided.
    StorageError : rows cannot be read.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": range(20, 70), "smokes": [True, False] * 25})
    >>> plan(table, 4.0).names
    ('age', 'smokes')
    """
    return plan_source(open_source(data, *ReleaseOptions(1.0, **options).dialects), epsilon, **options)


def plan_source(
    source: RowSource[Any],
    epsilon: float | Sequence[float],
    progress: Progress = no_progress,
    **options: Unpack[OptionTypes],
) -> Forecast:
    """The forecast for the rows of a source."""
    for name in WITHOUT_EFFECT:
        if options.get(name) is not None:
            raise InputError(
                f"{name} is given, but a forecast spends nothing and draws nothing: it has no effect.",
                f"Leave {name} out." if name != "split" else "Give its share as holdout.",
            )
    asked = [epsilon] if isinstance(epsilon, int | float) else list(epsilon)
    if not asked:
        raise InputError("no epsilon is given.", "Give one or several, or leave it out.")
    each = sorted((ReleaseOptions(one, **options) for one in asked), key=lambda one: one.epsilon)
    first = each[0]
    if first.spec.source != "private":
        raise InputError(
            f"a forecast is made for a private reference, not for this one ({first.spec.describe()}).",
            'Leave reference and public out, or use reference="private".',
            command="Leave out what belongs to another reference.",
        )
    facts, rewriting = _facts_and_rules(source, first, progress)
    settings = [
        Setting(one.row_epsilon, one.row_delta, _spec(one, rewriting), one.kernel_spec, one.holdout) for one in each
    ]
    found = plan_release(facts, settings, first.total_delta)
    return _of_units(found, [one.epsilon for one in each])


def public_facts(source: RowSource[Any], options: ReleaseOptions, progress: Progress = no_progress) -> PublicFacts:
    """The number of rows, and the names, types, declared kinds and public labels of the columns that are learned."""
    return _facts_and_rules(source, options, progress)[0]


def _facts_and_rules(
    source: RowSource[Any], options: ReleaseOptions, progress: Progress
) -> tuple[PublicFacts, Rewriting | None]:
    names = options.privatized(source.column_names)
    declared = options.declared(names)
    stated = options.rules(names, source.column_names)
    rules = options.type_rules(names, declared)
    spec = cast(LearnableSpec, options.spec)
    reads_labels = spec.labels == "public"
    rows = source.scan(Scan(names, counted=reads_labels, types=rules, progress=progress))
    try:
        columns, declared = columns_of(rows, names, declared)
        rewriting = None
        if stated:
            rewriting = bind(stated, columns, declared)
            columns, declared = rewriting.learned(), rewriting.learned_schema()
        labels, unlisted = labels_of(columns, declared)
        check_labels(unlisted, spec.labels, options.row_delta)
        read = tuple(column.name for column in unlisted) if reads_labels else ()
        if read:
            every = rows.select(None, None, None, options.bits())
            labels |= read_labels(unlisted, rows.countable(every, Recoding(tuple(columns))))
        numeric = tuple(column.numeric(labels.get(column.name)) for column in columns)
        if rewriting is not None:
            numeric = tuple(map(rewriting.bounded, numeric))
        return PublicFacts(rows.n_rows, numeric, declared, read), rewriting
    finally:
        rows.close()


def forecast_of(model: BootstrapModel, delta: float) -> Forecast:
    """What more ε would have given: from the public facts and the options of a release alone; `delta` is its δ."""
    columns = [column.facts for column in model.columns]
    labels, unlisted = labels_of(columns, model.declared)
    read = tuple(column.name for column in unlisted) if model.spec.labels == "public" else ()
    labels |= {name: found for name in read if (found := model.column(name).labels) is not None}
    rows = model.n_learned + (model.n_released if model.disjoint else 0)
    numeric = tuple(model.numeric(column, labels.get(column.name)) for column in model.columns)
    holdout = model.n_learned / rows if model.disjoint else None
    epsilons = [model.epsilon * factor for factor in FACTORS if factor == 1 or model.epsilon * factor <= MAX_EPSILON]
    settings = [Setting(epsilon, model.delta, model.spec, model.kernel, holdout) for epsilon in epsilons]
    return plan_release(PublicFacts(rows, numeric, model.declared, read), settings, delta)


def _spec(options: ReleaseOptions, rewriting: Rewriting | None) -> LearnableSpec:
    return cast(LearnableSpec, options.spec if rewriting is None else options.spec_for(rewriting))


def _of_units(found: Forecast, epsilons: Sequence[float]) -> Forecast:
    """The same forecast with the ε that the guarantee will state: with a privacy unit, that of all rows of a person."""
    stated = dict(zip((one.epsilon for one in found.epsilons), epsilons, strict=True))
    return replace(
        found,
        epsilons=tuple(replace(one, epsilon=stated[one.epsilon]) for one in found.epsilons),
        recommended=None if found.recommended is None else stated[found.recommended],
        changes=tuple(
            replace(one, forecast=replace(one.forecast, epsilon=stated[one.forecast.epsilon])) for one in found.changes
        ),
    )
