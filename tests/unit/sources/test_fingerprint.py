"""A fingerprint depends on the key, names and cells, and on nothing that a user cannot see; parts of it are shared."""

from __future__ import annotations

import datetime as dt
import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, poisson

import dipriv
from dipriv._base.table_fingerprint import (
    SAMPLE_SIZE,
    SKETCH_SIZE,
    TELLING,
    Shared,
    TableFingerprint,
    coincidence,
    equal_tags,
    overlap,
    packed_sample,
    shared,
    tail,
)
from dipriv.sources import _fingerprint
from dipriv.sources._fingerprint import Fingerprint, PrefixFingerprints, fingerprint_of
from dipriv.sources._samples import Counted, Sample
from dipriv.sources.protocol import FingerprintRequest
from tests.unit.refusal import SECRET, refused

KEY = bytes(range(32))
CELLS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=5),
    pa.decimal128(9, 2): st.decimals(-1000, 1000, places=2),
    pa.timestamp("us"): st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
    pa.null(): st.none(),
    pa.list_(pa.string()): st.lists(st.text(max_size=5), max_size=3),
}


def of(*batches: pa.RecordBatch, key: bytes = KEY) -> TableFingerprint:
    found = Fingerprint(key, batches[0].schema.names)
    for batch in batches:
        found.update(batch)
    return found.result()


def column(cells: Any, name: str = "x") -> pa.RecordBatch:
    return pa.record_batch([pa.array(cells)], names=[name])


@st.composite
def tables(draw: st.DrawFn) -> pa.RecordBatch:
    """A batch of some rows, of one to three columns of any types, with nulls."""
    rows = draw(st.integers(1, 12))
    types = draw(st.lists(st.sampled_from(list(CELLS)), min_size=1, max_size=3))
    columns = [draw(st.lists(st.none() | CELLS[kind], min_size=rows, max_size=rows)) for kind in types]
    arrays = [pa.array(cells, kind, from_pandas=False) for cells, kind in zip(columns, types, strict=True)]
    return pa.record_batch(arrays, names=[f"c{i}" for i in range(len(types))])


def pieces(table: pa.RecordBatch, cuts: list[int]) -> list[pa.RecordBatch]:
    ends = [0, *sorted(min(cut, table.num_rows) for cut in cuts), table.num_rows]
    return [table.slice(start, stop - start) for start, stop in itertools.pairwise(ends)]


@given(tables(), st.lists(st.integers(0, 12), max_size=4))
def test_batches_and_slices_do_not_matter(table: pa.RecordBatch, cuts: list[int]) -> None:
    moved = pa.concat_batches([table, table, table]).slice(table.num_rows, table.num_rows)
    assert of(table) == of(*pieces(table, cuts)) == of(moved)


def test_nor_does_it_how_many_rows_are_hashed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.record_batch({"a": range(5000), "b": [f"v{i % 7}" for i in range(5000)]})
    before = of(table)
    monkeypatch.setattr(_fingerprint, "_SLICE_ROWS", 300)
    assert of(table) == before


@given(tables(), st.lists(st.integers(0, 12), max_size=4))
def test_parts_add_up_in_their_order(table: pa.RecordBatch, cuts: list[int]) -> None:
    """What workers send, put together, is the fingerprint of the whole."""
    names, total = table.schema.names, Fingerprint(KEY, table.schema.names)
    for part in pieces(table, cuts):
        total.append(Fingerprint.from_bytes(KEY, names, fingerprint_of(part, KEY).to_bytes()))
    assert total.result() == of(table)


@given(tables(), st.randoms())
def test_order_is_a_fact_of_its_own(table: pa.RecordBatch, random: Any) -> None:
    places = list(range(table.num_rows))
    random.shuffle(places)
    sorted_table = pa.Table.from_batches([table]).take(pa.array(places)).combine_chunks().to_batches()[0]
    one, other = of(table), of(sorted_table)
    assert replace(other, order=one.order, named_order=one.named_order) == one
    rows = [tuple(map(str, row.values())) for row in table.to_pylist()]
    if rows != [rows[place] for place in places] and len({*rows}) == len(rows):
        assert one.order != other.order or _alike(table)


def _alike(table: pa.RecordBatch) -> bool:
    """Whether two rows have equal canonical cells although Python writes them differently, such as 0 and -0.0."""
    rows = [of(table.slice(i, 1)).row_sketch for i in range(table.num_rows)]
    return len({*rows}) < len(rows)


def test_key_cells_and_their_rows_matter_but_not_the_names_or_the_order_of_columns() -> None:
    two = pa.record_batch({"x": [1, 2, 3], "y": [4, 5, 6]})
    others = [
        of(two),
        of(two, key=bytes(32)),
        of(two.slice(0, 2)),
        of(pa.record_batch({"x": [1, 2, 3], "y": [5, 4, 6]})),  # the same cells in each column, in other rows
        of(pa.record_batch({"x": [1, 2, 3], "y": [4, 5, 7]})),
        of(pa.record_batch({"x": [1, 2, 3, None], "y": [4, 5, 6, None]})),
    ]
    assert len({found.content for found in others}) == len(others)
    renamed, reordered = of(two.rename_columns(["x", "z"])), of(two.select(["y", "x"]))
    same = replace(renamed, samples=others[0].samples, named_order=others[0].named_order)
    assert same == others[0] == replace(reordered, columns=others[0].columns)
    assert renamed.named_order != others[0].named_order
    assert renamed.samples[0] == others[0].samples[0]  # the rows without names
    assert renamed.samples[-1] != others[0].samples[-1]  # and with names
    assert {*others[3].columns} == {*others[0].columns} == {*reordered.columns}
    assert not {*others[1].columns} & {*others[0].columns}


@pytest.mark.parametrize("n_distinct", [1, 9, 255, 256, 9000, 40_000])
def test_distinct_values_are_counted(n_distinct: int) -> None:
    """Exactly below the size of the sample, else within five standard errors, n / sqrt(k - 2)."""
    (found,) = of(column([i % n_distinct for i in range(50_000)])).columns
    error = 0 if n_distinct < SAMPLE_SIZE else 5 * n_distinct / (SAMPLE_SIZE - 2) ** 0.5
    assert abs(found.n_distinct - n_distinct) <= error
    assert bool(found.sketch) == (n_distinct > 3125)  # only of columns with one value for 16 rows and more


def tags_of(cells: Any) -> set[int]:
    (found,) = of(column(cells)).columns
    return {*np.frombuffer(found.tags, dtype="<u8").tolist()}


@pytest.mark.slow
@pytest.mark.parametrize("n_distinct", [1, 2, 9, 255, 256, 400])
def test_tags_count_each_sampled_cell_exactly(n_distinct: int) -> None:
    """One row less changes at most one tag, one cell at most two; repeating all rows of a table changes none."""
    cells = [i * i % n_distinct if i >= n_distinct else i for i in range(5000)]
    before = tags_of(cells)
    assert len(before) == min(n_distinct, SKETCH_SIZE)
    assert tags_of(sorted(cells)) == before
    assert len(before - tags_of(cells[1:])) <= 1
    assert len(before - tags_of([cells[-1], *cells[1:]])) <= 2
    assert (tags_of(cells + cells) == before) == (n_distinct > 9)  # fewer counts may be even by chance
    less = {tag for value in range(n_distinct) for tag in before - tags_of(_without_one(cells, value))}
    assert less == before  # every tag depends on the count of its cell


def _without_one(cells: list[int], value: int) -> list[int]:
    place = cells.index(value)
    return cells[:place] + cells[place + 1 :]


@pytest.mark.parametrize("n", [100, 3000])
def test_tails_bound_how_often_unrelated_columns_share_tags(n: int) -> None:
    """Estimated from 2,000 pairs, within five standard errors; the bound is not loose by more than a factor of 4."""
    rng, pairs = np.random.default_rng(n), 2000
    draws = [rng.binomial(n, 0.3, pairs) for _ in range(2)]
    equal = float(np.mean(draws[0] == draws[1]))
    labels = [np.arange(2, dtype=np.uint64)]
    expected = [equal_tags([np.array([k, n - k])], labels, n)[0] for k in draws[0][:200]]
    for way in range(2):  # of the same name, and of any: there is one column
        bound = float(np.mean([tail(each[way], 1) for each in expected]))
        assert equal <= bound + 5 * (bound / pairs) ** 0.5
        assert bound <= 4 * (equal + 5 * (equal / pairs) ** 0.5)
    alike = equal_tags([np.array([n // 3, n - n // 3])] * 9, labels * 9, n)
    assert all(named < of_any for named, of_any in alike)


def test_tails_bound_poisson_tails() -> None:
    """The model of a number of equal tags, where the chance of each is small."""
    for mean in (1e-3, 0.1, 1.0, 30.0):
        counts = np.arange(1, 100)
        assert np.all(poisson.sf(counts - 1, mean) <= tail(mean, counts) * (1 + 1e-9))


def test_coincidence_bounds_the_probability_of_as_much_evidence() -> None:
    """Against the exact probability that at least k of n columns with two tags match, where one tag is needed."""
    for mean, n in ((0.02, 3), (0.1, 20), (0.3, 20), (1e-9, 4), (1.0, 5)):
        for k in range(n + 1):
            bound = coincidence([mean] * n, [2] * n, [1] * k + [0] * (n - k))
            assert binom.sf(k - 1, n, tail(mean, 1)) <= bound * (1 + 1e-9)
    assert coincidence([1e-30, 1e-30] + [0.4] * 30, [2] * 32, [1, 1] + [0] * 30) < 1e-9
    some = [coincidence([0.02], [9], [k]) for k in range(10)]
    assert sorted(some, reverse=True) == some  # more equal tags are more evidence
    assert some[3] == 1 > some[4] > 1e6 * some[8]


@given(st.integers(0, 2**32), st.sampled_from([64, 256]), st.integers(1, 3000), st.lists(st.integers(0, 3000)))
def test_a_sample_is_the_smallest_distinct_hashes_with_their_counts(
    seed: int, size: int, n_distinct: int, cuts: list[int]
) -> None:
    """Against numpy, in one go and merged from parts that were cut off."""
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 2**64, n_distinct, np.uint64)[rng.integers(0, n_distinct, 3000)]
    values, counts = np.unique(hashes, return_counts=True)
    whole, merged = Sample(size), Sample(size)
    whole.add(hashes)
    sent = max(1, size // 4)
    for part in np.split(hashes, sorted(cuts)):
        some = Sample(size)
        some.add(part)
        merged.merge(some.counted().first(sent))
    for found, least in ((whole.counted(), min(size, len(values))), (merged.counted(), min(sent, len(values)))):
        assert len(found.hashes) >= least
        assert np.array_equal(found.hashes, values[: len(found.hashes)])
        assert np.array_equal(found.counts, counts[: len(found.hashes)])
        assert len(found.hashes) == len(values) or found.end >= found.hashes[-1]
        assert np.sum(values <= found.end) == len(found.hashes)


def of_numbers(numbers: Any) -> bytes:
    return of(column(numbers)).samples[0]


@pytest.mark.parametrize(("rows", "common"), [(1000, 800), (30_000, 20_000), (30_000, 0), (100_000, 50_000)])
def test_samples_estimate_what_sets_share(rows: int, common: int) -> None:
    """Within five standard deviations of a sample of the smaller set."""
    found = shared(of_numbers(range(rows)), of_numbers(range(rows - common, 2 * rows)), (rows, rows + common))
    share = common / rows
    sampled = SAMPLE_SIZE * rows / (rows + common)  # of the smaller set, below the end of the other's sample
    assert abs(found.share - share) <= 5 * (max(share * (1 - share), 1e-9) / min(sampled, rows)) ** 0.5
    assert found.is_telling(1e-6) == (common > 0)
    assert shared(b"", of_numbers(range(rows)), (1, rows)) == Shared(0, 0.0, 1.0)


@pytest.mark.parametrize("part", [800, 300, 50])
def test_a_part_of_a_large_table_is_noticed_with_the_stated_probability(part: int) -> None:
    """In the range that a sample of k of n rows covers, a share f of the rows has about Poisson(fk) rows.

    At least ten of them are needed: 1 - 1e-9 for a part of 1/200, 0.996 for 1/800, 4e-4 for 1/5000 as a control.
    """
    n, shares = 160_000, {800: 1 - 1e-6, 300: 0.99, 50: 0.06}
    assert (poisson.sf(TELLING - 1, SAMPLE_SIZE * part / n) >= shares[part]) == (part > 50)
    rng, whole = np.random.default_rng(part), of_numbers(range(n))
    parts = (rng.choice(n, part, replace=False) for _ in range(20))
    noticed = sum(shared(whole, of_numbers(numbers), (n, part)).is_telling(1e-3) for numbers in parts)
    least = binom.ppf(1e-6, 20, shares[part])
    assert noticed >= least if part > 50 else noticed <= binom.isf(1e-6, 20, shares[part])


@pytest.mark.parametrize("n_values", [20, 500, 5000, 10**6])
@pytest.mark.parametrize("other", [200, 5000])
def test_chances_bound_how_often_unrelated_tables_share_values(n_values: int, other: int) -> None:
    """Of 100 pairs at most as many below 1% as a binomial count of 1% has in all but one of a million tests."""
    rng, found = np.random.default_rng(n_values + other), []
    weights = rng.dirichlet(np.full(min(n_values, 10**5), 0.5))
    for _ in range(100):
        samples = []
        for size in (5000, other):
            values, counts = np.unique(rng.choice(len(weights), size, p=weights), return_counts=True)
            hashes = values.astype(np.uint64) << np.uint64(20)
            samples.append(packed_sample(hashes, counts.astype(np.uint64), 2**64 - 1))
        found.append(shared(samples[0], samples[1], (5000, other)).chance)
    assert np.sum(np.array(found) < 0.01) <= binom.isf(1e-6, 100, 0.01)


def test_a_repeated_table_shares_its_rows() -> None:
    """Control: values that come twice in one of two tables drawn alike are as often twice in the same."""
    numbers = np.arange(3000)
    for times in (2, 3, 7):
        found = shared(of_numbers(numbers), of_numbers(np.tile(numbers, times)), (3000, 3000 * times))
        assert found.share == 1
        assert found.chance < 1e-6
    assert of(column(np.tile(numbers % 10, 6))).repeats == 6 * 300
    assert [of(column(some)).repeats for some in (np.append(numbers % 10, 19), numbers % 9)] == [1, 1]


def test_sketches_say_which_rows_are_equally_often_in_both() -> None:
    one = of(column(range(200))).row_sketch
    assert overlap(one, of(column(range(100, 400))).row_sketch) == pytest.approx(0.5, abs=0.2)
    assert overlap(one, of(column([*range(200), *range(199)])).row_sketch) == 0
    assert overlap(b"", one) == 0


def test_samples_of_older_versions_have_no_counts() -> None:
    hashes = np.arange(1, 40, dtype=np.uint64) << np.uint64(40)
    old, new = (packed_sample(hashes, np.full(39, count, np.uint64), 2**64 - 1) for count in (0, 1))
    assert shared(old, new, (39, 39)) == Shared(39, 1.0, 0.0, compared=39)
    assert Counted(hashes, hashes, hashes[-1]).first(50).end == hashes[-1]


@given(tables(), st.sets(st.integers(1, 14), max_size=4), st.lists(st.integers(0, 12), max_size=3))
def test_beginnings_are_those_of_shorter_tables(table: pa.RecordBatch, sizes: set[int], cuts: list[int]) -> None:
    seen = PrefixFingerprints(FingerprintRequest(KEY, frozenset(sizes)), table.schema.names)
    for part in pieces(table, cuts):
        seen.update(part)
    found = seen.result()
    within = [size for size in sizes if size <= table.num_rows]
    beginnings = [of(table.slice(0, size)) for size in within]
    assert found.prefixes == {(one.order, one.named_order) for one in beginnings}
    assert (found.order, found.named_order) == (of(table).order, of(table).named_order)


def test_what_cannot_be_one_table_is_refused() -> None:
    fingerprint = Fingerprint(KEY, ["x"])
    refused(dipriv.InputError, "no rows", call=fingerprint.result)
    fingerprint.update(column([1]))
    before = fingerprint.result()
    text = column([SECRET], "y")
    refused(dipriv.InputError, "columns", call=lambda: fingerprint.update(text))
    assert fingerprint.result() == before
    refused(dipriv.InputError, "3 bytes", call=lambda: Fingerprint(b"key", ["x"]))


def test_nothing_shows_a_hash() -> None:
    assert repr(of(column([1.5, 2.5]))) == "TableFingerprint(rows=2, is_ordered=True)"
    assert repr(FingerprintRequest(KEY)) == "FingerprintRequest(prefix_sizes=frozenset())"
