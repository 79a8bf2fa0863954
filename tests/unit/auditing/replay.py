"""Learning observed: which noise was drawn, and what would differ for a neighbouring table.

`learned` prices a run by the noise that was drawn, and not by what the accountant says. Given the transcript of an
earlier run it repeats that run on another table, with the outcomes of all its measurements: everything that is learned
must be the same, and what was measured may differ by one replaced row at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from dipriv._base.arrays import Counts, FloatArray
from dipriv._random.bits import source
from dipriv._tables import frames as tables
from dipriv._tables.fitted_columns import label_of_others
from dipriv.references import Private
from dipriv.references._learning import learn as learning
from dipriv.references._learning import measurements
from dipriv.references._learning.learn import LearnedNetwork, MarkovPlan
from dipriv.references._learning.measurements import LATTICE, Accountant, Frequent, NoiseKind, Spread
from dipriv.references._learning.privtree import SLACK, PrivTree
from dipriv.references._learning.shares import OF_CONVERSION, _divide
from dipriv.references._learning.zcdp import largest_rho
from dipriv.references.protocol import Frequencies
from dipriv.release.labels import TableValues
from dipriv.schema import Schema
from dipriv.sources.protocol import CountedTables

DELTA = Fraction(1, 10**6)


@dataclass
class Call:
    """One measurement: its exact input, which one row may change by at most `sensitivity`, and its outcome."""

    what: str
    exact: Any
    sensitivity: int
    spent: Fraction
    outcome: Any


@dataclass
class Transcript:
    """All measurements of a run, what was learned, and what the noise that was drawn costs."""

    calls: list[Call] = field(default_factory=list)
    price: Fraction = Fraction(0)
    found: LearnedNetwork | None = None
    values: list[list[Any]] = field(default_factory=list)
    """The candidates of each thresholded histogram, in the order of the measurements."""
    candidates: dict[str, list[Any]] = field(default_factory=dict)
    trees: set[int] = field(default_factory=set)


@dataclass(frozen=True, eq=False)
class WatchedValues(TableValues):
    """Rows that show which candidates a threshold chooses from."""

    transcript: Transcript = field(default_factory=Transcript)

    def frequencies(self, names: Sequence[str], at_least: int = 1) -> dict[str, Frequencies]:
        found = super().frequencies(names, at_least)
        known = self.transcript.candidates
        for name in names:
            known[name] = (
                self._candidates[name].to_pylist() if name in self._candidates else found[name].values.tolist()
            )
        self.transcript.values[:] = [known[column.name] for column in self.columns if column.name in known]
        return found


def plan_of(table: pa.Table, kind: NoiseKind, epsilon: float) -> MarkovPlan:
    """The plan for a private reference that has all of ε, with this kind of noise."""
    whole = tables.read(table)
    columns = [whole.column(name).numeric(None) for name in whole.names]
    plan = Private().plan(columns, Schema({}), epsilon, float(DELTA), whole.rows, disjoint=True)
    all_of_it = Fraction(epsilon)
    budget = all_of_it if kind == "laplace" else largest_rho(all_of_it, DELTA * OF_CONVERSION)
    return replace(plan, shares=_divide(kind, plan.domains, whole.rows, all_of_it, budget, DELTA, 0))


def learned(table: pa.Table, plan: MarkovPlan, given: Transcript | None = None, seed: int = 1) -> Transcript:
    """Learn from the table, with the outcomes of another run's measurements if there is one."""
    transcript = Transcript()
    whole = tables.read(table)
    columns = [whole.column(name) for name in whole.names]
    labels = {column.name: label_of_others(column) for column in columns if column.storage.family == "label"}
    values = WatchedValues(CountedTables(whole.rows, lambda: [whole]), columns, labels, transcript=transcript)
    with pytest.MonkeyPatch.context() as patch:
        _watch(patch, transcript, given)
        transcript.found = plan.learn(values, source(seed))
    return transcript


def _watch(patch: pytest.MonkeyPatch, transcript: Transcript, given: Transcript | None) -> None:
    drawn: list[Fraction] = []
    """The scales of Laplace noise, the variances of Gaussian noise and the scales of choices, in order."""
    steps = 1 << LATTICE
    laplace, gaussian, exponential = (
        getattr(measurements, name) for name in ("discrete_laplace", "discrete_gaussian", "exponential_choice")
    )

    def watched(sampler: Callable[..., Any], place: int) -> Callable[..., Any]:
        def sample(*arguments: Any) -> Any:
            drawn.append(Fraction(arguments[place]))
            return sampler(*arguments)

        return sample

    def measured(what: str, exact: Any, sensitivity: int, accountant: Accountant, call: Callable[[], Any]) -> Any:
        if given is not None:
            known = given.calls[len(transcript.calls)]
            assert known.what == what
            accountant.spend(known.spent)
            transcript.calls.append(replace(known, exact=exact, sensitivity=sensitivity))
            return known.outcome
        before = accountant.spent
        outcome = call()
        transcript.calls.append(Call(what, exact, sensitivity, accountant.spent - before, outcome))
        return outcome

    class Watched(Accountant):
        def noisy_counts(self, counts: Counts, cost: Fraction) -> tuple[FloatArray, Spread]:
            exact = np.array(counts)
            found: tuple[FloatArray, Spread] = measured(
                "counts", exact, 1, self, lambda: super(Watched, self).noisy_counts(counts, cost)
            )
            self.price_counts()
            return found

        def frequent(
            self, counts: Counts, fixed: Counts, cost: Fraction, chance: Fraction, at_least: int = 1
        ) -> Frequent:
            number = sum(call.what == "frequent" for call in transcript.calls)
            own = transcript.values[number]
            exact = dict(zip(own, counts.tolist(), strict=True)), fixed.copy()

            def call() -> tuple[list[Any], Frequent]:
                found = super(Watched, self).frequent(counts, fixed, cost, chance, at_least)
                return [own[position] for position in found.kept], found

            outcome: tuple[list[Any], Frequent] = measured("frequent", exact, 1, self, call)
            kept, found = outcome
            self.price_counts()
            return replace(found, kept=np.array([own.index(value) for value in kept], dtype=np.intp))

        def choose(self, scores: NDArray[np.int64], sensitivity: int, cost: Fraction) -> int:
            chosen: int = measured(
                "choice",
                scores.copy(),
                sensitivity,
                self,
                lambda: super(Watched, self).choose(scores, sensitivity, cost),
            )
            if drawn:
                pure = 2 * sensitivity / drawn[0]  # what is drawn again, for negative noise, costs nothing
                transcript.price += pure if self.kind == "laplace" else pure**2 / 8
            drawn.clear()
            return chosen

        def price_counts(self) -> None:
            """One replaced row moves two counts by one: 2/b of Laplace noise, 1/σ² of Gaussian noise, for each draw."""
            laplaces = self.kind == "laplace"
            transcript.price += sum(2 * steps / scale if laplaces else steps**2 / scale for scale in drawn)
            drawn.clear()

    def splits_now(tree: PrivTree, counts: Counts) -> NDArray[np.bool_]:
        accountant = tree.accountant
        split: NDArray[np.bool_] = measured("tree", counts.copy(), 1, accountant, lambda: real_splits(tree, counts))
        if id(tree) not in transcript.trees and drawn:
            transcript.trees.add(id(tree))
            transcript.price += accountant.cost_of_pure(4 * SLACK * (1 << tree._digits) / drawn[0])
        drawn.clear()
        return split

    real_splits = PrivTree._splits_now
    patch.setattr(measurements, "discrete_laplace", watched(laplace, 1))
    patch.setattr(measurements, "discrete_gaussian", watched(gaussian, 1))
    patch.setattr(measurements, "exponential_choice", watched(exponential, 1))
    patch.setattr(PrivTree, "_splits_now", splits_now)
    patch.setattr(learning, "Accountant", Watched)


def faults(one: Transcript, other: Transcript) -> set[str]:
    """What is wrong with a run and its repetition on a neighbouring table."""
    found = set()
    if len(one.calls) != len(other.calls):
        found.add("measurements depend on more than measurements")
    for call, again in zip(one.calls, other.calls, strict=False):
        moved = changes(call.exact, again.exact)
        if np.abs(moved).max(initial=0) > call.sensitivity:
            found.add(f"{call.what}: sensitivity")
        if call.what != "choice" and np.abs(moved).sum() > 2:
            found.add(f"{call.what}: more than one row")
    if not same(one.found, other.found):
        found.add("the reference depends on more than measurements")
    return found


def changes(one: Any, other: Any) -> NDArray[np.int64]:
    """By how much each count or score differs; candidates of a histogram are matched by their values."""
    if not isinstance(one, tuple):
        return np.asarray(one - other).ravel()
    every = {*one[0], *other[0]}
    moved = [one[0].get(value, 0) - other[0].get(value, 0) for value in every]
    return np.concatenate([moved, one[1] - other[1]]).astype(np.int64)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same to the last bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "__dict__"):
        return vars(one).keys() == vars(other).keys() and all(
            same(vars(one)[key], vars(other)[key]) for key in vars(one)
        )
    return bool(one == other)
