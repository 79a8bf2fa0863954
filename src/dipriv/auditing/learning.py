"""Audit of what the reference and the codecs learn from the table.

The attacker has the fitted reference and codecs, and observes the ranks of fixed probe rows under them. If released
rows must not be learned from, all of them are replaced and the fit is repeated with the same random bits: every rank
must stay the same. If they may be learned from under ε, one row is one of two records (neighbouring datasets), and
repeated fits with independent random bits give a lower bound on ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.progress import Progress, no_progress
from dipriv._random.bits import source
from dipriv._tables import frames as tables
from dipriv.auditing.canaries import ends_of, extremes, lower_half, record_pairs
from dipriv.auditing.events import best_event, learn, shapes_of
from dipriv.auditing.intervals import epsilon_of_draws
from dipriv.auditing.neighbours import ranks
from dipriv.auditing.procedure import ReleasedTable, ReleaseProcedure
from dipriv.auditing.results import Bound, Exact, Scope
from dipriv.errors import InputError
from dipriv.schema import Schema

MAX_ROWS = 2000
"""The largest table that is fitted repeatedly: with fewer rows labels would be below their thresholds."""
N_PROBES = 16
"""Rows of the table among the probes."""
MAX_FITS = 120
"""Fits under each of two neighbouring datasets: the first half to choose an event, the second to count it."""
MIN_FITS = 40
"""The smallest number of such fits."""
FITS_TIMES_COLUMNS = 360
"""In between, the number of fits is this divided by the number of columns."""
MAX_SEED = 2**63
Rows: TypeAlias = NDArray[np.intp]


def audit_independence(release: ReleaseProcedure, table: pa.Table, epsilon: float, rng: np.random.Generator) -> Exact:
    """Whether reference and codecs stay the same, to the last digit, when every released row is replaced.

    Held-out rows get values of the lower half only, so any knowledge of higher values comes from released rows. The
    labels of text columns are public: each of them stays in the table.
    """
    seed = int(rng.integers(MAX_SEED))
    first = release(table, seed)
    names, held_out = first.data.column_names, np.setdiff1d(np.arange(table.num_rows), first.row_positions)
    low = _replaced(table, names, held_out, lower_half, rng)
    try:
        before = release(low, seed)
    except InputError:  # too little to learn from
        low, before = table, first
    changed = _replaced(low, names, first.row_positions, ends_of, rng)
    after = release(changed, seed)
    probes = pa.concat_tables([sample_rows(table, rng), sample_rows(changed, rng)])
    same = (
        np.array_equal(before.row_positions, after.row_positions)
        and _schema(before) == _schema(after)
        and np.array_equal(_ranks(before, probes), _ranks(after, probes), equal_nan=True)
    )
    what = "what is learned, when all released rows are replaced"
    return Exact(what, epsilon, 0.0 if same else math.inf, scope=Scope.LEARNING)


def audit_learning(
    release: ReleaseProcedure,
    table: pa.Table,
    claimed: float,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    fits: int | None = None,
    rng: np.random.Generator,
    progress: Progress = no_progress,
) -> Bound | None:
    """A lower bound on the ε of learning, at its δ, from repeated fits under two neighbouring datasets.

    Rows that are held out for learning must be the same ones in all fits, so `release` needs a fixed split. With
    correct noise the bound is far below ε, because fits are few. It detects missing or negligible noise. The result is
    None if every row is the only one with some label, so that none can be replaced.
    """
    small = sample_rows(table, rng)
    first = release(small, int(rng.integers(MAX_SEED)))
    names, held_out = first.data.column_names, np.setdiff1d(np.arange(small.num_rows), first.row_positions)
    position = _replaceable(small, names, held_out if len(held_out) else first.row_positions)
    if position is None:
        return None
    canary = extremes(np.array([position]), [record_pairs(small, names, rng)[0]])
    d, d_prime = (canary.plant(small, np.array([coin])) for coin in (False, True))
    probes = pa.concat_tables([d.slice(position, 1), d_prime.slice(position, 1), small.slice(0, N_PROBES)])
    count = fits or default_fits(len(names))
    observed: tuple[list[FloatArray], list[FloatArray]] = [], []
    for number in range(count):
        for dataset, ranks_of_probes in zip((d, d_prime), observed, strict=True):
            ranks_of_probes.append(_ranks(release(dataset, int(rng.integers(MAX_SEED))), probes).ravel())
        progress("refitting the reference", number + 1, count)
    return _bound(np.stack(observed[0]), np.stack(observed[1]), claimed, delta, confidence)


def sample_rows(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    """The table, or a random sample of its rows where it is large."""
    if table.num_rows <= MAX_ROWS:
        return table
    return table.take(pa.array(rng.choice(table.num_rows, MAX_ROWS, replace=False)))


def default_fits(n_columns: int) -> int:
    """The number of fits under each dataset; fewer for many columns, because these take longer."""
    return int(np.clip(FITS_TIMES_COLUMNS // n_columns, MIN_FITS, MAX_FITS))


def _bound(d: FloatArray, d_prime: FloatArray, claimed: float, delta: float, confidence: float) -> Bound:
    """A score is learned from a quarter of the fits, its threshold from another; the event is counted in the rest."""
    quarter = len(d) // 4
    first, second, last = slice(quarter), slice(quarter, 2 * quarter), slice(2 * quarter, None)
    features = np.flatnonzero((d[first] != d[first][0]).any(axis=0) | (d_prime[first] != d[first][0]).any(axis=0))
    best, event, swap = -math.inf, None, False
    for shape in shapes_of((tuple(features.tolist()),)) if len(features) else []:
        score = learn(d[first], d_prime[first], shape)
        for swapped, (likely, rare) in ((False, (d, d_prime)), (True, (d_prime, d))):
            expected, found = best_event(score.negated() if swapped else score, likely[second], rare[second])
            if expected > best:
                best, event, swap = expected, found, swapped
    counted = (d_prime[last], d[last]) if swap else (d[last], d_prime[last])
    hits = [0, 0] if event is None else [event.hits(rows) for rows in counted]
    lower = epsilon_of_draws(hits[0], len(counted[0]), hits[1], len(counted[1]), confidence, delta)
    words = f"ranks of fixed rows: {hits[0]} of {len(counted[0])} fits against {hits[1]} of {len(counted[1])}"
    tries = len(d) + len(d_prime)
    return Bound("what is learned from a row", claimed, lower, confidence, tries, words, delta, Scope.LEARNING)


def _schema(released: ReleasedTable) -> Schema | None:
    """Levels, atoms, steps and bounds, as a release publishes them."""
    return None if released.fitted is None else released.fitted.schema


def _ranks(released: ReleasedTable, probes: pa.Table) -> FloatArray:
    """Where the probes stand by what was learned, their places inside levels always the same."""
    if released.fitted is None:
        return np.zeros((probes.num_rows, 1))
    return ranks(released.fitted, tables.read(probes), source(0))


def _replaced(
    table: pa.Table,
    names: list[str],
    rows: Rows,
    sources: Callable[[tables.Table, str], Rows],
    rng: np.random.Generator,
) -> pa.Table:
    """The table with the cells of these rows replaced by those of random rows out of `sources(table, name)`.

    The first row of each label keeps it, so that no label vanishes.
    """
    whole = tables.read(table)
    for name in names:
        is_label = whole.column(name).storage.family == "label"
        moved = np.setdiff1d(rows, _first_of_labels(whole.array(name))) if is_label else rows
        index = np.arange(table.num_rows)
        index[moved] = rng.choice(sources(whole, name), len(moved))
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), table.column(name).take(pa.array(index)))
    return table


def _replaceable(table: pa.Table, names: list[str], rows: Rows) -> int | None:
    """The first of these rows whose labels all occur in other rows as well; None if there is none."""
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
