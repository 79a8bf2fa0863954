"""A measured lower bound on the ε of a fitted mechanism: how well the best event tells two neighbouring worlds apart.

The worlds and the event come from a pilot; then they are fixed, and fresh draws of both worlds give the bound. So it
holds with its confidence whatever the pilot found, and a pilot that chose badly only makes it smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dipriv._arrays import FloatArray
from dipriv._random.bits import Bits, Seed, source
from dipriv.auditing.events import (
    FINE,
    Event,
    Learner,
    Shape,
    Views,
    best_event,
    cuts_of,
    dependence,
    learn,
    learn_alike,
    pairs_of,
    shapes_of,
    strengths,
)
from dipriv.auditing.intervals import epsilon_of_draws
from dipriv.auditing.neighbours import BLOCKS, Records, World, draw, draw_all, draw_records, records_of, views_of
from dipriv.auditing.results import Bound
from dipriv.errors import InputError
from dipriv.guarantee.guarantee import check_epsilon
from dipriv.release.fitting import FittedMechanism

Progress: TypeAlias = Callable[[float], None] | None
Way: TypeAlias = tuple[Learner, ...]
"""Scores among which more draws choose."""

FEWEST_DRAWS = 10_000
TWO, FEW, COARSEST, MOST_PAIRS, SHORT_LIST, OPPOSITES = 2, 8, 8, 66, 3, 3
BY_CHANCE = 25.0
"""Calls that differ by more than so many times what independent rows would make them differ share bits among rows."""
CLEARLY = 0.3
"""A block has a known row beside the other: it is worth its draws only if it promises more by so much."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Two neighbouring worlds of a mechanism, and an event that is likelier in the first than in the second."""

    fitted: FittedMechanism = field(repr=False)
    records: Records = field(repr=False)
    one: World
    other: World
    event: Event = field(repr=False)

    def measure(self, epsilon: float, draws: int, confidence: float, bits: Bits, progress: Progress = None) -> Bound:
        """The bound from fresh draws, half of them in each world (Clopper-Pearson, half of the error for each)."""
        hits, tries = [0, 0], [0, 0]
        for side, world in enumerate((self.one, self.other)):
            for (rows,) in draw(self.fitted, self.records, [world], draws // 2, bits.child(f"world {side}"), 1):
                hits[side] += self.event.hits(rows)
                tries[side] += len(rows)
                if progress is not None:
                    progress(min(1.0, sum(tries) / draws))
        lower = epsilon_of_draws(hits[0], tries[0], hits[1], tries[1], confidence)
        return Bound("released rows", epsilon, lower, confidence, sum(tries), self.words)

    @property
    def words(self) -> str:
        """Which worlds, and by what they are told apart: no cell of any table is in it."""
        one, other = (self.records.words[world.rows[-1]] for world in (self.one, self.other))
        block = "" if self.one.layout == "alone" else f", beside a known row ({self.one.layout})"
        return f"{one} against {other}{block}, by {_in_words(self.event.score.shape, self.fitted)}"


@dataclass(frozen=True, eq=False)
class Finding:
    """What tells the first of two worlds from the second, and about the bound that it promises."""

    promise: float
    one: World
    other: World
    way: Way = field(repr=False)


def audit_rows(
    fitted: FittedMechanism,
    epsilon: float,
    *,
    draws: int = 2_000_000,
    confidence: float = 0.95,
    seed: Seed = None,
    progress: Progress = None,
) -> Bound:
    """A lower bound on the ε of released rows, against the claim `epsilon`, that holds with this confidence."""
    epsilon = check_epsilon(epsilon)
    if draws < FEWEST_DRAWS:
        raise InputError(f"draws is {draws}; an audit needs at least {FEWEST_DRAWS}.", "Allow more draws.")
    check_confidence(confidence)
    tell = progress or (lambda done: None)
    bits = source(seed)
    plan = plan_audit(fitted, draws, bits.child("pilot"))
    tell(0.4)
    return plan.measure(epsilon, draws, confidence, bits.child("measure"), lambda done: tell(0.4 + 0.6 * done))


def check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise InputError(f"confidence={confidence!r} is not between 0 and 1.", "Use a confidence such as 0.95.")


def plan_audit(fitted: FittedMechanism, draws: int, bits: Bits) -> Plan:
    """The worlds and the event that promise the largest bound, by three rounds: all records, some, and the last few."""
    records = records_of(fitted, bits.child("records"))
    alone, dependent = _best_alone(fitted, records, draws, bits)
    beside, *others = _blocks(fitted, records, alone[0], draws, bits)
    last = alone + [block for block in (beside, *others) if block.promise > alone[0].promise]
    if dependent:  # the rows of a call share bits: no row tells anything that the one beside it does not
        last = [beside]
    fixed = [_fix(fitted, records, one, draws // 2, len(last), bits.child(f"last {k}")) for k, one in enumerate(last)]
    handicap = [CLEARLY if one.one.layout != "alone" else 0.0 for one in last]
    best = max(range(len(last)), key=lambda k: fixed[k][0] - handicap[k])
    return Plan(fitted, records, last[best].one, last[best].other, fixed[best][1])


def _fix(
    fitted: FittedMechanism, records: Records, finding: Finding, tries: int, among: int, bits: Bits
) -> tuple[float, Event]:
    """Scores learned anew from more draws of their worlds, and the best event and its promise from as many others."""
    one, other = draw_all(fitted, records, (finding.one, finding.other), max(2000, tries // among), bits)
    scores = [learner(_rows(one[::2]), _rows(other[::2])) for learner in finding.way]
    events = (best_event(score, _rows(one[1::2]), _rows(other[1::2]), tries) for score in scores)
    return max(events, key=lambda event: event[0])


def _best_alone(fitted: FittedMechanism, records: Records, draws: int, bits: Bits) -> tuple[list[Finding], bool]:
    """The few couples of records that are best told apart by their own releases, the best first, and by what.

    And whether the rows of a call depend on each other. Rows of several columns have opposite corners among the few
    whatever the draws say: where each column tells little, the best of many other couples is the best by chance.
    """
    views = views_of(fitted)
    seen = draw_records(
        fitted, records, range(len(records)), max(256, min(8192, draws // 256)), bits.child("all records")
    )
    couples, pairs = _short_list(seen.reshape(len(records), -1, seen.shape[3]), views)
    opposites = records.opposites()[:OPPOSITES] if len(fitted.order) > 1 else []
    couples = list(dict.fromkeys(couples + opposites))
    numbers = sorted({number for couple in couples for number in couple})
    rows = dict(
        zip(numbers, draw_records(fitted, records, numbers, max(2000, draws // 64), bits.child("some")), strict=True)
    )

    def best(couple: tuple[int, int], ways: list[Way]) -> Finding:
        one, other = couple
        return max(_findings(rows[one], rows[other], World((one,)), World((other,)), ways), key=_promise)

    ways = _ways(shapes_of(views, pairs))
    found = sorted((best(couple, ways) for couple in couples), key=_promise, reverse=True)
    alike = [best(couple, [_alike(views[-1], records.corners[couple[0]])]) for couple in opposites]
    if alike:
        found = sorted([max(alike, key=_promise), *found[: SHORT_LIST - 1]], key=_promise, reverse=True)
    features = (calls[:, :, feature] for calls in rows.values() for feature in range(calls.shape[2]))
    dependent = any(dependence(calls) > BY_CHANCE for calls in features)
    return found[:SHORT_LIST], dependent


def _ways(shapes: list[Shape]) -> list[Way]:
    """Each of these shapes with few cells, and with many."""
    return [(partial(learn, shape=shape, most=most),) for shape in shapes for most in (FEW, FINE)]


def _alike(ranks: Sequence[int], high: NDArray[np.bool_]) -> Way:
    """All ranks by one table: of two cells, which no draws can spoil, or of more, which can tell more."""
    return tuple(partial(learn_alike, ranks=ranks, high=high.tolist(), most=most) for most in (TWO, FEW, FINE))


def _promise(finding: Finding) -> float:
    return finding.promise


def _short_list(seen: FloatArray, views: Views) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The couples of records, and the pairs of features, that tell the most by a first look."""
    width = seen.shape[2]
    cuts = [cuts_of(seen[:, :, feature].ravel(), COARSEST) for feature in range(width)]
    sizes = [len(ends) + 1 for ends in cuts]
    cells = [np.searchsorted(ends, seen[:, :, feature], side="right") for feature, ends in enumerate(cuts)]
    by_pair = {
        (f, g): strengths(cells[f] * sizes[g] + cells[g], sizes[f] * sizes[g]) for f, g in pairs_of(views, MOST_PAIRS)
    }
    pairs = sorted(by_pair, key=lambda pair: -by_pair[pair].max())[:SHORT_LIST]
    rankings = [
        np.max([strengths(cells[f], sizes[f]) for f in range(width)], axis=0),
        *(by_pair[pair] for pair in pairs),
    ]
    for view in views:
        means = np.stack([cells[f].mean(axis=1) / sizes[f] for f in view], axis=1)
        rankings.append(np.abs(means[:, np.newaxis] - means).sum(axis=2))  # little noise, however little a column tells
    couples: dict[tuple[int, int], None] = {}
    for ranking in rankings:
        np.fill_diagonal(ranking, -np.inf)
        for place in np.argsort(-ranking, axis=None)[:SHORT_LIST]:
            one, other = sorted(int(number) for number in np.unravel_index(place, ranking.shape))
            couples.setdefault((one, other))
    return list(couples), pairs


def _findings(one: FloatArray, other: FloatArray, first: World, second: World, ways: list[Way]) -> list[Finding]:
    """What each way promises, in both directions: its scores learned from half of the calls, rated by the others."""
    found, seen = [], (_rows(one[::2]), _rows(other[::2]))
    one, other = _rows(one[1::2]), _rows(other[1::2])
    for way in ways:
        scores = [learner(*seen) for learner in way]
        promise = max(best_event(score, one, other)[0] for score in scores)
        turned = max(best_event(score.turned(), other, one)[0] for score in scores)
        found += [Finding(promise, first, second, way), Finding(turned, second, first, way)]
    return found


def _blocks(fitted: FittedMechanism, records: Records, best: Finding, draws: int, bits: Bits) -> list[Finding]:
    """The same two records in the second row of a block whose first row is known: for each layout, by what feature."""
    (x,), (changed,) = best.one.rows, best.other.rows
    width = max(feature for view in views_of(fitted) for feature in view) + 1
    shapes: list[Shape] = [((feature, width + feature),) for feature in range(width)]
    shapes += [((2 * width + feature,),) for feature in range(width)]
    found = []
    for layout in BLOCKS:
        worlds = World((x, x), layout), World((x, changed), layout)
        one, other = draw_all(fitted, records, worlds, max(2000, draws // 128), bits.child(layout))
        found.append(max(_findings(one, other, *worlds, _ways(shapes)), key=_promise))
    return found


def _rows(calls: FloatArray) -> FloatArray:
    """The draws of all calls together."""
    return calls.reshape(-1, calls.shape[-1])


def _in_words(shape: Shape, fitted: FittedMechanism) -> str:
    of_v = [column.name for column in fitted.columns for _ in range(column.codec.dims)]
    names = [f"column {name!r}" for name in fitted.names] + [f"the rank of column {name!r}" for name in of_v]
    width = max(feature for view in views_of(fitted) for feature in view) + 1
    if len(shape) > 1:
        return "all columns" if shape[0][0] == 0 else "the ranks of all columns"
    both = " of both rows" if max(shape[0]) >= width else ""
    return " and ".join(dict.fromkeys(names[feature % width] + both for feature in shape[0]))
