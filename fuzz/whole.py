"""The whole way of a release: random small tables, schemas and options, through files and in memory."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dipriv
from dipriv import schema as kinds
from dipriv._sinks import FileSink
from dipriv.ledger import Ledger
from dipriv.sources.files import File

_SPECIAL = (0.0, -0.0, 1e-300, 5e-324, 1e300, -1e300, 1.7e308, np.nan, np.inf, -np.inf, 2.0**53, 1e15, 0.1)


class Whole:
    """A table is written to a file and published, or privatized in memory; refusals are allowed, faults are not."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=folder))

    def case(self, rng: Random) -> dict[str, Any]:
        rows = rng.choice((1, 2, 3, 5, 20, 60))
        names = rng.sample(("a", "b", "c", "=d", "e f"), rng.choice((1, 1, 2, 3)))
        table = pa.table({name: _column(rng, rows) for name in names})
        declared = {name: _kind(rng) for name in names if rng.random() < 0.25}
        return {
            "table": table,
            "epsilon": rng.choice((1e-9, 0.01, 0.5, 1.0, 4.0, 50.0, 1e6, 1e12)),
            "reference": rng.choice(("private", "private", "holdout")),
            "kernel": rng.choice(("optimal", "laplace", "laplace")),
            "schema": declared,
            "keep": tuple(name for name in names if rng.random() < 0.1),
            "holdout": rng.choice((None, None, 0.25, 0.9)),
            "public": rng.random() < 0.2,
            "unit": rng.choice((None, None, None, names[0])),
            "ending": rng.choice(("csv", "tsv", "parquet", "arrow", "csv.gz")),
            "in_memory": rng.random() < 0.5,
            "ledger": rng.random() < 0.2,
            "seed": rng.randrange(1000),
        }

    def run(self, case: dict[str, Any]) -> None:
        table = case["table"]
        declared = dipriv.Schema({name: make() for name, make in case["schema"].items()})
        options = {name: case[name] for name in ("reference", "kernel", "keep", "holdout", "unit")}
        options |= {"schema": declared, "public": table if case["public"] else None, "seed": case["seed"]}
        if case["in_memory"]:
            released = dipriv.privatize(table, case["epsilon"], **options)
            str(released.guarantee), released.data.validate(full=True)
            return
        for file in self.folder.iterdir():
            file.unlink()
        pq.write_table(table, self.folder / "in.parquet")
        source = self.folder / "in.parquet"
        if case["ending"].startswith(("csv", "tsv")):  # and read as the text that it is
            with FileSink.at(self.folder / f"in.{case['ending']}") as sink:
                sink.write(table.to_batches()[0])
                sink.commit()
            source = self.folder / f"in.{case['ending']}"
        ledger = Ledger.create(self.folder / "ledger.db") if case["ledger"] else None
        output = self.folder / f"out.{case['ending']}"
        escape = case["seed"] % 2 == 0 and case["ending"].startswith(("csv", "tsv"))
        done = dipriv.privatize_file(source, output, case["epsilon"], escape_formulas=escape, ledger=ledger, **options)
        found = File.at(self.folder / f"out.{case['ending']}").read()
        if found.num_rows != done.n_rows:
            raise AssertionError("not all rows were written")


def _column(rng: Random, rows: int) -> pa.Array:
    """Cells of one sort, some of them special, some null."""
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    sort = rng.randrange(9)
    if sort == 0:
        array = pa.array(numbers.integers(-5, 5, rows), rng.choice((pa.int8(), pa.int32(), pa.int64())))
    elif sort == 1:
        dtype = rng.choice((np.int64, np.uint64, np.int16))
        info = np.iinfo(dtype)
        array = pa.array(numbers.integers(info.min, info.max, rows, dtype=dtype, endpoint=True))
    elif sort == 2:
        array = pa.array(numbers.normal(size=rows) * 10.0 ** rng.choice((-300, -5, 0, 5, 300)))
    elif sort == 3:
        array = pa.array(numbers.choice(_SPECIAL, rows), from_pandas=False)
    elif sort == 4:
        array = pa.array(numbers.choice(["a", "b", "=1+1", "", "-", "two\nlines", '"', "é"], rows))
    elif sort == 5:
        labels = rng.choice((["x", "y"], ["", "=z", "x"], ["only"]))
        codes = pa.array(numbers.integers(0, len(labels), rows), pa.int8())
        array = pa.DictionaryArray.from_arrays(codes, pa.array(labels))
    elif sort == 6:
        array = pa.array(numbers.random(rows) < rng.choice((0, 0.5, 1)))
    elif sort == 7:
        unit = rng.choice(("s", "ms", "us", "ns"))
        ticks = pa.array(numbers.integers(0, 10**9, rows))
        array = ticks.cast(pa.timestamp(unit, rng.choice((None, "UTC", "Europe/Berlin"))))
    else:
        array = pa.array(numbers.integers(-1000, 20000, rows).astype(np.int32)).cast(pa.date32())
    if rng.random() < 0.4:
        holes = pa.array(numbers.random(rows) < rng.choice((0.2, 0.9, 1.0)))
        array = pa.compute.if_else(holes, pa.scalar(None, array.type), array) if sort != 5 else array
    return array


def _kind(rng: Random) -> Any:
    """How to make a declared kind, mostly one that does not suit the column; making it may be refused, too."""
    low, high = sorted((rng.choice((-1e300, -5, 0, 0.5, 1e-300)), rng.choice((0.1, 1, 10, 1e300))))
    words = ("a", "b", "=1+1", "", "-", "two\nlines", '"', "é")
    return rng.choice(
        (
            kinds.Continuous,
            kinds.Mixed,
            kinds.Categorical,
            partial(kinds.Continuous, low, high),
            partial(kinds.Discrete, step=rng.choice((1, 0.25, 1e-9, 2**52))),
            partial(kinds.Discrete, levels=(-5, 0, 1.5, 2**40)),
            partial(kinds.Discrete, levels=tuple(range(-5, 5))),
            partial(kinds.Mixed, atoms=(0.0, low, high)),
            partial(kinds.Categorical, levels=words),
            partial(kinds.Categorical, encoding="onehot"),
            partial(kinds.Datetime, rng.choice(kinds.RESOLUTIONS)),
        )
    )
