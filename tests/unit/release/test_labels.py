"""Labels that nothing declares: found privately, refused, or called public; all others are one label."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dipriv
from dipriv._base.columns import ColumnValues, NumericColumn
from dipriv._base.coordinates import UniformCoordinate
from dipriv._random.bits import Bits, Draws
from dipriv._tables import frames
from dipriv._tables.arrow import OTHER, cells_from_arrow, cells_to_arrow, place_of_others
from dipriv._tables.fitted_columns import FittedColumn
from dipriv.codecs.binned import RankedLevelsCodec
from dipriv.codecs.levels import LevelsCodec
from dipriv.errors import SchemaError
from dipriv.kernels import Optimal
from dipriv.references import Private
from dipriv.references._models.distributions import LevelsDistribution
from dipriv.references._models.independent import Independent
from dipriv.references.measured import Measurements
from dipriv.references.protocol import CountableValues, Frequencies, LabelPolicy
from dipriv.release.fitting import FittedMechanism, plan_fit
from dipriv.release.labels import TableValues
from dipriv.schema import Categorical, Kind, Schema
from dipriv.sources.protocol import CountedTables
from tests.support import bits
from tests.unit.refusal import SECRET, refused

N, THRESHOLD, DELTA = 600, 20, 1e-9
COMMON = ("Bonn", "Köln", "Ulm")
_RNG = np.random.default_rng(4)
CITIES: list[str] = [*_RNG.choice(COMMON, N - 9).tolist(), SECRET, "rare", "rare", *[OTHER] * 6]
CODES: list[int] = [*_RNG.choice([3, 5, 8], N - 12).tolist(), *[77_123] * 12]
TEXTS = [OTHER, *COMMON]


@dataclass(frozen=True, eq=False)
class Learned:
    kinds: tuple[Kind, ...]
    codecs: tuple[Any, ...]
    reference: Any
    order: tuple[int, ...] = (0,)
    measurements: Measurements = field(default_factory=lambda: Measurements(0, ()))


@dataclass(frozen=True)
class Plan:
    """A double of a learning plan, without noise: labels above a threshold are kept, and counted."""

    name: str
    reference_epsilon = Fraction(1, 2)
    row_epsilon = 0.5
    delta = Fraction(0)

    def coordinates(self) -> list[UniformCoordinate]:
        return [UniformCoordinate(self.name)]

    def count_noises(self, rows: int) -> list[float]:
        return [0.0]

    def learn(self, rows: CountableValues, bits: Bits) -> Learned:
        found = rows.frequencies([self.name])[self.name]
        kept = np.flatnonzero(found.counts > THRESHOLD)
        rows.keep_labels({self.name: kept})
        codec = LevelsCodec(np.arange(len(kept) + 1, dtype=np.int32))
        counted = rows.count(
            lambda values_of: [np.bincount(codec.to_states(values_of(self.name)), minlength=codec.states)]
        )
        assert counted[0][1:].tolist() == found.counts[kept].tolist()
        assert counted[0][0] >= found.others
        law = LevelsDistribution.on_line(0.0, np.maximum(counted[0], 1).astype(np.float64))
        return Learned((Categorical(),), (codec,), Independent((law,)))


@dataclass(frozen=True)
class Toy:
    """A double of the private reference, for one column of labels."""

    labels: LabelPolicy = "private"
    source: ClassVar[Literal["private"]] = "private"
    by: ClassVar[None] = None
    order: ClassVar[None] = None

    def check(self, columns: Sequence[NumericColumn], schema: Schema) -> None:
        assert all(column.n_labels is None for column in columns)

    def plan(self, columns: Sequence[NumericColumn], *_: Any, disjoint: bool) -> Plan:
        assert all(column.n_labels is None for column in columns)
        return Plan(columns[0].name)

    def kinds(self, names: Sequence[str]) -> Mapping[str, Kind]:
        return {}

    def exposes(self, columns: int) -> bool:
        return False

    def describe(self) -> str:
        return "a double"


def fitted(frame: Any) -> FittedMechanism:
    table = frames.read(frame)
    rows = CountedTables(table.rows, lambda: [table])
    facts = [table.column(name) for name in table.names]
    plan = plan_fit(Toy(), Optimal(), 0.5, facts, Schema({}), delta=DELTA, rows=rows, bits=bits(0))
    return plan.fit(rows, bits(1))


# ---- what is released has published labels only, in every library ----

_ORDERED = ["Ulm", SECRET, "Köln", "Bonn", "rare", OTHER]
_DAYS = [pd.Timestamp(2020, 1, code % 28 + 1) for code in CODES]
STORED: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "pandas text": (lambda: pd.DataFrame({"x": CITIES}), TEXTS),
    "pandas objects": (lambda: pd.DataFrame({"x": pd.Series(CITIES, dtype=object)}), TEXTS),
    "pandas categories": (lambda: pd.DataFrame({"x": pd.Categorical(CITIES)}), TEXTS),
    "pandas ordered categories": (
        lambda: pd.DataFrame({"x": pd.Categorical(CITIES, categories=_ORDERED, ordered=True)}),
        [OTHER, "Ulm", "Köln", "Bonn"],
    ),
    "pandas categories of numbers": (lambda: pd.DataFrame({"x": pd.Categorical(CODES)}), [3, 5, 8]),
    "pandas categories of times": (
        lambda: pd.DataFrame({"x": pd.Categorical(_DAYS)}),
        [pd.Timestamp(2020, 1, day) for day in (4, 6, 9)],
    ),
    "pandas intervals": (
        lambda: pd.DataFrame({"x": pd.cut(CODES, [0, 4, 6, 9, 100_000])}),
        [pd.Interval(0, 4), pd.Interval(4, 6), pd.Interval(6, 9)],
    ),
    "polars text": (lambda: pl.DataFrame({"x": CITIES}), TEXTS),
    "polars categories": (lambda: pl.DataFrame({"x": pl.Series(CITIES, dtype=pl.Categorical)}), TEXTS),
    "polars enum": (
        lambda: pl.DataFrame({"x": pl.Series(CITIES, dtype=pl.Enum(_ORDERED))}),
        [OTHER, "Ulm", "Köln", "Bonn"],
    ),
    "arrow text": (lambda: pa.table({"x": CITIES}), TEXTS),
    "arrow views": (lambda: pa.table({"x": pa.array(CITIES, pa.string_view())}), TEXTS),
    "arrow dictionary": (lambda: pa.table({"x": pa.array(CITIES).dictionary_encode()}), TEXTS),
    "arrow dictionary of numbers": (lambda: pa.table({"x": pa.array(CODES).dictionary_encode()}), [3, 5, 8]),
}


def listed(released: Any) -> list[Any] | None:
    """The categories that the type of the released column lists, or its dictionary."""
    column = released["x"]
    if isinstance(column, pd.Series):
        return column.cat.categories.tolist() if column.dtype == "category" else None
    if isinstance(column, pl.Series):
        return list(column.dtype.categories) if isinstance(column.dtype, pl.Enum) else None
    return column.combine_chunks().dictionary.to_pylist() if pa.types.is_dictionary(column.type) else None


@pytest.mark.parametrize("stored", STORED)
def test_a_release_shows_published_labels_only(stored: str) -> None:
    make, published = STORED[stored]
    frame = make()
    mechanism = fitted(frame)
    released = mechanism.release(frames.read(frame), (), bits(2))
    cells = released["x"].to_pylist() if isinstance(frame, pa.Table) else released["x"].to_list()
    assert {cell for cell in cells if not pd.isna(cell)} == {*published}
    assert any(pd.isna(cell) for cell in cells) == (OTHER not in published)
    assert listed(released) in (None, published)
    assert type(released) is type(frame)
    if stored != "pandas intervals":  # whose bounds are found in most pickles
        hidden = [text.encode() for text in (SECRET, "rare")] + [(77_123).to_bytes(3, "little")]
        assert any(text in pickle.dumps(frame) for text in hidden) or "times" in stored or "polars" in stored  # control
        assert not any(text in pickle.dumps(released) for text in hidden[:2])
        assert not any(text in pickle.dumps(mechanism) for text in hidden[:2])  # which a fitted DIP holds
    kind = mechanism.schema["x"]
    assert isinstance(kind, Categorical)
    plain = [label for label in published if isinstance(label, str | int)]
    assert kind.levels in (None, tuple(plain)) or stored == "pandas intervals"


def test_dtypes_stay_but_for_their_categories() -> None:
    for stored in ("pandas ordered categories", "pandas categories", "pandas text", "arrow dictionary", "arrow text"):
        frame = STORED[stored][0]()
        released = fitted(frame).release(frames.read(frame), (), bits(2))
        if isinstance(frame, pa.Table):
            assert released.schema == frame.schema
        else:
            before, after = frame["x"].dtype, released["x"].dtype
            assert getattr(before, "ordered", None) == getattr(after, "ordered", None)
            assert type(before) is type(after)


def test_a_column_of_names_is_released_as_other_altogether() -> None:
    names = pd.DataFrame({"x": [f"{SECRET} {number}" for number in range(N)]})
    mechanism = fitted(names)
    assert mechanism.release(frames.read(names), (), bits(2))["x"].tolist() == [OTHER] * N
    assert mechanism.schema["x"] == Categorical((OTHER,))
    numbers = pa.table({"x": pa.array(range(N)).dictionary_encode()})
    assert fitted(numbers).release(frames.read(numbers), (), bits(2))["x"].null_count == N


def test_a_dictionary_that_is_full_has_room_for_others() -> None:
    """128 frequent labels and (other) are one more than an index of eight bits can tell apart."""
    labels = [f"label {number:03}" for number in range(128)]
    full = pa.DictionaryArray.from_arrays(pa.array(np.tile(np.arange(128, dtype=np.int8), 30)), pa.array(labels))
    table = pa.table({"x": full})
    mechanism = fitted(table)
    released = mechanism.release(frames.read(table), (), bits(2))["x"].combine_chunks()
    assert released.type == full.type
    assert released.dictionary.to_pylist() == [OTHER, *labels[:127]]
    mechanism.columns[0].check_invariants()


# ---- counts and positions ----


def values_of(frame: Any, names: Sequence[str]) -> TableValues:
    table = frames.read(frame)
    columns = [table.column(name) for name in names]
    others = {
        column.name: pa.array([OTHER], pa.large_string()) for column in columns if column.storage.family == "label"
    }
    return TableValues(CountedTables(table.rows, lambda: [table]), columns, others)


def test_frequencies_have_labels_by_position_and_numbers_as_their_cells() -> None:
    table = pa.table(
        {
            "city": ["b", "a", OTHER, "b", None, OTHER],
            "pay": pa.array([-0.0, 0.0, float("inf"), None, float("nan"), 2.5], pa.float32()),
            "day": pa.array([1, 1, 0, None, 7, 7], pa.date32()),
        }
    )
    rows = values_of(table, table.column_names)
    found = rows.frequencies(["day", "city", "pay"])
    assert list(found) == ["day", "city", "pay"]
    assert (found["city"].values.tolist(), found["city"].counts.tolist(), found["city"].others) == ([0, 1], [1, 2], 2)
    assert found["pay"].values.tolist() == [0.0, 2.5, np.finfo(np.float32).max]
    assert (found["pay"].counts.tolist(), found["pay"].others) == ([2, 1, 1], 0)
    assert (found["day"].values.tolist(), found["day"].counts.tolist()) == ([0, 1, 7], [1, 2, 2])
    for name in ("pay", "day"):
        cells = frames.read(table).cells(name).values
        assert found[name].values.dtype == cells.dtype
    assert rows.frequencies([]) == {}
    assert "a" not in repr(Frequencies(np.array(["a"]), np.array([1]))).replace("Frequencies", "").replace("others", "")


def test_kept_labels_are_counted_after_one_for_all_others() -> None:
    rows = values_of(pa.table({"city": CITIES}), ["city"])

    def count() -> list[int]:
        (found,) = rows.count(lambda of: [np.bincount(of("city").values, minlength=4)])
        return [int(cells) for cells in found]

    assert count() == [N, 0, 0, 0]  # until labels are kept, all are others
    found = rows.frequencies(["city"])["city"]
    names = sorted({*CITIES} - {OTHER})
    rows.keep_labels({"city": np.array([names.index("Ulm"), names.index("Bonn")])})
    assert rows.labels["city"].to_pylist() == [OTHER, "Ulm", "Bonn"]  # as they were given
    ulm, bonn = CITIES.count("Ulm"), CITIES.count("Bonn")
    assert count() == [N - ulm - bonn, ulm, bonn, 0]
    assert found.counts[names.index("Ulm")] == ulm


@pytest.mark.parametrize("labels", [[OTHER, "a", "b"], ["a", OTHER, "b"], [None, "a", "b"]], ids=str)
def test_a_label_that_is_not_kept_has_the_state_of_others_in_every_codec(labels: list[str | None]) -> None:
    listed = pa.array(labels, pa.string())
    place = place_of_others(listed)
    for array in (pa.array(["x", "b", "y"]), pa.array(["x", "b", "y"]).dictionary_encode()):
        cells = cells_from_arrow(array, listed)
        assert cells.values.tolist() == [place, 2, place]
        levels = np.arange(3, dtype=np.int32)
        for codec in (LevelsCodec(levels), RankedLevelsCodec(levels, np.array([2, 0, 1]))):
            own = codec.to_states(ColumnValues(np.array([place], dtype=np.int32)))[0]
            assert codec.to_states(cells).tolist()[::2] == [own, own]
            inside = codec.encode(cells, Draws(bits(3), 0, 3))[[0, 2], 0]
            assert np.all((own < inside) & (inside <= own + 1))
            assert len({*inside}) == 2  # spread over the interval, not at its end
            assert codec.decode(codec.encode(cells, Draws(bits(3), 0, 3))).values.tolist() == [place, 2, place]
    without = cells_from_arrow(pa.array(["x"]), pa.array(["a", "b"]))
    assert without.values.tolist() == [-1]  # control: no label stands for others


def test_released_others_are_text_or_null() -> None:
    cells = ColumnValues(np.array([0, 1, 2]), None)
    coded = pa.dictionary(pa.int8(), pa.int64())
    released = cells_to_arrow(cells, pa.array([None, 3, 5]), coded)
    assert released.to_pylist() == [None, 3, 5]
    assert released.dictionary.to_pylist() == [3, 5]
    assert cells_to_arrow(cells.take([0, 0]), pa.array([None], pa.int64()), coded).to_pylist() == [None, None]


def test_a_fitted_column_may_list_a_null_first_only() -> None:
    column = fitted(pa.table({"x": pa.array(CODES).dictionary_encode()})).columns[0]
    assert column.labels is not None
    column.check_invariants()
    for wrong in ([3, None, 5, 8], [3, 5, 8, 8]):
        odd = FittedColumn(column.facts, column.kind, pa.array(wrong), column.codec)
        with pytest.raises(dipriv.DiprivError, match="labels"):
            odd.check_invariants()


# ---- policies ----


@dataclass(frozen=True)
class Unreadable:
    """Rows from which nothing may be read."""

    n_rows: int = N

    def count(self, counter: Any) -> Any:
        raise AssertionError("rows are read before the budget is spent")

    def value_counts(self, names: Sequence[str], at_least: int = 1) -> Any:
        raise AssertionError("labels are read before the budget is spent")


def planned(frame: Any, spec: Any, schema: Schema | None = None, delta: float = DELTA) -> Any:
    table = frames.read(frame)
    facts = [table.column(name) for name in table.names]
    return plan_fit(spec, Optimal(), 1.0, facts, schema or Schema({}), delta=delta, rows=Unreadable(), bits=bits(0))


def people() -> pd.DataFrame:
    return pd.DataFrame({"city": CITIES, "size": pd.Categorical(CITIES), "age": CODES})


def test_private_labels_are_not_read_before_the_budget_is_spent() -> None:
    plan = planned(people(), Private())
    assert plan.labels_found == ("city", "size")
    assert plan.labels_read == ()
    with pytest.raises(AssertionError, match="labels are read"):  # control
        planned(people(), Private(labels="public"))


def test_declared_refuses_all_columns_at_once() -> None:
    for call in (
        lambda: planned(people(), Private(labels="declared")),
        lambda: dipriv.privatize(people(), 1.0, labels="declared"),
    ):
        refused(SchemaError, "'city', 'size'", "with declared labels", call=call)
    declared = Schema({name: Categorical(tuple(TEXTS)) for name in ("city", "size")})
    assert planned(people(), Private(labels="declared"), declared).labels_found == ()


def test_pure_privacy_cannot_find_labels() -> None:
    refused(SchemaError, "delta=0", "'city', 'size'", call=lambda: planned(people(), Private(), delta=0.0))
    planned(people()[["age"]], Private(), delta=0.0)
    declared = Schema({name: Categorical(tuple(TEXTS)) for name in ("city", "size")})
    planned(people(), Private(), declared, delta=0.0)


def test_labels_that_become_null_need_a_column_that_can_hold_nulls() -> None:
    field = pa.field("x", pa.dictionary(pa.int32(), pa.int64()), nullable=False)
    table = pa.table([pa.array(CODES).dictionary_encode()], schema=pa.schema([field]))
    refused(SchemaError, "no nulls", call=lambda: planned(table, Private()))
    planned(table, Private(), Schema({"x": Categorical((3, 5, 8))}))
    planned(table.cast(pa.schema([field.with_nullable(True)])), Private())


def test_declared_levels_are_those_of_the_schema_not_of_the_type() -> None:
    frame = pd.DataFrame({"x": pd.Categorical([3, 5] * (N // 2))})
    release = dipriv.privatize(frame, 1.0, schema={"x": Categorical((5, 3, 9))}, seed=1)
    assert release.data["x"].cat.categories.tolist() == [5, 3, 9]
    assert release.schema["x"] == Categorical((5, 3, 9))
    for levels in (("a", "b"), (1.5,), (3, "a")):
        wrong = {"x": Categorical(levels)}
        refused(SchemaError, "cannot be stored", call=partial(dipriv.privatize, frame, 1.0, schema=wrong))


def test_public_labels_are_said_in_the_first_line() -> None:
    frame = people()[["city", "age"]]
    first = {
        labels: str(dipriv.privatize(frame, 1.0, labels=labels).guarantee).partition("\n")[0]
        for labels in ("private", "public")
    }
    assert "labels occur in 'city'" in first["public"]
    assert "label" not in first["private"]
    assert "(other)" in str(dipriv.privatize(frame, 1.0, seed=1).guarantee)
    assert "(other)" not in str(dipriv.privatize(people()[["age"]], 1.0, seed=1).guarantee)


@pytest.mark.parametrize("labels", ["private", "public"])
@pytest.mark.parametrize("odd", [np.nan, np.inf, -0.0])
def test_labels_that_no_schema_holds_are_released(labels: LabelPolicy, odd: float) -> None:
    """A schema has finite levels, each once; a dictionary of numbers may have others."""
    table = pa.table({"x": pa.array([0.0, 1.5, odd] * 300).dictionary_encode()})
    release = dipriv.privatize(table, 1.0, labels=labels, seed=1)
    assert release.schema["x"] == Categorical()
    assert {str(cell) for cell in release.data["x"].to_pylist()} == {"0.0", "1.5", str(odd)}
