"""A lower bound on the ε of a whole release, by many canary rows in one run (Steinke, Nasr, Jagielski 2023).

Each canary is one of two records, by a fair coin that is independent of all else. Neighbouring tables differ in one
row, so under ε-privacy no coin is guessed with a better chance than e^ε/(e^ε + 1), whatever the release is and whatever
the other coins are. The attacker guesses the coins of those canaries of which it is surest. All that it goes by, the
scores and how sure is sure enough, comes from shadow runs with other coins, and only the last run's guesses count.
A canary that is held out has no promise, and no guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._arrays import FloatArray
from dipriv._random.bits import Seed, source
from dipriv._tables import frames as tables
from dipriv._tables.arrow import distinct_labels
from dipriv.auditing.canaries import Canaries, Couple, couples_of, distinct, extremes
from dipriv.auditing.events import FINE, Score, Shape, Views, learn, shapes_of
from dipriv.auditing.intervals import epsilon_of_guesses
from dipriv.auditing.mechanism import Progress, check_confidence
from dipriv.auditing.neighbours import as_numbers, has_ranks, ranks
from dipriv.auditing.procedure import Publish, ReleasedTable
from dipriv.auditing.results import Bound
from dipriv.errors import InputError
from dipriv.guarantee.guarantee import check_epsilon

FEWEST_ROWS, FEWEST_GUESSES = 200, 10
MOST_DISTINCT = 1000
RUNS = 7
"""As the table is; extreme canaries to choose, to learn, to rate and to count; distinct ones to rate and to count."""
FEW = 4
STRONG = 10.0
"""No column's evidence counts for more in the sum over columns."""
SHARES = 0.7 ** np.arange(12)
"""Of the canaries with any evidence, guesses are made about these shares of the surest."""
Coins = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Play:
    """A run with canaries: those that were released, their coins, and the release."""

    coins: Coins = field(repr=False)
    there: NDArray[np.intp] = field(repr=False)
    rows: NDArray[np.intp] = field(repr=False)
    """Where in the release the canaries are that are there."""
    published: ReleasedTable = field(repr=False)


class Stage:
    """Runs of one way to publish one table, each with randomness of its own."""

    def __init__(self, publish: Publish, table: pa.Table, seed: Seed, progress: Progress) -> None:
        self.publish, self.table, self.progress = publish, table, progress
        source(seed)  # refuses what is no seed
        self.seed = np.random.SeedSequence(int(seed)) if isinstance(seed, int | np.integer) else seed
        self.rng = np.random.default_rng(self.next_seed())
        self.runs = 0

    def next_seed(self) -> np.random.SeedSequence | None:
        return None if self.seed is None else self.seed.spawn(1)[0]

    def run(self, table: pa.Table) -> ReleasedTable:
        published = self.publish(table, self.next_seed())
        self.runs += 1
        if self.progress is not None:
            self.progress(min(1.0, self.runs / RUNS))
        return published

    def play(self, canaries: Canaries) -> Play:
        """Toss the coins, plant the canaries, publish."""
        coins = self.rng.integers(0, 2, len(canaries)).astype(np.bool_)
        published = self.run(canaries.plant(self.table, coins))
        row_of = np.full(self.table.num_rows, -1, dtype=np.intp)
        row_of[published.rows] = np.arange(len(published.rows))
        rows = row_of[canaries.positions]
        there = np.flatnonzero(rows >= 0)
        return Play(coins[there], there, rows[there], published)


@dataclass(frozen=True, eq=False)
class Guesses:
    """How many coins were guessed, and how many of them rightly."""

    made: int
    right: int
    words: str

    def bound(self, what: str, claimed: float, confidence: float, each: float) -> Bound:
        lower = epsilon_of_guesses(self.right, self.made, each) if self.made else 0.0
        return Bound(f"release, {what} canaries", claimed, lower, confidence, self.made, self.words)


def audit_release(
    publish: Publish,
    table: pa.Table,
    epsilon: float,
    *,
    canaries: int | None = None,
    confidence: float = 0.95,
    seed: Seed = None,
    progress: Progress = None,
) -> tuple[Bound, ...]:
    """Lower bounds on the ε of a way to publish tables, by extreme and, where there is room, by distinct canaries.

    They hold together with this confidence: each has half of the error. `canaries` is how many rows are replaced by
    extreme ones, by default as many as balance chance against what they change about the table; where the reference
    does not come from the table, all of its rows can be.
    """
    epsilon = check_epsilon(epsilon)
    check_confidence(confidence)
    count = round(3 * table.num_rows ** (2 / 3)) if canaries is None else canaries
    if table.num_rows < FEWEST_ROWS or not FEWEST_GUESSES <= count <= table.num_rows:
        raise InputError(
            f"{count} canaries in a table of {table.num_rows} rows; an audit needs at least {FEWEST_GUESSES} of them "
            f"in at least {FEWEST_ROWS} rows.",
            "Use a larger table, or leave canaries out.",
        )
    stage = Stage(publish, table, seed, progress)
    names = stage.run(table).data.column_names
    each = (1 + confidence) / 2
    found = [guess_extremes(stage, names, count).bound("extreme", epsilon, confidence, each)]
    guesses = guess_distinct(stage, names)
    if guesses is not None:
        found.append(guesses.bound("distinct", epsilon, confidence, each))
    if progress is not None:
        progress(1.0)
    return tuple(found)


def guess_extremes(stage: Stage, names: Sequence[str], count: int) -> Guesses:
    """Coins of canaries that are one of the same two records: by the rows that are released in their places."""
    positions = np.sort(stage.rng.choice(stage.table.num_rows, count, replace=False))
    look = Look.at(stage.table, names)
    couples = couples_of(stage.table, names, stage.rng)
    couple = couples[0]
    if len(couples) > 1:
        couple = _best_couple(couples, stage.play(extremes(positions, couples)), look)
    canaries = extremes(positions, [couple])
    learned, rated, played = (stage.play(canaries) for _ in range(3))
    rows = look.of(learned)
    scores = _learn(rows, learned.coins, shapes_of(look.views(rows)))
    seen = look.of(rated)
    best = max(scores, key=lambda score: how_sure(score.of(seen), rated.coins)[0])
    sure = how_sure(best.of(seen), rated.coins)[1]
    right, made = count_right(best.of(look.of(played)), played.coins, sure)
    return Guesses(made, right, f"{couple.words}, by {look.words(best.shape)}: {right} of {made} guesses are right")


def guess_distinct(stage: Stage, names: Sequence[str]) -> Guesses | None:
    """Coins of canaries with numbers of their own: by which of their numbers is nearer to any that is released."""
    for crowded in (True, False):
        most = min(MOST_DISTINCT, stage.table.num_rows // 10)
        canaries = distinct(stage.table, names, most, stage.rng, crowded=crowded)
        if canaries is None or len(canaries) < FEWEST_GUESSES:
            continue
        try:
            rated, played = stage.play(canaries), stage.play(canaries)
        except InputError:  # a schema that knows the levels or the bounds
            continue
        evidence = nearness(canaries, rated)
        name = max(evidence, key=lambda name: how_sure(evidence[name], rated.coins)[0])
        sure = how_sure(evidence[name], rated.coins)[1]
        right, made = count_right(nearness(canaries, played)[name], played.coins, sure)
        return Guesses(
            made, right, f"which number is nearer to a released one, {name}: {right} of {made} guesses right"
        )
    return None


def nearness(canaries: Canaries, play: Play) -> dict[str, FloatArray]:
    """Evidence for the second record, column by column and in sum: ln of how much nearer its number is to any released.

    A number that is released itself is nearer than any other.
    """
    released = tables.read(play.published.data)
    found = {}
    for name, numbers in canaries.numbers.items():
        values = np.sort(released.cells(name).present.astype(np.float64))
        gaps = [_gap(values, number) for number in numbers[:, play.there]]
        found[f"column {name!r}"] = np.nan_to_num(np.log(gaps[0] / gaps[1]))
    held = [np.clip(evidence, -STRONG, STRONG) for evidence in found.values()]
    return found if len(held) == 1 else {"all columns": np.sum(held, axis=0)} | found


def how_sure(evidence: FloatArray, coins: Coins) -> tuple[float, float]:
    """About the bound that guesses promise where the evidence is large enough, and how large that is.

    Few thresholds are tried, and each is rated three standard errors (Wilson's) below what it shows.
    """
    size = np.abs(evidence)
    ordered = np.sort(size[size > 0])[::-1]
    places = (len(ordered) * SHARES).astype(np.intp)
    found = [(0.0, 0.0)]
    for sure in np.unique(ordered[places[places > 0] - 1]):
        right, made = count_right(evidence, coins, sure)
        if made >= FEWEST_GUESSES:
            share = right / made
            spread = 3 * np.sqrt(share * (1 - share) / made + 2.25 / made**2)
            likely = (share + 4.5 / made - spread) / (1 + 9 / made)
            found.append((float(np.log(max(likely, 1e-9) / (1 - likely))), float(sure)))
    return max(found)


def count_right(evidence: FloatArray, coins: Coins, sure: float) -> tuple[int, int]:
    """How many guesses are right, and how many are made, where the evidence is as large as this."""
    made = (np.abs(evidence) >= sure) & (evidence != 0)
    return int(np.count_nonzero(made & ((evidence > 0) == coins))), int(np.count_nonzero(made))


@dataclass(frozen=True, eq=False)
class Look:
    """How an attacker sees released rows as numbers: columns, labels by their place among those of the table."""

    names: tuple[str, ...]
    labels: dict[str, pa.Array] = field(repr=False)

    @classmethod
    def at(cls, table: pa.Table, names: Sequence[str]) -> Look:
        whole = tables.read(table)
        texts = [name for name in names if whole.column(name).storage.family == "label"]
        return cls(tuple(names), {name: distinct_labels(whole.array(name)) for name in texts})

    def of(self, play: Play) -> FloatArray:
        """(n, f): the canaries' own rows; columns, and ranks where the reference is known.

        Ranks are 0 where they say no more than columns: one fit of a private reference may be independent, another not.
        """
        fitted = play.published.fitted
        rows = tables.read(play.published.data.take(play.rows))
        numbers = [as_numbers(rows.cells(name, self.labels.get(name))) for name in self.names]
        if fitted is not None and fitted.by is None:
            say_more = has_ranks(fitted) and len(fitted.order) == len(self.names)
            shape = len(self.names), rows.rows
            numbers += list(ranks(fitted, rows, source(0)).T if say_more else np.zeros(shape))
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


def _best_couple(couples: Sequence[Couple], play: Play, look: Look) -> Couple:
    """The couple whose canaries are guessed best: learned from half of them, rated by the other half."""
    rows, promised = look.of(play), []
    for number in range(len(couples)):
        mine = np.flatnonzero(play.there % len(couples) == number)
        first, second = mine[::2], mine[1::2]
        scores = _learn(rows[first], play.coins[first], shapes_of(look.views(rows)))
        promised.append(max(how_sure(score.of(rows[second]), play.coins[second])[0] for score in scores))
    return couples[int(np.argmax(promised))]


def _learn(rows: FloatArray, coins: Coins, shapes: list[Shape]) -> list[Score]:
    """Each score with few cells, which are learned well, and with many, which can tell more."""
    return [learn(rows[coins], rows[~coins], shape, most) for shape in shapes for most in (FEW, FINE)]


def _gap(values: FloatArray, numbers: FloatArray) -> FloatArray:
    """The distance of each number to the nearest of sorted values; not below what a double can tell there."""
    after = np.clip(np.searchsorted(values, numbers), 1, len(values) - 1)
    nearest = np.minimum(np.abs(values[after] - numbers), np.abs(numbers - values[after - 1]))
    return np.maximum(nearest, np.spacing(np.abs(numbers)))
