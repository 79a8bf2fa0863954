"""What is learned from a table: nothing of rows that are only to be released, and of the others no more than ε allows.

Reference and codecs are looked at as an attacker may who has them: by the ranks of probes, rows that are fixed before.
Where rows must have no say, all of them are replaced and the same bits drawn again: every rank must stay as it is.
Where they may have some, one row is one of two records, and fits with bits of their own tell these apart, or do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._arrays import FloatArray
from dipriv._random.bits import source
from dipriv._tables import frames as tables
from dipriv.auditing.canaries import couples_of, ends_of, extremes, lower_half
from dipriv.auditing.events import best_event, learn, shapes_of
from dipriv.auditing.intervals import epsilon_of_draws
from dipriv.auditing.mechanism import Progress
from dipriv.auditing.neighbours import ranks
from dipriv.auditing.procedure import Publish, ReleasedTable
from dipriv.auditing.results import Bound, Exact
from dipriv.errors import InputError
from dipriv.schema import Schema

MOST_ROWS, PROBES = 500, 16
"""Tables that are fitted again and again are no larger; so many of their rows are probes."""
MOST_FITS, FEWEST_FITS, FITS_OF_ALL_COLUMNS = 120, 40, 360
"""In each of two worlds: the first half to choose an event by, the other to count it."""
LARGEST_SEED = 2**63
Rows: TypeAlias = NDArray[np.intp]


def audit_untouched(publish: Publish, table: pa.Table, epsilon: float, rng: np.random.Generator) -> Exact:
    """Whether reference and codecs stay as they are, to the last digit, when every released row is replaced.

    Rows that are held out have lower cells only: whatever is known of higher ones is known from released rows. Labels
    of text columns are public: none of them vanishes.
    """
    seed = int(rng.integers(LARGEST_SEED))
    plan = publish(table, seed)
    names, held = plan.data.column_names, np.setdiff1d(np.arange(table.num_rows), plan.rows)
    low = _with(table, names, held, lower_half, rng)
    try:
        before = publish(low, seed)
    except InputError:  # too little to learn from
        low, before = table, plan
    other = _with(low, names, plan.rows, ends_of, rng)
    after = publish(other, seed)
    probes = pa.concat_tables([_some(table, rng), _some(other, rng)])
    same = (
        np.array_equal(before.rows, after.rows)
        and _schema(before) == _schema(after)
        and np.array_equal(_ranks(before, probes), _ranks(after, probes), equal_nan=True)
    )
    return Exact("what is learned, when all released rows are replaced", epsilon, 0.0 if same else math.inf)


def audit_learning(
    publish: Publish,
    table: pa.Table,
    claimed: float,
    *,
    confidence: float = 0.95,
    fits: int | None = None,
    rng: np.random.Generator,
    progress: Progress = None,
) -> Bound | None:
    """A lower bound on the ε of what is learned from a row; None where every row is the only one with some label.

    If rows are held out to be learned from, they must be the same ones in all releases: `publish` with a fixed split.
    It is far below ε where noise is as it should be, for fits are few; noise that is missing or of no account shows.
    """
    few = _some(table, rng)
    plan = publish(few, int(rng.integers(LARGEST_SEED)))
    names, held = plan.data.column_names, np.setdiff1d(np.arange(few.num_rows), plan.rows)
    place = _with_common_labels(few, names, held if len(held) else plan.rows)
    if place is None:
        return None
    canary = extremes(np.array([place]), [couples_of(few, names, rng)[0]])
    worlds = [canary.plant(few, np.array([coin])) for coin in (False, True)]
    probes = pa.concat_tables([*(world.slice(place, 1) for world in worlds), few.slice(0, PROBES)])
    count = fits or usual_fits(len(names))
    seen: list[list[FloatArray]] = [[], []]
    for number in range(count):
        for world, found in zip(worlds, seen, strict=True):
            found.append(_ranks(publish(world, int(rng.integers(LARGEST_SEED))), probes).ravel())
        if progress is not None:
            progress((number + 1) / count)
    one, other = (np.stack(found) for found in seen)
    return _bound(one, other, claimed, confidence)


def usual_fits(columns: int) -> int:
    """How many fits there are in each world: fewer for many columns, which take long."""
    return int(np.clip(FITS_OF_ALL_COLUMNS // columns, FEWEST_FITS, MOST_FITS))


def _bound(one: FloatArray, other: FloatArray, claimed: float, confidence: float) -> Bound:
    """A score is learned from a quarter of the fits, its threshold from another, and both are counted in the rest."""
    quarter = len(one) // 4
    first, second, last = slice(quarter), slice(quarter, 2 * quarter), slice(2 * quarter, None)
    features = np.flatnonzero((one[first] != one[first][0]).any(axis=0) | (other[first] != one[first][0]).any(axis=0))
    best, event, side = -math.inf, None, 0
    for shape in shapes_of((tuple(features.tolist()),)) if len(features) else []:
        score = learn(one[first], other[first], shape)
        for turn, (likely, rare) in enumerate(((one, other), (other, one))):
            foreseen, found = best_event(score.turned() if turn else score, likely[second], rare[second])
            if foreseen > best:
                best, event, side = foreseen, found, turn
    worlds = (one[last], other[last]) if side == 0 else (other[last], one[last])
    hits = [0, 0] if event is None else [event.hits(world) for world in worlds]
    lower = epsilon_of_draws(hits[0], len(worlds[0]), hits[1], len(worlds[1]), confidence)
    words = f"ranks of fixed rows: {hits[0]} of {len(worlds[0])} fits against {hits[1]} of {len(worlds[1])}"
    return Bound("what is learned from a row", claimed, lower, confidence, len(one) + len(other), words)


def _schema(published: ReleasedTable) -> Schema | None:
    """Levels, atoms, steps and bounds, as they are told with a release."""
    return None if published.fitted is None else published.fitted.schema


def _ranks(published: ReleasedTable, probes: pa.Table) -> FloatArray:
    """Where the probes stand by what was learned, their places inside levels always the same."""
    if published.fitted is None:
        return np.zeros((probes.num_rows, 1))
    return ranks(published.fitted, tables.read(probes), source(0))


def _with(
    table: pa.Table, names: list[str], rows: Rows, cells: Callable[[tables.Table, str], Rows], rng: np.random.Generator
) -> pa.Table:
    """The table in which these rows have, column by column, any of these rows' cells; the first of each label stays."""
    whole = tables.read(table)
    for name in names:
        is_label = whole.column(name).storage.family == "label"
        moved = np.setdiff1d(rows, _first_of_labels(whole.array(name))) if is_label else rows
        index = np.arange(table.num_rows)
        index[moved] = rng.choice(cells(whole, name), len(moved))
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), table.column(name).take(pa.array(index)))
    return table


def _some(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    """The table, or some of its rows where it has many."""
    if table.num_rows <= MOST_ROWS:
        return table
    return table.take(pa.array(rng.choice(table.num_rows, MOST_ROWS, replace=False)))


def _with_common_labels(table: pa.Table, names: list[str], rows: Rows) -> int | None:
    """One of these rows that can be replaced without a label vanishing, if there is one."""
    whole = tables.read(table)
    common = np.ones(table.num_rows, dtype=bool)
    for name in names:
        if whole.column(name).storage.family == "label":
            codes = _codes(whole.array(name))
            common &= np.bincount(codes)[codes] > 1
    return int(rows[np.argmax(common[rows])]) if common[rows].any() else None


def _first_of_labels(labels: pa.Array) -> Rows:
    return np.unique(_codes(labels), return_index=True)[1]


def _codes(labels: pa.Array) -> Rows:
    """The number of each row's label, 0 for nulls."""
    found = labels if pa.types.is_dictionary(labels.type) else labels.dictionary_encode()
    codes: Rows = found.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
    return codes + 1
