"""What is mutated: small files of every sort that dipriv reads, made once and kept in a folder for all children."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import stats

import dipriv
from dipriv._base.table_fingerprint import ColumnFingerprint, TableFingerprint
from dipriv._sinks import FileSink
from dipriv._tables.presentation import Presentation
from dipriv.guarantee import ReferenceFacts, ReferenceSource
from dipriv.guarantee.sidecar import Sidecar
from dipriv.ledger import Ledger, ReleaseRequest
from dipriv.references import Empirical, Known, Mixture
from dipriv.schema import Categorical

ROWS = 40
CSV = (
    "age,pay,city,born\n44,1.5,Bonn,1990-01-01\n,2e3,Köln,2001-05-09\n17,-0.0,,1970-01-01\n",
    'a,"b, c",d\n1,"two\nlines",true\n2,"say ""x""",false\n',
    "x\ty\n1\t2\n3\t4\n",
    "t,u\n2020-01-01 00:00:00,12:30:00\n1677-09-21 00:12:43.145224193,23:59:59.999\n",
    "\ufeffname\r\nAnn\r\nBo\r\n",
    "age;pay;day\n44;1.234,50 €;31.12.2024\n17;-0,5 €;1.2.2023\n;12,5 %;2024/1/2\n",
    "'a'|'b'\n'$1,234'|'12:30'\n'x'|'1 234'\n",
    "# note\na,b\n1,2\n",
)


def frame() -> pd.DataFrame:
    """People with a column of each sort."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 22, ROWS),
            "pay": np.where(rng.random(ROWS) < 0.3, np.nan, rng.lognormal(size=ROWS).round(2)),
            "city": pd.Series(rng.choice(["Bonn", "Köln", ""], ROWS)).replace("", None),
            "sex": pd.Categorical(rng.choice(["f", "m"], ROWS), categories=["m", "f"]),
            "born": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 900, ROWS), unit="D"),
            "ok": rng.random(ROWS) < 0.5,
        }
    )


def table() -> pa.Table:
    """Every type that dipriv takes, and some that it does not."""
    labels = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1], pa.int8()), pa.array(["a", "b"]))
    return pa.table(
        {
            "i": pa.array([1, None, 3, 2**40]),
            "u": pa.array([1, 2, 3, 255], pa.uint8()),
            "f": pa.array([0.5, None, float("nan"), 1e300]),
            "h": pa.array(np.array([1, 2, 3, 4], dtype=np.float16)),
            "s": ["a", "b", None, "=1+1"],
            "v": pa.array(["a", "a long text that is not inline", None, ""], pa.string_view()),
            "d": labels,
            "b": [True, None, False, True],
            "m": pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal("0.00")], pa.decimal128(9, 2)),
            "t": pa.array([0, 10**9, None, -1], pa.timestamp("us", "UTC")),
            "o": pa.array([dt.time(1), None, dt.time(2), dt.time(3)]),
            "e": pa.array([0, 1, 2, None], pa.date32()),
            "n": pa.nulls(4),
            "l": pa.array([[1], [], None, [2, 3]]),
            "r": pa.RunEndEncodedArray.from_arrays(pa.array([3, 4], pa.int32()), pa.array([1, 2])),
        }
    )


def arrow_files() -> list[bytes]:
    """Files and streams, compressed or not, of all columns and of few."""
    found = []
    for names in (None, ["i", "s"], ["d", "v"], ["f", "t", "m"], ["n"], ["l", "r"]):
        some = table() if names is None else table().select(names)
        for codec in (None, "lz4", "zstd"):
            options = pa.ipc.IpcWriteOptions(compression=codec)
            for writer in (pa.ipc.new_file, pa.ipc.new_stream):
                buffer = io.BytesIO()
                with writer(buffer, some.schema, options=options) as out:
                    out.write_table(some, 2)
                found.append(buffer.getvalue())
    return found


def parquet_files() -> list[bytes]:
    """Each codec, encoding and version that Arrow writes, of all columns and of few."""
    found = []
    for names in (["i", "s"], ["d", "f"], ["t", "m", "e"], ["u", "b", "o", "l"], ["s", "v"]):
        some = table().select(names)
        some = some.set_column(1, "v", some["v"].cast(pa.string())) if "v" in names else some
        for options in (
            {"compression": "none"},
            {"compression": "zstd", "use_dictionary": False},
            {"compression": "snappy", "data_page_version": "2.0"},
            {"compression": "gzip", "store_schema": False},
        ):
            buffer = io.BytesIO()
            pq.write_table(some, buffer, row_group_size=2, **options)
            found.append(buffer.getvalue())
    return found


def plain_table() -> pa.Table:
    """The types that files of statistics packages and workbooks have."""
    days = pa.array([dt.date(1990, 1, 1), None, dt.date(2024, 2, 29)] * 4)
    moments = pa.array([0, None, 86_399] * 4, pa.timestamp("s"))
    numbers = {"i": [1, 2, None] * 4, "f": [0.5, None, -1e30] * 4}
    return pa.table({**numbers, "s": ["a", "Köln", "=1+1"] * 4, "d": days, "t": moments, "g": ["no", "yes", None] * 4})


def whole_files(folder: Path, ending: str) -> list[bytes]:
    """Files of all columns and of few, with and without labels of values."""
    labelled = Presentation(value_labels={"g": {1: "no", 2: "yes"}}, column_labels={"s": "A city"})
    found = []
    for names in (["i", "f", "s", "d", "t", "g"], ["i", "s"], ["g"]):
        with FileSink.at(folder / f"one.{ending}", force=True) as sink:
            table = plain_table().select(names)
            sink.check(table.schema, table.num_rows, labelled)
            for batch in table.to_batches():
                sink.write(batch)
            sink.commit()
        found.append((folder / f"one.{ending}").read_bytes())
    return found


def references(folder: Path) -> list[bytes]:
    """Exported references: each sort of law, kernel and codec."""
    people = frame()
    one_hot = {"city": Categorical(encoding="onehot")}
    fits: list[tuple[list[str], dict[str, Any]]] = [
        (["pay"], {"reference": Known(stats.gamma(2.0, scale=3.0)), "kernel": "laplace"}),
        (["pay"], {"reference": Known(Mixture({0.0: 0.5}, stats.norm())), "kernel": "laplace"}),
        (["age"], {"reference": Known(stats.poisson(2)), "kernel": "laplace"}),
        (["age"], {"reference": Known(stats.rv_discrete(values=([1, 2, 8], [0.2, 0.3, 0.5])))}),
        (
            ["age", "pay"],
            {"reference": Known(stats.multivariate_normal([0, 0], [[2, 1], [1, 2]])), "kernel": "laplace"},
        ),
        (["age", "pay", "born"], {"reference": Empirical(order="random"), "public": people, "kernel": "laplace"}),
        (["city", "ok"], {"public": people, "schema": one_hot, "kernel": "laplace"}),
        (["city"], {"public": people}),
        (["age", "pay"], {}),
        (["city"], {}),
        (["sex", "ok"], {}),
        (["born"], {"kernel": "laplace"}),
        (people.columns.tolist(), {"kernel": "laplace"}),
    ]
    found = []
    for names, options in fits:
        dipriv.DIP(1.0, seed=1, **options).fit(people[names]).export_local(folder / "one")
        found.append((folder / "one").read_bytes())
    return found


VISITS = TableFingerprint(
    7,
    b"f" * 16,
    b"o" * 16,
    columns=(ColumnFingerprint(b"c" * 16, 20, bytes(range(160))), ColumnFingerprint(b"d" * 16, 2)),
    row_sketch=bytes(range(160)),
    samples=(bytes(range(160)),),
)


def ledger(folder: Path) -> bytes:
    """Two data sets, one of them with a hold-out, and releases in each state."""
    promise = dipriv.Guarantee(0.5, "laplace", ReferenceFacts(ReferenceSource.KNOWN, "known law"))
    with Ledger.create(folder / "ledger.db") as book:
        book.set_budget("people", 3.0)
        book.commit(book.reserve("people", 0.5, promise, "people.csv"), 10)
        book.fail(book.reserve("people", 0.5, promise))
        split = dipriv.Split.new(0.25, "id")
        entry = ReleaseRequest("visits", VISITS, False, split.holdout, split.by, split.key)
        book.reserve(entry, 0.5, promise, "visits.csv")
    return (folder / "ledger.db").read_bytes()


def note() -> dict[str, Any]:
    """The note beside a release."""
    release = dipriv.privatize(frame()[["age", "city"]], 1.0, seed=1)
    return Sidecar(
        guarantee=release.guarantee,
        rows_read=ROWS,
        rows_dropped=0,
        rows_released=ROWS,
        columns={"age": "discrete", "city": "categorical (declared)"},
        fidelity=release.fidelity,
        dataset="people",
    ).to_dict()


def write(folder: Path) -> None:
    """All of it."""
    for name, files in (
        ("arrow", arrow_files()),
        ("parquet", parquet_files()),
        ("excel", whole_files(folder, "xlsx")),
        ("stata", whole_files(folder, "dta")),
        ("spss", whole_files(folder, "sav")),
        ("xport", whole_files(folder, "xpt")),
        ("jsonl", whole_files(folder, "jsonl")),
        ("orc", whole_files(folder, "orc")),
        ("references", references(folder)),
        ("ledger", [ledger(folder)]),
    ):
        (folder / name).mkdir()
        for number, content in enumerate(files):
            (folder / name / f"{number:03}").write_bytes(content)
    (folder / "note.json").write_text(json.dumps(note()), encoding="utf-8")


def read(folder: Path, name: str) -> list[bytes]:
    """The seeds of one sort."""
    return [file.read_bytes() for file in sorted((folder / name).iterdir())]
