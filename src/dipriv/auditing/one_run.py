"""Lower bound on the ε of a whole release from many canaries in one run (Steinke, Nasr, Jagielski 2023).

Each canary is one of two records, chosen by an independent fair coin. Neighbouring tables differ in one row, so under
ε-DP no coin is guessed right with probability above e^ε/(e^ε + 1), given the release and all other coins. Under
(ε, δ)-DP each coin may be revealed with probability δ besides, which `intervals.chance_of_guesses` adds. The attacker
guesses the coins with the strongest evidence and abstains from the others. Scores and thresholds come from shadow runs
with other coins; only the guesses in the last run are counted. Canaries that are held out are not guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.progress import Progress, no_progress
from dipriv._random.bits import Seed, source
from dipriv._tables import frames as tables
from dipriv._tables.arrow import distinct_labels
from dipriv.auditing.canaries import Canaries, RecordPair, distinct, extremes, record_pairs
from dipriv.auditing.events import FINE_BINS, Score, Shape, Views, learn, shapes_of
from dipriv.auditing.intervals import check_confidence, epsilon_of_guesses
from dipriv.auditing.neighbours import as_numbers, has_ranks, ranks
from dipriv.auditing.procedure import ReleasedTable, ReleaseProcedure
from dipriv.auditing.results import Bound, Scope
from dipriv.errors import InputError
from dipriv.guarantee.guarantee import check_epsilon

MIN_ROWS = 200
"""The smallest table that canaries are planted in."""
MIN_GUESSES = 10
"""The smallest number of canaries, and of guesses that a threshold is rated by."""
MAX_DISTINCT = 1000
"""Distinct canaries at most."""
RUNS = (
    "the table itself, for the names of released columns",
    "extreme canaries, to choose a pair of records",
    "extreme canaries, to learn scores",
    "extreme canaries, to choose a score and a threshold",
    "extreme canaries, to count right guesses",
    "distinct canaries, to choose a column and a threshold",
    "distinct canaries, to count right guesses",
)
"""All runs of an audit, in order."""
COARSE_BINS = 4
"""Bins of a feature in a score that is learned reliably from few canaries."""
MAX_EVIDENCE = 10.0
"""The evidence of a column is clipped to this in the sum over columns."""
GUESSED_SHARES = 0.7 ** np.arange(12)
"""Of the canaries with any evidence, these shares with the strongest are tried as thresholds."""
Coins = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CanaryRun:
    """A release of a table with canaries.

    `canaries` are the numbers of the canaries that were released, `coins` their coins, and `release_positions` the
    positions of their rows in the release.
    """

    coins: Coins = field(repr=False)
    canaries: NDArray[np.intp] = field(repr=False)
    release_positions: NDArray[np.intp] = field(repr=False)
    released: ReleasedTable = field(repr=False)


class Runner:
    """Repeated releases of one table by one procedure, each with its own randomness."""

    def __init__(self, release: ReleaseProcedure, table: pa.Table, seed: Seed, progress: Progress) -> None:
        self.release, self.table, self.progress = release, table, progress
        source(seed)  # raises for an invalid seed
        self.seed = np.random.SeedSequence(int(seed)) if isinstance(seed, int | np.integer) else seed
        self.rng = np.random.default_rng(self.next_seed())
        self.runs = 0

    def next_seed(self) -> np.random.SeedSequence | None:
        return None if self.seed is None else self.seed.spawn(1)[0]

    def run(self, table: pa.Table) -> ReleasedTable:
        released = self.release(table, self.next_seed())
        self.runs += 1
        self.progress("guessing canaries", min(self.runs, len(RUNS)), len(RUNS))
        return released

    def run_with(self, canaries: Canaries, coin_of: NDArray[np.intp] | None = None) -> CanaryRun:
        """Toss the coins, plant the canaries, release; rows with the same number in `coin_of` share a coin."""
        n_coins = len(canaries) if coin_of is None else int(coin_of.max()) + 1
        coins = self.rng.integers(0, 2, n_coins).astype(np.bool_)
        coins = coins if coin_of is None else coins[coin_of]
        released = self.run(canaries.plant(self.table, coins))
        position_of = np.full(self.table.num_rows, -1, dtype=np.intp)
        position_of[released.row_positions] = np.arange(len(released.row_positions))
        positions = position_of[canaries.positions]
        present = np.flatnonzero(positions >= 0)
        return CanaryRun(coins[present], present, positions[present], released)


@dataclass(frozen=True, eq=False)
class Guesses:
    """The numbers of canaries that were released, of guesses and of right guesses."""

    canaries: int
    made: int
    right: int
    words: str

    def bound(
        self,
        what: str,
        claimed: float,
        delta: float,
        confidence: float,
        each: float,
        scope: Scope = Scope.RELEASE,
    ) -> Bound:
        """A bound reported at `confidence`, and computed at `each`, which leaves error for other bounds."""
        lower = epsilon_of_guesses(self.right, self.made, self.canaries, each, delta) if self.made else 0.0
        return Bound(f"release, {what} canaries", claimed, lower, confidence, self.made, self.words, delta, scope)


def audit_release(
    release: ReleaseProcedure,
    table: pa.Table,
    epsilon: float,
    *,
    delta: float = 0.0,
    canaries: int | None = None,
    confidence: float = 0.95,
    seed: Seed = None,
    progress: Progress = no_progress,
) -> tuple[Bound, ...]:
    """Lower bounds on the ε of a release procedure from extreme and, where there is room, from distinct canaries.

    Parameters
    ----------
    release : the procedure under audit.
    table : the table that canaries are planted in.
    epsilon, delta : the claim.
    canaries : how many rows are replaced by extreme canaries. The default balances the width of the interval against
        the change to the table; with a reference that does not come from the table, all rows can be canaries.
    confidence : of all bounds together: each gets half of the error.
    seed : of coins and releases.
    progress : called with what is being done and the share of it that is done.

    Returns
    -------
    One or two bounds.

    Raises
    ------
    InputError : the table is too small, or has too few or too many canaries.
    """
    epsilon = check_epsilon(epsilon)
    check_confidence(confidence)
    count = round(3 * table.num_rows ** (2 / 3)) if canaries is None else canaries
    if table.num_rows < MIN_ROWS or not MIN_GUESSES <= count <= table.num_rows:
        raise InputError(
            f"{count} canaries in a table of {table.num_rows} rows; an audit needs at least {MIN_GUESSES} of them "
            f"in at least {MIN_ROWS} rows.",
            "Use a larger table, or leave canaries out.",
        )
    runner = Runner(release, table, seed, progress)
    names = runner.run(table).data.column_names
    each = (1 + confidence) / 2
    found = [guess_extremes(runner, names, count).bound("extreme", epsilon, delta, confidence, each)]
    guesses = guess_distinct(runner, names)
    if guesses is not None:
        found.append(guesses.bound("distinct", epsilon, delta, confidence, each))
    progress("guessing canaries", 1.0, 1.0)
    return tuple(found)


def guess_extremes(runner: Runner, names: Sequence[str], count: int) -> Guesses:
    """Guess the coins of extreme canaries by the rows that are released in their places."""
    positions = np.sort(runner.rng.choice(runner.table.num_rows, count, replace=False))
    features = Features.of_table(runner.table, names)
    pairs = record_pairs(runner.table, names, runner.rng)
    pair = pairs[0]
    if len(pairs) > 1:
        pair = best_pair(pairs, runner.run_with(extremes(positions, pairs)), features)
    canaries = extremes(positions, [pair])
    to_learn, to_choose, to_count = (runner.run_with(canaries) for _ in range(3))
    rows = features.of(to_learn)
    scores = learn_scores(rows, to_learn.coins, shapes_of(features.views(rows)))
    rows = features.of(to_choose)
    best = max(scores, key=lambda score: best_threshold(score.of(rows), to_choose.coins)[0])
    threshold = best_threshold(best.of(rows), to_choose.coins)[1]
    right, made = count_right(best.of(features.of(to_count)), to_count.coins, threshold)
    words = f"{pair.words}, by {features.words(best.shape)}: {right} of {made} guesses are right"
    return Guesses(len(to_count.coins), made, right, words)


def guess_distinct(runner: Runner, names: Sequence[str]) -> Guesses | None:
    """Guess the coins of distinct canaries by which of their two numbers is nearer to any released number."""
    for crowded in (True, False):
        count = min(MAX_DISTINCT, runner.table.num_rows // 10)
        canaries = distinct(runner.table, names, count, runner.rng, crowded=crowded)
        if canaries is None or len(canaries) < MIN_GUESSES:
            continue
        try:
            to_choose, to_count = runner.run_with(canaries), runner.run_with(canaries)
        except InputError:  # the schema declares levels or bounds
            continue
        evidence = nearness(canaries, to_choose)
        name = max(evidence, key=lambda name: best_threshold(evidence[name], to_choose.coins)[0])
        threshold = best_threshold(evidence[name], to_choose.coins)[1]
        right, made = count_right(nearness(canaries, to_count)[name], to_count.coins, threshold)
        words = f"which number is nearer to a released one, {name}: {right} of {made} guesses right"
        return Guesses(len(to_count.coins), made, right, words)
    return None


def nearness(canaries: Canaries, run: CanaryRun) -> dict[str, FloatArray]:
    """Evidence for the second record, by column and in sum: the log ratio of both numbers' distances to the release.

    The distance is that to the nearest released number, and smallest for a number that is released itself.
    """
    released = tables.read(run.released.data)
    found = {}
    for name, numbers in canaries.numbers.items():
        values = np.sort(released.cells(name).present.astype(np.float64))
        gaps = [_gap(values, number) for number in numbers[:, run.canaries]]
        found[f"column {name!r}"] = np.nan_to_num(np.log(gaps[0] / gaps[1]))
    clipped = [np.clip(evidence, -MAX_EVIDENCE, MAX_EVIDENCE) for evidence in found.values()]
    return found if len(clipped) == 1 else {"all columns": np.sum(clipped, axis=0)} | found


def best_threshold(evidence: FloatArray, coins: Coins) -> tuple[float, float]:
    """The largest expected bound over thresholds for the evidence, and its threshold.

    Few thresholds are tried, and each is rated by Wilson's lower limit at three standard errors.
    """
    size = np.abs(evidence)
    ordered = np.sort(size[size > 0])[::-1]
    places = (len(ordered) * GUESSED_SHARES).astype(np.intp)
    found = [(0.0, 0.0)]
    for threshold in np.unique(ordered[places[places > 0] - 1]):
        right, made = count_right(evidence, coins, threshold)
        if made >= MIN_GUESSES:
            share = right / made
            spread = 3 * np.sqrt(share * (1 - share) / made + 2.25 / made**2)
            likely = (share + 4.5 / made - spread) / (1 + 9 / made)
            found.append((float(np.log(max(likely, 1e-9) / (1 - likely))), float(threshold)))
    return max(found)


def count_right(evidence: FloatArray, coins: Coins, threshold: float) -> tuple[int, int]:
    """The numbers of right guesses and of all guesses, which are made where the evidence reaches the threshold."""
    made = (np.abs(evidence) >= threshold) & (evidence != 0)
    return int(np.count_nonzero(made & ((evidence > 0) == coins))), int(np.count_nonzero(made))


@dataclass(frozen=True, eq=False)
class Features:
    """Released rows as numbers: the cells of each column; labels by their places among those of the table."""

    names: tuple[str, ...]
    labels: dict[str, pa.Array] = field(repr=False)

    @classmethod
    def of_table(cls, table: pa.Table, names: Sequence[str]) -> Features:
        whole = tables.read(table)
        texts = [name for name in names if whole.column(name).storage.family == "label"]
        return cls(tuple(names), {name: distinct_labels(whole.array(name)) for name in texts})

    def of(self, run: CanaryRun) -> FloatArray:
        """(n, f): the released rows of canaries: columns, and ranks where the reference is known.

        Ranks are 0 where they carry no more information than columns: one fit of a private reference may be
        independent, another not.
        """
        fitted = run.released.fitted
        rows = tables.read(run.released.data.take(run.release_positions))
        numbers = [as_numbers(rows.cells(name, self.labels.get(name))) for name in self.names]
        if fitted is not None and fitted.by is None:
            informative = has_ranks(fitted) and len(fitted.order) == len(self.names)
            shape = len(self.names), rows.rows
            numbers += list(ranks(fitted, rows, source(0)).T if informative else np.zeros(shape))
        return np.stack(numbers, axis=1)

    def views(self, rows: FloatArray) -> Views:
        width = len(self.names)
        columns, others = tuple(range(width)), tuple(range(width, rows.shape[1]))
        return (columns, others) if others else (columns,)

    def words(self, shape: Shape) -> str:
        ranked = "the rank of " if shape[0][0] >= len(self.names) else ""
        if len(shape) > 1:
            return f"{ranked}all columns"
        return f"{ranked}column {self.names[shape[0][0] % len(self.names)]!r}"


def best_pair(pairs: Sequence[RecordPair], run: CanaryRun, features: Features) -> RecordPair:
    """The pair whose canaries are guessed best: scores are learned from one half of them and rated by the other."""
    rows, expected = features.of(run), []
    for number in range(len(pairs)):
        these = np.flatnonzero(run.canaries % len(pairs) == number)
        first, second = these[::2], these[1::2]
        scores = learn_scores(rows[first], run.coins[first], shapes_of(features.views(rows)))
        expected.append(max(best_threshold(score.of(rows[second]), run.coins[second])[0] for score in scores))
    return pairs[int(np.argmax(expected))]


def learn_scores(rows: FloatArray, coins: Coins, shapes: list[Shape]) -> list[Score]:
    """Each score with few bins, which are learned more reliably, and with many, which can distinguish more."""
    return [learn(rows[coins], rows[~coins], shape, bins) for shape in shapes for bins in (COARSE_BINS, FINE_BINS)]


def _gap(values: FloatArray, numbers: FloatArray) -> FloatArray:
    """The distance of each number to the nearest of sorted values, at least the spacing of doubles there."""
    after = np.clip(np.searchsorted(values, numbers), 1, len(values) - 1)
    nearest = np.minimum(np.abs(values[after] - numbers), np.abs(numbers - values[after - 1]))
    return np.maximum(nearest, np.spacing(np.abs(numbers)))
