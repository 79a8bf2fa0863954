"""Findings of a reading of all of the code: rows whose cells are in other columns, distributions that warn, workbooks
that warn, dates in other forms, and partitions that Spark makes by the bytes of columns.
"""

from __future__ import annotations

import datetime as dt
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from sqlalchemy import create_engine, text
from typer.testing import CliRunner

import dipriv
from dipriv._random.bits import Bits, source
from dipriv._tables.any_values import array_of_any
from dipriv._tables.column_types import parse
from dipriv.cli import app
from dipriv.errors import BudgetError, DisclosureError, InputError, SchemaError, SourceChangedError
from dipriv.ledger import Ledger
from dipriv.references import Known, Mixture
from dipriv.references._models.scipy_functions import TotalFunctions
from dipriv.sources._cells import canonical_cells, cell_hashes
from dipriv.sources.spark.even_parts import Places
from tests import spark_support

RNG = np.random.default_rng(37)
KEY = np.arange(2, dtype=np.uint64)


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    with Ledger.create(tmp_path / "ledger.db") as made:
        yield made


# ---- rows that have the same cells in other columns ----


def regions(rows: int = 600) -> pd.DataFrame:
    region = RNG.integers(0, 4, rows)
    ages = {"age": np.sort(RNG.integers(18, 90, rows))}
    return pd.DataFrame(ages | {name: (region == place).astype(int) for place, name in enumerate("nesw")})


@pytest.mark.parametrize("longer", [False, True])
def test_rows_that_were_sorted_by_dummy_columns_are_not_held_out(ledger: Ledger, longer: bool) -> None:
    table = regions()
    dipriv.privatize(table, 1.0, reference="holdout", ledger=ledger, dataset="people")
    other = table.sort_values(["age", "n", "e"], kind="stable")
    assert not (other.index == table.index).all()  # control
    more = regions(50) if longer else regions(0)
    with pytest.raises(DisclosureError, match="are not the first rows of this table, unchanged"):
        dipriv.privatize(pd.concat([other, more]), 1.0, reference="holdout", ledger=ledger, dataset="people")
    dipriv.privatize(pd.concat([table, more]), 1.0, reference="holdout", ledger=ledger, dataset="people")
    assert ledger.dataset("people").spent == 2.0


def test_a_ledger_of_an_earlier_version_learns_the_names_of_columns(tmp_path: Path) -> None:
    table, place = regions(), tmp_path / "ledger.db"
    with Ledger.create(place) as ledger:
        dipriv.privatize(table, 1.0, reference="holdout", ledger=ledger, dataset="people")
    with create_engine(f"sqlite:///{place}").begin() as connection:
        connection.execute(text("UPDATE dipriv_contents SET named_order = NULL"))
    asked: dict[str, Any] = {"reference": "holdout", "dataset": "people"}
    with Ledger.open(place) as ledger:
        dipriv.privatize(table, 1.0, ledger=ledger, **asked)
        with pytest.raises(DisclosureError, match="are not the first rows of this table"):
            dipriv.privatize(table.sort_values(["age", "n"], kind="stable"), 1.0, ledger=ledger, **asked)


def ballots(rows: int = 500) -> pd.DataFrame:
    """Rankings: all rows have the same cells, in other columns."""
    ranked = np.argsort(RNG.random((rows, 4)), axis=1)
    return pd.DataFrame(ranked, columns=[f"rank {place}" for place in range(4)])


def test_rankings_of_other_people_are_others(ledger: Ledger) -> None:
    mine = ballots()
    dipriv.privatize(mine, 1.0, ledger=ledger, dataset="north")
    with pytest.raises(BudgetError, match="in another order or with cells in other columns"):
        dipriv.privatize(ballots(), 1.0, ledger=ledger, dataset="south")
    dipriv.privatize(ballots(), 1.0, ledger=ledger, new_dataset="south")
    dipriv.privatize(mine, 1.0, ledger=ledger)  # control: no question
    assert ledger.dataset("north").spent == 2.0


@pytest.mark.parametrize("reference", ["private", "holdout"])
def test_what_is_said_of_other_peoples_rankings_says_nothing_of_these(ledger: Ledger, reference: str) -> None:
    mine, others = ballots(1000), ballots(1000)
    dipriv.privatize(mine, 1.0, reference=reference, ledger=ledger, dataset="people")
    asked: dict[str, Any] = {"reference": reference, "ledger": ledger}
    dipriv.privatize(others, 1.0, new_dataset="workers", **asked)
    dipriv.privatize(others, 1.0, dataset="workers", **asked)  # control: that was said of this table
    with pytest.raises(BudgetError, match="already known as data set 'people'"):
        dipriv.privatize(mine, 1.0, dataset="workers", ledger=ledger)
    assert [ledger.dataset(name).spent for name in ("people", "workers")] == [1.0, 2.0]


def test_names_that_differ_in_case_are_those_of_other_columns(ledger: Ledger) -> None:
    table = regions().rename(columns={"s": "N"})
    dipriv.privatize(table, 1.0, reference="holdout", ledger=ledger, dataset="people")
    other = table.sort_values(["age", "n"], kind="stable")
    with pytest.raises(DisclosureError, match="are not the first rows of this table, unchanged"):
        dipriv.privatize(other, 1.0, reference="holdout", ledger=ledger, dataset="people")


def test_a_grown_table_says_what_columns_the_earlier_one_had(tmp_path: Path) -> None:
    table, place = ballots(), tmp_path / "ledger.db"
    asked: dict[str, Any] = {"reference": "holdout", "dataset": "people"}
    with Ledger.create(place) as ledger:
        dipriv.privatize(table, 1.0, ledger=ledger, **asked)
    with create_engine(f"sqlite:///{place}").begin() as connection:
        connection.execute(text("UPDATE dipriv_contents SET named_order = NULL"))
    with Ledger.open(place) as ledger:
        dipriv.privatize(pd.concat([table, ballots(50)]), 1.0, ledger=ledger, **asked)
        with pytest.raises(DisclosureError, match="are not the first rows of this table"):
            dipriv.privatize(table.sort_values(["rank 0", "rank 1"], kind="stable"), 1.0, ledger=ledger, **asked)
        dipriv.privatize(table, 1.0, ledger=ledger, **asked)


# ---- distributions that warn or fail for some values ----

EXTREMES = [0.0, 5e-324, *(sign * size for size in (1e-300, 710.0, 1e5, 1e154, 1.7e308) for sign in (1, -1))]
DISTRIBUTIONS = {
    "gumbel_l": stats.gumbel_l(0, 1),
    "gumbel_r": stats.gumbel_r(10, 2),
    "weibull_min": stats.weibull_min(2),
    "rayleigh": stats.rayleigh(),
    "invgamma": stats.invgamma(3),
    "levy": stats.levy(),
    "skewnorm": stats.skewnorm(4),
    "genextreme": stats.genextreme(-0.1),
    "mielke": stats.mielke(10.4, 3.6),
    "halfnorm": stats.halfnorm(),
    "norminvgauss": stats.norminvgauss(1, 0.5),
    "mixture": Mixture({0.0: 0.3}, stats.gumbel_l(0, 1)),
}


@pytest.mark.filterwarnings("error", "ignore::dipriv.errors.PrivacyWarning", "ignore::dipriv.errors.UtilityWarning")
@pytest.mark.parametrize("numpys", ["warn", "raise"])
@pytest.mark.parametrize("dist", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS.keys())
def test_no_value_makes_a_distribution_warn_or_fail(dist: Any, numpys: Any) -> None:
    ordinary = np.asarray([0.5] if isinstance(dist, Mixture) else dist.ppf([0.5]))
    ordinary = np.resize(np.concatenate([ordinary, ordinary + 0.5]), 40)
    reference = Known(dist)
    with np.errstate(all=numpys):
        for cell in (*EXTREMES, float("inf"), -float("inf")):
            table = pa.table({"x": [*ordinary[:-1].tolist(), cell]})
            released = dipriv.privatize(table, 1.0, reference=reference, seed=1).data["x"].to_numpy()
            assert np.isfinite(released).all(), cell


def test_distributions_that_warn_without_that() -> None:
    """The control."""
    with pytest.warns(RuntimeWarning, match="overflow"):
        stats.gumbel_l(0, 1).cdf(800.0)
    with pytest.raises(ValueError, match="NaN"):
        stats.norminvgauss(1, 0.5).ppf(1 - 2.0**-53)
    with np.errstate(all="ignore"):
        assert np.isnan(stats.mielke(10.4, 3.6).cdf(1e154))


def test_functions_of_distributions_are_total_and_keep_what_scipy_finds() -> None:
    dist = stats.mielke(10.4, 3.6)
    assert TotalFunctions(dist).cdf(np.array([1e154, 0.0, np.nan])).tolist()[:2] == [1.0, 0.0]
    inside = np.linspace(0.01, 0.99, 50)
    for some in (stats.norm(), stats.gamma(2, 3, 5), stats.beta(2, b=3, scale=4)):
        quantiles = TotalFunctions(some).ppf(inside)
        assert np.array_equal(quantiles, some.ppf(inside))
        assert np.array_equal(TotalFunctions(some).cdf(quantiles), some.cdf(quantiles))
    ends = TotalFunctions(stats.halfnorm()).ppf(np.array([0.0, 1.0]))
    assert np.isfinite(ends).all()
    before = list(warnings.filters)
    TotalFunctions(dist).ppf(inside)
    assert warnings.filters == before


SHAPES = [-2.0, -1.0, 0.5, 1.0, 2.0, 3.0]
QUICK = [
    "burr",
    "burr12",
    "exponpow",
    "exponweib",
    "fisk",
    "gengamma",
    "genhalflogistic",
    "halfgennorm",
    "invweibull",
    "kappa3",
    "loglaplace",
    "mielke",
    "pareto",
    "powerlaw",
    "truncpareto",
    "truncweibull_min",
    "weibull_min",
    "weibull_max",
    "norm",
    "gamma",
    "beta",
    "expon",
    "t",
    "lognorm",
    "skewnorm",
    "triang",
    "uniform",
]


@pytest.mark.parametrize("family", QUICK)
def test_a_value_has_its_place_whatever_other_values_there_are(family: str) -> None:
    """scipy leaves out values outside of the support, and numpy's powers then have other last bits."""
    compared, of = 0, getattr(stats, family)
    for number in range(40):
        shapes = np.random.default_rng(number).choice(SHAPES, of.numargs)
        dist = of(*shapes, loc=number % 3, scale=(1.0, 9.0, 7.0)[number % 3])
        with np.errstate(all="ignore"):
            quantiles = np.round(dist.ppf(np.linspace(0.01, 0.99, 200)), 1)
        if not np.isfinite(quantiles).all():
            continue  # parameters that it cannot have
        functions = TotalFunctions(dist)
        alone = functions.cdf(quantiles)[:-1].tobytes()
        ends = [float(end) for end in dist.support()]
        ends += [float(np.nextafter(end, 0.0)) for end in ends]
        for cell in (*EXTREMES, *ends, -1.0, 1.0, float("nan"), float("inf"), -float("inf")):
            assert functions.cdf(np.append(quantiles[:-1], cell))[:-1].tobytes() == alone, (shapes, cell)
            compared += 1
    assert compared >= 100


class Together(stats.rv_continuous):
    """A family of somebody's own, whose functions take all values together."""

    def _cdf(self, x: Any, *args: Any) -> Any:
        return stats.norm.cdf(x) * (1.0 if np.max(x) < 3 else 0.5)


class Signed(stats.rv_continuous):
    """A family of somebody's own, whose function differs at 0.0 and -0.0."""

    def _cdf(self, x: Any, *args: Any) -> Any:
        return np.where(np.copysign(1.0, x) > 0, 0.9, 0.1)

    def _ppf(self, q: Any, *args: Any) -> Any:
        return q - 0.5


def test_the_sign_of_a_zero_moves_no_other_row() -> None:
    dist, zeros = Signed(name="signed")(), np.zeros(9)
    assert dist.cdf(-zeros)[0] != dist.cdf(zeros)[0]  # control
    for place in (0, 4, 8):
        some = zeros.copy()
        some[place] = -0.0
        assert np.array_equal(TotalFunctions(dist).cdf(some), TotalFunctions(dist).cdf(zeros))


def test_a_complex_cell_is_a_cell_by_itself() -> None:
    """numpy makes all of its column complex: all were missing then."""
    for odd in (3 + 1j, 3 + 0j):
        cells = array_of_any(np.array([-2.0, 1.5, odd]).tolist(), pa.float64())
        assert cells.to_pylist() == [-2.0, 1.5, 3.0 if odd.imag == 0 else None]


def test_distributions_of_users_are_computed_value_by_value() -> None:
    dist, values = Together(name="together")(), np.array([0.5, 1.0, 5.0])
    assert dist.cdf(values)[0] != dist.cdf(values[:2])[0]  # control
    alone, both = (TotalFunctions(dist).cdf(some) for some in (values[:2], values))
    assert np.array_equal(alone, both[:2])


@pytest.mark.parametrize("kernel", ["optimal", "laplace"])
def test_a_cell_moves_no_other_row(kernel: str) -> None:
    """Of values at an end of the kernel's bins: 608 of 1,999 other rows were released as others before."""
    rows = np.full(2000, 5.4)
    tables = [pa.table({"x": np.append(rows[:-1], last)}) for last in (7.0, 0.0, -1.0, 5.4)]
    asked: dict[str, Any] = {"reference": Known(stats.fisk(1, scale=9)), "kernel": kernel, "seed": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        released = [dipriv.privatize(table, 1.0, **asked).data["x"].to_numpy()[:-1] for table in tables]
    assert all(np.array_equal(one, released[0]) for one in released[1:])


def test_parameters_that_a_distribution_cannot_have_are_refused() -> None:
    with pytest.raises(InputError, match="no density"):
        Mixture({0.0: 0.3}, stats.poisson(3))
    for dist in (stats.norm(0, -1), stats.gamma(-2), stats.norm(np.nan, 1)):
        with pytest.raises(InputError, match="no finite median"):
            Known(dist)


# ---- workbooks ----


def test_a_warning_about_a_workbook_shows_no_cell(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["age", "visit"])
    for row in range(299):
        sheet.append([20 + row % 50, dt.datetime(2024, 1, 1 + row % 28)])
    sheet.append([50, 4719283746])
    sheet["B301"].number_format = "yyyy-mm-dd"
    book.save(tmp_path / "m.xlsx")
    content = io.BytesIO((tmp_path / "m.xlsx").read_bytes())
    with pytest.warns(UserWarning, match="4719283746"):  # control
        list(openpyxl.load_workbook(content, read_only=True).active.values)
    out = str(tmp_path / "m.csv")
    asked = ["privatize", str(tmp_path / "m.xlsx"), "-e", "3", "--drop", "visit", "--no-ledger", "-o", out]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert "4719283746" not in done.output


def test_warnings_of_others_are_shown_without_their_words(capsys: Any) -> None:
    from dipriv.cli.terminal import warnings_as_lines

    with warnings_as_lines():
        warnings.simplefilter("always")
        warnings.warn("the cell is 4719283746", UserWarning, stacklevel=1)
    shown = capsys.readouterr().err
    assert "UserWarning" in shown
    assert "4719283746" not in shown


# ---- dates with the year first ----

DATES = ["2024-03-05", "2024/03/05", "2024/3/5", "2024.3.05", "2024-3-5"]
HOURS = ["9:05", "09:05", "9:05:07", "23:59:59"]
MOMENTS = [f"{day} {hour}" for day in DATES for hour in HOURS] + [f"{day}t{hour}" for day in DATES for hour in HOURS]
ZONED = ["2024-03-05T09:05:07z", "2024-03-05 9:05Z", "2024-03-05t09:05:07.25+01:00", "2024-03-05 9:05-0330"]


@pytest.mark.parametrize(
    ("texts", "of"),
    [(DATES, pa.date32()), (MOMENTS, pa.timestamp("s")), (ZONED, pa.timestamp("us", "UTC")), (HOURS, pa.time32("s"))],
    ids=["dates", "moments", "zones", "hours"],
)
def test_texts_that_are_read_as_dates_are_these_dates_for_the_ledger(texts: list[str], of: pa.DataType) -> None:
    for cell in texts:
        as_text = pa.array([cell])
        plain = dipriv._tables.decorated.write_plainly(as_text, (), 0, None, 0)
        read = parse(plain, of, ())
        assert read.null_count == 0, cell
        assert all(map(np.array_equal, cell_hashes(as_text, KEY), cell_hashes(read, KEY))), cell


@pytest.mark.parametrize(
    "cell",
    [
        "2024/13/05",
        "2024/02/30",
        "2024.123.45",
        "1234.56.7",
        "2024/3-5",
        "2024-3",
        "20240305",
        "9:5",
        "24:05",
        "9:05:7",
    ],
)
def test_texts_that_are_no_dates_are_text(cell: str) -> None:
    array = pa.array([cell])
    hashes = [cell_hashes(pa.array([some]), KEY) for some in (cell, f"{cell}x")]
    assert hashes[0] != hashes[1]
    words, kinds = canonical_cells(array)
    assert kinds[0] in (1, 7), words  # a number or text


@pytest.mark.parametrize(
    "cell", ["2024/03/05", "2024-3-5", "9:05", "2024-03-05t09:05", "2024-03-05 9:05", "2024.03.05"]
)
def test_who_is_held_out_by_a_date_stays_so(cell: str) -> None:
    """Keys of persons are read as before: a hold-out that there is must not change."""
    assert canonical_cells(pa.array([cell]))[1][0] == 7  # text
    assert canonical_cells(pa.array(["2024-03-05"]))[1][0] == 4  # control: a moment


def test_a_table_with_such_dates_is_known_as_a_workbook(ledger: Ledger, tmp_path: Path) -> None:
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 360, 400), unit="D")
    table = pd.DataFrame({"day": day, "smokes": RNG.choice(["yes", "no"], 400)})
    table.assign(day=table.day.dt.strftime("%Y/%m/%d")).to_csv(tmp_path / "v.csv", index=False)
    table.to_excel(tmp_path / "v.xlsx", index=False)

    def release(name: str, dataset: str) -> None:
        dipriv.privatize_file(tmp_path / name, tmp_path / f"{name}.out.csv", 1.0, ledger=ledger, dataset=dataset)

    release("v.csv", "alpha")
    with pytest.raises(BudgetError, match="alpha"):
        release("v.xlsx", "zebra")
    assert ledger.dataset("alpha").spent == 1.0


# ---- partitions ----


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    yield from spark_support.session(tmp_path_factory.mktemp("events"))


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("reference", ["private", "holdout"])
def test_the_bytes_of_dropped_columns_do_not_move_partitions(
    session: Any, ledger: Ledger, reference: str, tmp_path: Path
) -> None:
    """Spark brings small partitions of a shuffle together by their bytes: those of the columns that are read."""
    rows = 4000
    notes = ["".join(RNG.choice(list("abcdefgh"), 200)) for _ in range(rows)]
    table = pd.DataFrame({"g": RNG.integers(0, 50, rows), "age": RNG.integers(18, 90, rows), "note": notes})
    table.to_parquet(tmp_path / "t.parquet")
    session.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", "100000")
    session.conf.set("spark.sql.adaptive.coalescePartitions.minPartitionSize", "100000")
    session.conf.set("spark.sql.shuffle.partitions", "20")
    try:
        frame = session.read.parquet(str(tmp_path / "t.parquet")).repartition("g")
        parts = [some.rdd.getNumPartitions() for some in (frame, frame.select("g", "age"))]
        assert parts[0] > parts[1]  # control
        asked: dict[str, Any] = {"drop": ["note"], "reference": reference, "ledger": ledger}
        released = dipriv.privatize(frame, 1.0, new_dataset="people", **asked).data.toArrow()
        kept = dipriv.privatize(frame.drop("age"), 1.0, keep=["note"], reference=reference).data.toArrow()
    except SourceChangedError as error:
        pytest.fail(str(error))
    finally:
        for name in ("advisoryPartitionSizeInBytes", "coalescePartitions.minPartitionSize"):
            session.conf.unset(f"spark.sql.adaptive.{name}")
        session.conf.set("spark.sql.shuffle.partitions", "2")
    assert released.column_names == ["g", "age"]
    assert kept.column_names == ["g", "note"]
    assert (released.num_rows == rows) is (reference == "private")


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_text_that_is_read_as_numbers_leaves_rows_where_they_are(session: Any, ledger: Ledger) -> None:
    """Spark deals rows out by their cells, of the columns that are read: one pass read others than the next."""
    rows = 2000
    table = pd.DataFrame(
        {
            "id": [f"p{number:05d}" for number in range(rows)],
            "age": RNG.integers(18, 90, rows).astype(str),
            "town": RNG.choice(["a", "b", "c"], rows),
            "pay": RNG.integers(1000, 9000, rows),
        }
    )
    frame = session.createDataFrame(table).repartition(3)
    asked: dict[str, Any] = {"reference": "holdout", "keep": ["id"], "types": {"age": "whole"}, "ledger": ledger}
    released = []
    for dropped in ("town", "pay"):
        found = dipriv.privatize(frame, 1.0, drop=[dropped], dataset="people", **asked).data.toArrow()
        assert pa.types.is_integer(found.schema.field("age").type)
        released.append({*found["id"].to_pylist()})
    assert len(released[0]) < rows  # control
    assert released[0] == released[1]  # none of those held out at first


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_the_order_of_released_rows_is_random(session: Any) -> None:
    """Spark orders rows by cells where it deals them out, and files by their sizes."""
    rows = 4000
    frame = session.createDataFrame(pd.DataFrame({"id": range(rows), "age": RNG.integers(18, 90, rows)}))
    orders = []
    for seed in (1, None, None):
        released = dipriv.privatize(frame, 1.0, keep=["id"], seed=seed).data
        orders.append(released.toArrow()["id"].to_numpy())
        assert sorted(orders[-1]) == list(range(rows))
        assert np.array_equal(released.toArrow()["id"].to_numpy(), orders[-1])  # the same when it is used again
    assert np.array_equal(orders[0], np.arange(rows))  # control: Spark's own, which a seeded release has
    for order in orders[1:]:  # correlations of random orders are normal with variance 1 / (rows - 1)
        assert abs(np.corrcoef(order, np.arange(rows))[0, 1]) < 6 / np.sqrt(rows)
    assert abs(np.corrcoef(orders[1], orders[2])[0, 1]) < 6 / np.sqrt(rows)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("seed", [None, 1], ids=["random", "control"])
def test_the_order_is_random_however_released_rows_are_used(session: Any, seed: int | None, tmp_path: Path) -> None:
    """Spark leaves out a sort that it takes for unneeded: below a join, another sort, a partitioned output."""
    from pyspark.sql import functions

    rows = 3000
    table = pd.DataFrame({"id": range(rows), "age": RNG.integers(18, 90, rows), "g": RNG.integers(0, 4, rows)})
    frame = session.createDataFrame(table).repartition(1).sortWithinPartitions("id")
    small = session.createDataFrame(pd.DataFrame({"g": range(4), "name": list("abcd")}))
    data = dipriv.privatize(frame, 1.0, keep=["id", "g"], seed=seed).data
    data.write.partitionBy("g").parquet(str(tmp_path / "out"))
    files = sorted((tmp_path / "out").rglob("*.parquet"))
    uses = {
        "join": data.join(functions.broadcast(small), "g", "left").toArrow()["id"],
        "orderBy": data.orderBy("g").toArrow()["id"],
        "sortWithinPartitions": data.sortWithinPartitions("g").toArrow()["id"],
        "where": data.where("age > -1").select("id").toArrow()["id"],
        "coalesce": data.coalesce(1).toArrow()["id"],
        "repartition": data.repartition(1).toArrow()["id"],
        "partitionBy": pa.chunked_array([pq.read_table(file)["id"].combine_chunks() for file in files]),
    }
    rising = {name: float((np.diff(ids.to_numpy()) > 0).mean()) for name, ids in uses.items()}
    if seed is not None:
        assert min(rising[name] for name in uses if name != "repartition") > 0.99  # the order of the private rows
    else:  # of random orders, the share has mean 1/2 and variance (n + 1) / (12 (n - 1)^2)
        assert all(abs(share - 0.5) < 6 / np.sqrt(12 * (rows - 5)) + 4 / rows for share in rising.values()), rising


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_times_of_day_that_are_stated_are_refused_on_spark(session: Any) -> None:
    """They stayed text, as Spark has no such type: cells of another type would be released as labels."""
    times = [f"{hour:02}:30" for hour in range(24)] * 20
    frame = session.createDataFrame(pd.DataFrame({"t": times}))
    with pytest.raises(SchemaError, match="for which Spark has no type"):
        dipriv.privatize(frame, 1.0, types={"t": "time"})


def test_places_are_parts_of_about_one_size() -> None:
    places = Places(10, 10_000)
    seeded, secure = (places(50, 100_000, bits) for bits in (source(1), Bits(bytes(32), secure=True)))
    assert np.array_equal(seeded[0], np.arange(50, 100_050) // 10_000)
    sizes = np.bincount(secure[0], minlength=10)
    assert len(sizes) == 10
    assert (abs(sizes - 10_000) < 6 * np.sqrt(9000)).all()  # binomial
    assert len(np.unique(secure[1])) == 100_000
    parts = [places(first, count, Bits(bytes(32), secure=True)) for first, count in ((0, 9), (0, 4), (4, 5))]
    for which in (0, 1):
        assert np.array_equal(parts[0][which], np.concatenate([parts[1][which], parts[2][which]]))
