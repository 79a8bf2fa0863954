"""Passes over the rows: counters that travel, and sums that do not depend on how or where the rows are cut."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import dipriv
from dipriv._base.arrays import Counts
from dipriv._random.bits import Bits
from dipriv._tables import frames as tables
from dipriv._tables.frames import Table
from dipriv._tables.value_counts import RunningCounts, ValueCounts, count_values, frequent
from dipriv.kernels import Optimal
from dipriv.references import Private
from dipriv.references._learning.measurements import Accountant
from dipriv.references._learning.privtree import PrivTree
from dipriv.release import fitting
from dipriv.release.options import ReleaseOptions
from dipriv.schema import Categorical, Mixed, Schema
from dipriv.sources.protocol import CountedTables, Counter, added
from tests.support import bits

N = 3001
DELTA = ReleaseOptions(1.0).row_delta


def people() -> pa.Table:
    rng = np.random.default_rng(0)
    gone = rng.random(N) < 0.1
    return pa.table(
        {
            "age": rng.integers(18, 90, N).astype(np.int16),
            "pay": np.where(rng.random(N) < 0.2, 0.0, rng.lognormal(10, 1, N)),
            "cents": pa.array(np.round(rng.lognormal(3, 1, N), 2), mask=gone),
            "odd": np.where(rng.random(N) < 0.01, np.inf, rng.normal(size=N)).astype(np.float32),
            "city": rng.choice(["Bonn", "Köln", "Ulm"], N),
            "kind": pa.array(rng.choice(["a", "b"], N), mask=gone).dictionary_encode(),
            "born": pa.array(rng.integers(0, 9000, N).astype("datetime64[D]")),
            "ok": rng.random(N) < 0.5,
        }
    )


@dataclass
class FarRows:
    """The rows in odd pieces somewhere else: counters arrive pickled, and the last piece answers first."""

    pieces: list[pa.Table] = field(repr=False)
    sent: list[Any] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        return sum(piece.num_rows for piece in self.pieces)

    def count(self, counter: Counter) -> list[Counts]:
        message = pickle.dumps(counter)
        self.sent.append(counter)
        sums: list[Counts] = []
        for piece in self._tables():
            sums = added(pickle.loads(pickle.dumps(pickle.loads(message)(piece))), sums)
        return sums

    def value_counts(self, names: Sequence[str], at_least: int = 1) -> dict[str, ValueCounts]:
        running = RunningCounts()
        for piece in self._tables():
            running.add(pickle.loads(pickle.dumps(count_values(piece, names))))
        return frequent(running.total(), at_least)

    def _tables(self) -> list[Table]:
        return [tables.read(piece) for piece in reversed(self.pieces)]


def in_odd_pieces(table: pa.Table) -> FarRows:
    cuts = [0, 1, 8, 500, 501, 2222, N]
    return FarRows([table.slice(start, stop - start) for start, stop in pairwise(cuts)])


@pytest.mark.parametrize("names", [None, ["pay"], ["city"]], ids=["all", "numbers", "labels"])
@pytest.mark.parametrize("target", [None, "pay"])
def test_a_release_learned_from_far_pieces_is_the_one_learned_from_one_table(
    names: list[str] | None, target: str | None
) -> None:
    table = people() if names is None else people().select(names)
    if target not in (None, *table.column_names):
        pytest.skip("a target that is not there")
    declared = Schema({"pay": Mixed(atoms=(0.0,))} if "pay" in table.column_names else {})
    recipe = Private(target)
    expected = dipriv.privatize(table, 1.5, reference=recipe, schema=declared, seed=7)
    own, whole, rows = bits(7), tables.read(table), in_odd_pieces(table)
    facts = [whole.column(name) for name in whole.names]
    plan = fitting.plan_fit(recipe, Optimal(), 1.5, facts, declared, rows=rows, bits=bits(0), delta=DELTA)
    fitted = plan.fit(rows, own.child("fit"))
    assert fitted.release(whole, (), own.child("noise")).equals(expected.data)
    assert fitted.schema == expected.schema
    assert rows.sent or names == ["city"]  # labels of a single column are found without a pass


def held_in(value: Any) -> list[Any]:
    """All objects that a counter would take along, through dataclasses and tuples."""
    inside: list[Any] = []
    if is_dataclass(value):
        inside = [getattr(value, part.name) for part in fields(value)]
    elif isinstance(value, tuple | list):
        inside = list(value)
    return [value, *(found for part in inside for found in held_in(part))]


def test_counters_take_no_secret_along_and_are_frozen() -> None:
    table = people()
    whole, rows = tables.read(table), in_odd_pieces(table)
    facts = [whole.column(name) for name in whole.names]
    plan = fitting.plan_fit(Private(), Optimal(), 1.0, facts, Schema({}), rows=rows, bits=bits(0), delta=DELTA)
    plan.fit(rows, bits(1))
    kinds = {type(part).__name__ for counter in rows.sent for part in held_in(counter)}
    assert {"ColumnsCounter", "LevelsCounter", "StepsCounter", "LineCounter", "PairsCounter"} <= kinds
    for counter in rows.sent:
        assert not any(isinstance(part, Bits | Accountant | PrivTree | Table) for part in held_in(counter))
        for part in (part for part in held_in(counter) if is_dataclass(part)):
            with pytest.raises(FrozenInstanceError):
                setattr(part, fields(part)[0].name, None)
        assert b"_random" not in pickle.dumps(counter)
    assert any(
        isinstance(part, Accountant) for part in held_in([Accountant("laplace", Fraction(1), bits(0))])
    )  # control


def test_counters_of_declared_labels_travel() -> None:
    frame = pl.DataFrame({"size": pl.Series(["s", "m"] * 200, dtype=pl.Enum(["s", "m", "l"])), "x": ["u", "v"] * 200})
    table = tables.read(frame)
    facts = [table.column(name) for name in table.names]
    rows = FarRows([frame.to_arrow().slice(0, 99), frame.to_arrow().slice(99)])
    declared = Schema({"x": Categorical(("v", "u", "w")), "size": Categorical(("s", "m", "xl"))})
    plan = fitting.plan_fit(Private(labels="declared"), Optimal(), 1.0, facts, declared, rows=rows, bits=bits(0))
    released = plan.fit(rows, bits(3).child("fit")).release(table, (), bits(3).child("noise"))
    expected = dipriv.privatize(frame, 1.0, reference=Private(labels="declared"), schema=declared, seed=3)
    assert released.equals(expected.data)
    assert released.schema["size"] == pl.Enum(["s", "m", "xl"])


def test_sums_and_counts_of_values_do_not_depend_on_the_order() -> None:
    one, other = [np.array([1, 2])], [np.array([30, 40])]
    for sums in (added(one, other), added(other, one), added([], added(one, added(other, [])))):
        assert sums[0].tolist() == [31, 42]
    texts = [pa.table({"x": part}) for part in (["b", None], ["c", "a"], pa.array(["b"]).dictionary_encode())]
    for order in ([0, 1, 2], [2, 1, 0]):
        parts = [tables.read(texts[place]) for place in order]
        found = CountedTables(5, lambda parts=parts: parts).value_counts(["x"])["x"]  # type: ignore[misc]
        assert found.values.to_pylist() == ["a", "b", "c"]
        assert found.counts.tolist() == [1, 2, 1]
