"""What a fresh reading found: identifiers told Spark's order, audits left rows on disks, short forms of a promise."""

from __future__ import annotations

import tempfile
import time
import warnings
import weakref
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import dipriv
from dipriv._random.bits import Bits, source
from dipriv.auditing import recognition
from dipriv.errors import InputError
from dipriv.guarantee.wording import protects
from dipriv.schema import Identifier, Postal
from dipriv.sources._formats import lent
from dipriv.sources.spark import even_parts
from dipriv.sources.spark.even_parts import Places
from tests import spark_support

RNG = np.random.default_rng(39)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="pyspark is not installed; pip install dipriv[spark]")
    yield from spark_support.session(tmp_path_factory.mktemp("events"))


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("seed", [None, 1], ids=["random", "control"])
def test_new_identifiers_do_not_tell_the_order_of_spark(
    session: Any, seed: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows were numbered in the order that Spark, by private cells, dealt them out in, and then shuffled."""
    monkeypatch.setattr(even_parts, "PART_ROWS", 500)
    rows = 3000
    table = pd.DataFrame(
        {
            "row.id": RNG.permutation(rows),
            "Key": [f"p{number}" for number in RNG.permutation(rows)],
            "secret": np.sort(RNG.normal(size=rows)),
            "place": range(rows),
        }
    )
    frame = session.createDataFrame(table).coalesce(1).sortWithinPartitions("secret")
    schema = {"row.id": Identifier(anew=True), "Key": Identifier(anew=True)}
    released = dipriv.privatize(frame, 1.0, keep=["place"], schema=schema, seed=seed).data
    found = released.toArrow()
    identifiers, places = found["row.id"].to_numpy(), found["place"].to_numpy()
    assert identifiers.tolist() == list(range(1, rows + 1))  # in the order of the released rows
    assert found["Key"].to_pylist() == [str(number) for number in identifiers]
    assert found.schema.field("row.id").type == pa.int64()
    for used in (released.orderBy("place"), released.sortWithinPartitions("secret")):  # the same ones, however used
        again = used.select("`row.id`", "place").toPandas().set_index("place")["row.id"]
        assert again.loc[places].tolist() == identifiers.tolist()
    order = np.corrcoef(identifiers, places)[0, 1]
    if seed is None:  # correlations of random orders are normal with variance 1 / (rows - 1)
        assert abs(order) < 6 / np.sqrt(rows)
    else:
        assert order > 0.999  # the order of the private rows


def test_parts_have_the_numbers_of_their_first_rows() -> None:
    for bits in (source(1), Bits(bytes(32), secure=True)):
        places, rows = Places(7, 100_000), 650_001
        part, _ = places(0, rows, bits)
        assert places.firsts(rows, bits) == [int(np.count_nonzero(part < which)) for which in range(7)]


def test_an_audit_writes_no_rows_to_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It offered the private table to a ledger as a CSV and a Parquet file, in the folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mark = b"zq7-marker-xv"
    table = pa.table({"job": [f"{mark.decode()} {row % 9}" for row in range(300)], "age": range(300)})
    seen: list[Path] = []

    def looking(*given: Any, **options: Any) -> Any:
        seen.extend(path for path in tmp_path.rglob("*") if path.is_file())
        assert not [path for path in tmp_path.rglob("*") if path.is_file() and mark in path.read_bytes()]
        return dipriv.privatize(*given, **options)

    monkeypatch.setattr(recognition, "privatize", looking)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = recognition.audit_recognition(table)
    assert all(check.passed for check in found)
    assert {path.name.partition(".")[0] for path in seen} == {"ledger", "copy"}  # control
    assert {check.what for check in found} >= {f"a ledger recognizes a {kind} file" for kind in ("CSV", "Parquet")}


def people(rows: int = 600) -> pa.Table:
    return pa.table({"job": RNG.choice(["a", "b", "c"], rows), "age": RNG.integers(18, 90, rows), "id": range(rows)})


def test_short_forms_say_that_labels_are_called_public(tmp_path: Path) -> None:
    """They said "protects every row", and bounded the power of a test that the labels decide with certainty."""
    with dipriv.Ledger.create(tmp_path / "ledger.db") as ledger:
        options: dict[str, Any] = {"drop": ["id"], "ledger": ledger, "dataset": "people"}
        private = dipriv.privatize(people(), 1.0, **options)
        assert "called public" not in str(private)  # control
        assert ledger.dataset("people").power() is not None
        release = dipriv.privatize(people(), 1.0, labels="public", **options | {"dataset": None, "new_dataset": "more"})
        assert "which labels occur in 'job' is called public" in str(release).splitlines()[1]
        assert ledger.dataset("more").power() is None
        assert "'job'" in str(ledger.dataset("more").unbounded)
    release.write(tmp_path / "out.csv")
    assert "ε = 1, but not for which labels occur in 'job'" in dipriv.load_sheet(tmp_path / "out.csv").citation
    assert "but not for which labels occur" in release._repr_html_()
    assert "called public" in protects(release.guarantee)  # what an audit prints


def test_short_forms_say_that_a_seed_protects_nobody(tmp_path: Path) -> None:
    release = dipriv.privatize(people(), 1.0, drop=["id"], seed=1)
    assert str(release).startswith("NOT PRIVATE")
    release.write(tmp_path / "out.csv")
    assert "NOT PRIVATE" in dipriv.load_sheet(tmp_path / "out.csv").citation
    assert "NOT PRIVATE" not in str(dipriv.privatize(people(), 1.0, drop=["id"]))  # control


def test_the_ledger_says_that_its_bound_is_not_about_columns_released_unchanged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dipriv.cli import app

    place = tmp_path / "ledger.db"
    with dipriv.Ledger.create(place) as ledger:
        dipriv.privatize(people(), 1.0, drop=["age"], keep=["id"], ledger=ledger, dataset="people")
    with dipriv.Ledger.open(place) as ledger:
        assert ledger.dataset("people").unchanged == ("id",)
    app(["ledger", "show", "people", "--ledger", str(place)], standalone_mode=False)
    assert "not about those released unchanged: 'id'" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("of", [object, "str"])
def test_no_cell_changes_the_type_of_cut_categories(of: Any) -> None:
    """pandas guessed it from the cells: objects where all are missing."""
    categories = pd.CategoricalDtype(pd.Index(["12345", "54321"], dtype=of))
    found = []
    for cell in (None, "12345"):
        table = pd.DataFrame({"zip2": pd.Series([None] * 299 + [cell], dtype=categories), "x": np.arange(300) % 5})
        released: Any = dipriv.privatize(table, 0.1, schema={"zip2": Postal(digits=3)}, seed=3).data
        found.append(released["zip2"].dtype.categories.dtype)
    assert found == [categories.categories.dtype] * 2


@pytest.mark.parametrize("odd", ["a", 5, b"x", None, 2.5])
def test_no_cell_of_an_identifier_refuses_a_table(odd: object) -> None:
    """A column of objects had to have one type, though none of its cells plays a part."""
    for others in (["k"] * 99, [7] * 99, [None] * 99):
        table = pd.DataFrame({"id": pd.Series([*others, odd], dtype=object), "x": np.arange(100) % 7})
        released = dipriv.privatize(table, 1.0, schema={"id": Identifier(anew=True)}).data
        assert released["id"].tolist() == [str(number) for number in range(1, 101)]


def test_kept_categories_of_polars_have_no_labels_of_other_rows() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed; pip install polars")
    if not hasattr(polars, "Categories"):
        pytest.skip("this polars has no categories of their own")
    rows = 200
    for of in (polars.Categorical, polars.Categorical(polars.Categories.random())):
        keys = polars.Series("k", [f"key{row}" for row in range(rows)], dtype=of)
        table = polars.DataFrame({"k": keys, "list": keys.to_frame().select(polars.concat_list("k"))["k"]})
        table = table.with_columns(x=polars.Series(np.arange(rows) % 7))
        released = dipriv.privatize(table, 5.0, keep=["k", "list"], reference="holdout").data
        assert released.height < rows  # control
        labels = {*released["k"].cast(polars.String)}
        assert {*released["k"].dtype.categories.to_series()} == labels
        assert {*released["list"].dtype.inner.categories.to_series()} == labels
        assert released["list"].explode().cast(polars.String).to_list() == released["k"].cast(polars.String).to_list()


@pytest.mark.parametrize("fails", [False, True])
def test_arrow_has_let_go_of_a_text_file_when_its_reader_is_left(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of Arrow that still read ended the process by SIGABRT."""
    lent_now = list[weakref.ref[Any]]()

    class Watched(lent._Lent):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            lent_now.append(weakref.ref(self))

    monkeypatch.setattr(lent, "_Lent", Watched)

    class Slow:
        """A stream of three blocks, which may fail at the second."""

        blocks = 0

        def read(self, size: int) -> bytes:
            time.sleep(0.05)
            self.blocks += 1
            if fails and self.blocks == 2:
                raise InputError("line 2: this is the fault.", "Repair it.")
            return b"a,b\n" * (self.blocks == 1) + b"1,2\n" * 50 if self.blocks <= 3 else b""

    reading = lent.read_ahead(Slow(), partial(pacsv.open_csv, read_options=pacsv.ReadOptions(block_size=200)))
    assert isinstance(next(reading), pa.Schema)
    assert lent_now[0]() is not None  # control: Arrow's thread reads on
    if fails:
        with pytest.raises(InputError, match="this is the fault"):
            list(reading)
    else:
        next(reading)
        reading.close()
    assert lent_now[0]() is None
