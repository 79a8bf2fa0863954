"""Seeded releases, and what they came to: a case is a name and a function that releases a table.

    python -m tests.golden.cases

writes digests.json anew. Do that only when a release changes on purpose, and then the change log says so. Where
nothing is meant to change, a digest that differs is a bug. Digests are of exact bits, which also depend on how numpy,
BLAS and others compute: they hold for the kind of processor and the versions that digests.json names under "made with".
Elsewhere a test whose digest differs is skipped, and says so; to guard a change there, write them anew before it.
"""

from __future__ import annotations

import json
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from scipy import stats
from threadpoolctl import threadpool_info

from tests import spark_support
from tests.golden import tables
from tests.golden.calls import (
    Categorical,
    Continuous,
    Datetime,
    Discrete,
    Empirical,
    Grouped,
    Known,
    Laplace,
    Mixed,
    Mixture,
    Optimal,
    Parametric,
    Private,
    Released,
    Split,
    fidelity,
    fit_then_transform,
    fit_transform,
    inferred,
    locally,
    privatize,
    privatize_file,
    privatize_spark,
    privatize_stream,
    transform_batches,
)
from tests.golden.canonical import columns_of, digest

DIGESTS = Path(__file__).with_name("digests.json")
LIBRARIES = ("numpy", "scipy", "numba", "pyarrow", "pandas", "polars", "scikit-learn")
Case = Callable[[], Released]
SparkCase = Callable[[Any], Released]

PEOPLE, ARROW, POLARS = tables.people(), tables.arrow_people(), tables.polars_people()
EXTREMES, LEVELS, SKEWED = tables.extremes(), tables.levels(), tables.skewed()
VISITS, NUMBERS, PLAIN = tables.measurements(), tables.numbers(), tables.plain()
FEW = PEOPLE[["age", "pay", "smokes", "city"]]
LAW = Known({"age": stats.randint(18, 90), "score": stats.norm(63, 13)})
SCORED = PEOPLE[["key", "age", "score"]].fillna({"score": 60.0})
BY_POSITION, BY_PERSON = Split(0.3, bytes(range(32))), Split(0.4, bytes(range(32, 64)), "person")
SCHEMA = {
    "age": Discrete(step=1),
    "pay": Mixed(atoms=(0.0,), lower=0.0, upper=500_000.0),
    "score": Continuous(lower=0.0, upper=150.0),
    "city": Categorical(levels=tables.CITIES),
    "born": Datetime(resolution="day"),
}
ASKED = PEOPLE[[*SCHEMA, "smokes"]]
STEPS = np.abs(np.subtract.outer(np.arange(5), np.arange(5))) * 1.0
RECORDS: list[dict[str, Any]] = [
    {"age": 20 + 7 * i, "pay": i * 810.25, "smokes": i % 3 == 0, "city": tables.CITIES[i % 5] if i % 4 else None}
    for i in range(10)
]


def cases() -> dict[str, Case]:
    """All that need no Spark."""
    return _private() | _of_kinds() | _kernels() | _others() | _estimator() | _local() | _files() | _streams()


def _private() -> dict[str, Case]:
    """The private reference: libraries, options, splits, people with several rows."""
    return {
        "private, pandas": partial(privatize, PEOPLE, 2.0, keep=["key"], seed=1),
        "private, pyarrow": partial(privatize, ARROW, 2.0, keep=["key"], seed=2),
        "private, polars": partial(privatize, POLARS, 2.0, seed=3),
        "private, numpy": partial(privatize, NUMBERS, 1.0, seed=4),
        "private, numpy of whole numbers": partial(privatize, (NUMBERS * 9).astype(np.int32), 1.0, seed=5),
        "private, target": partial(privatize, FEW, 1.0, reference=Private(target="pay"), seed=6),
        "private, share": partial(privatize, FEW, 1.0, reference=Private(reference_share=0.5), seed=7),
        "private, strict with a schema": partial(
            privatize, ASKED, 1.0, reference=Private(labels="declared"), schema=SCHEMA, seed=8
        ),
        "private, some declared": partial(privatize, FEW, 1.0, schema={"pay": SCHEMA["pay"]}, seed=9),
        "private, hold-out": partial(privatize, PEOPLE, 1.0, holdout=0.3, keep=["key"], seed=10),
        "private, split": partial(privatize, FEW, 1.0, split=BY_POSITION, seed=11),
        "private, unit": partial(privatize, VISITS, 4.0, unit="person", rows_per_unit=4, drop=["person"], seed=12),
        "private, unit with new keys": partial(privatize, VISITS, 4.0, unit="person", rows_per_unit=4, seed=12),
        "private, unit and constant columns": partial(
            privatize, VISITS.assign(sex=VISITS["person"] % 2 == 0), 4.0, unit="person", constant=["sex"], seed=17
        ),
        "private, unit and hold-out": partial(
            privatize, VISITS, 4.0, unit="person", rows_per_unit=8, holdout=0.5, keep=["person"], seed=13
        ),
        "private, columns and keep": partial(
            privatize, PEOPLE, 1.0, columns=["grade", "age"], keep=["city", "key"], seed=14
        ),
        "private, small epsilon": partial(privatize, FEW, 0.05, seed=15),
        "private, large epsilon": partial(privatize, PEOPLE, 60.0, keep=["key"], seed=16),
    }


def _of_kinds() -> dict[str, Case]:
    """One column of each kind by itself; extreme numbers; near-empty levels."""
    alone = {name: PEOPLE[[name]] for name in PEOPLE.columns if name not in ("key", "short", "visits")}
    return {
        **{f"private, {name}": partial(privatize, column, 1.0, seed=20) for name, column in alone.items()},
        "private, decimals": partial(privatize, ARROW.select(["money"]), 1.0, seed=21),
        "private, times": partial(privatize, ARROW.select(["clock", "lasted", "at"]), 1.0, seed=22),
        "private, zeros and a top code": partial(privatize, SKEWED, 1.0, seed=23),
        "private, infinities": partial(privatize, EXTREMES, 3.0, seed=24),
        "private, near-empty levels": partial(privatize, LEVELS, 1.0, seed=25),
    }


def _kernels() -> dict[str, Case]:
    """Each kernel, for one column and for many."""
    grades = LEVELS.select(["five"])
    five = {"five": Discrete(levels=(1, 2, 3, 5, 8))}
    return {
        "laplace, many columns": partial(privatize, PEOPLE, 2.0, kernel="laplace", keep=["key"], seed=30),
        "laplace, one column": partial(privatize, PEOPLE[["pay"]], 2.0, kernel="laplace", seed=31),
        "laplace, shares": partial(privatize, FEW, 2.0, kernel=Laplace({"pay": 3.0, "age": 0.5}), seed=32),
        "optimal, weights": partial(privatize, FEW, 2.0, kernel=Optimal({"pay": 3.0}), seed=33),
        "optimal, much weight": partial(privatize, FEW, 4.0, kernel=Optimal({"age": 50.0}), seed=34),
        "optimal, one column with costs": partial(
            privatize, grades, 1.0, kernel=Optimal(costs={"five": STEPS}), schema=five, seed=35
        ),
        "laplace, law": partial(privatize, SCORED, 1.0, reference=LAW, kernel="laplace", keep=["key"], seed=36),
    }


def _others() -> dict[str, Case]:
    """Hold-out, known laws, families, public tables, groups; and facts about releases."""
    real = SCORED[["score"]]
    normal = Known(stats.multivariate_normal([0, 0], [[1, 1], [1, 2]]))
    zeros = Known(Mixture({0.0: 0.4, 999.0: 0.1}, stats.lognorm(2, scale=20)))
    families = Parametric({"visits": "poisson", "price": "gamma"}, fixed={"price": {"loc": 0.0}})
    counted = PEOPLE[["visits", "price"]]
    return {
        "hold-out, pandas": partial(privatize, PEOPLE, 2.0, reference="holdout", keep=["key"], seed=40),
        "hold-out, pyarrow": partial(privatize, ARROW, 2.0, reference="holdout", holdout=0.4, seed=41),
        "hold-out, polars": partial(privatize, POLARS, 2.0, reference="holdout", kernel="laplace", seed=42),
        "hold-out, one column of levels": partial(
            privatize, LEVELS.select(["five"]), 1.0, reference="holdout", seed=43
        ),
        "hold-out, zeros and a top code": partial(privatize, SKEWED, 1.0, reference="holdout", seed=44),
        "hold-out, unit": partial(
            privatize, VISITS, 8.0, reference="holdout", unit="person", rows_per_unit=5, drop=["person"], seed=45
        ),
        "hold-out, split by a column": partial(privatize, VISITS, 1.0, reference="holdout", split=BY_PERSON, seed=46),
        "hold-out, paper's edge, random order": partial(
            privatize, ASKED, 1.0, reference=Empirical(edge="paper", order="random"), schema=SCHEMA, seed=47
        ),
        "hold-out, dummies": partial(
            privatize, FEW, 2.0, reference="holdout", schema={"city": Categorical(encoding="onehot")}, seed=48
        ),
        "known, independent": partial(privatize, SCORED, 1.0, reference=LAW, keep=["key"], seed=50),
        "known, normal": partial(privatize, NUMBERS[:, :2], 1.0, reference=normal, seed=51),
        "known, mixture": partial(privatize, SKEWED, 1.0, reference=zeros, seed=52),
        "family, known scale": partial(
            privatize, real, 1.0, reference=Parametric("norm", fixed={"scale": 13.0}), seed=53
        ),
        "family, of each column": partial(privatize, counted, 1.0, reference=families, seed=54),
        "family, multivariate normal": partial(
            privatize, NUMBERS, 1.0, reference=Parametric("multivariate_normal"), holdout=0.5, seed=55
        ),
        "public, empirical": partial(privatize, PEOPLE, 2.0, public=tables.people(500, 90), keep=["key"], seed=56),
        "public, empirical by name": partial(
            privatize, POLARS, 2.0, reference=Empirical(), public=tables.polars_people(300, 91), seed=57
        ),
        "public, family": partial(
            privatize, counted, 1.0, reference=families, public=tables.people(300, 95)[list(counted)], seed=58
        ),
        "groups, first": partial(
            privatize, VISITS, 1.0, reference=Grouped(by="person", first=4), keep=["person"], seed=59
        ),
        "groups, random": partial(privatize, VISITS, 1.0, reference=Grouped("person", 5, pick="random"), seed=60),
        "fidelity, private": partial(_fidelity, FEW, 1.0, seed=61),
        "fidelity, hold-out": partial(_fidelity, FEW, 1.0, reference="holdout", seed=62),
        "fidelity, known": partial(_fidelity, SCORED[["age", "score"]], 1.0, reference=LAW, seed=63),
        "inferred schema": _inferred,
    }


def _estimator() -> dict[str, Case]:
    known, new = PEOPLE[:400], PEOPLE[400:]
    some, batches = ARROW.slice(0, 300), ARROW.slice(300).to_batches(max_chunksize=131)
    return {
        "estimator, private": partial(fit_transform, PEOPLE, 2.0, keep=["key"], seed=70),
        "estimator, other rows": partial(fit_then_transform, known, new, 2.0, reference="holdout", seed=71),
        "estimator, public": partial(fit_transform, FEW, 2.0, public=tables.people(300, 92)[list(FEW)], seed=72),
        "estimator, batches": partial(transform_batches, some, batches, 2.0, keep=["key"], seed=73),
        "estimator, batches of other rows": partial(
            transform_batches, some, batches, 2.0, reference="holdout", kernel="laplace", seed=74
        ),
    }


def _local() -> dict[str, Case]:
    new, pay = tables.people(250, 93)[list(FEW)], PEOPLE[["pay"]]
    return {
        "local, records": partial(locally, FEW, RECORDS, 3.0, seed=80),
        "local, table": partial(locally, FEW, new, 3.0, seed=81),
        "local, public": partial(locally, FEW, RECORDS, 3.0, fit={"public": new}, seed=82),
        "local, one column": partial(locally, pay, new[["pay"]], 1.0, fit={"kernel": "laplace"}, seed=83),
        "local, known law": partial(
            locally, SCORED[["age", "score"]], SCORED[["age", "score"]][:50], 1.0, fit={"reference": LAW}, seed=84
        ),
    }


def _files() -> dict[str, Case]:
    """Through the command line: text files are compared line by line, others as tables."""

    def csv(*arguments: object, seed: int, output: str = "out.csv", source: str = "in.csv") -> Case:
        read = pq.read_table if output.endswith(".parquet") else _arrow_file if output.endswith(".arrow") else _lines
        return partial(privatize_file, _write_inputs, source, output, read, *arguments, seed=seed)

    one, two = ("--epsilon", 1), ("--epsilon", 2)
    counted = ("--ledger", "FOLDER/ledger.db", "--dataset", "people")
    with_keys = ("--unit", "person", "--rows-per-unit", 4)
    unit = (*with_keys, "--drop", "person")
    return {
        "file, CSV": csv(*two, "--keep", "person", seed=100),
        "file, CSV with a ledger": csv(*two, "--drop", "person", *counted, seed=101),
        "file, CSV with hold-out": csv(*two, "--reference", "holdout", "--drop", "person", seed=102),
        "file, CSV with a unit": csv("--epsilon", 4, *unit, "--escape-formulas", seed=103),
        "file, CSV with a unit and new keys": csv("--epsilon", 4, *with_keys, "--constant", "sex", seed=103),
        "file, CSV with a unit and hold-out": csv("--epsilon", 4, *unit, "--reference", "holdout", seed=104),
        "file, TSV of CSV": csv(
            *one,
            "--target",
            "income",
            "--labels",
            "declared",
            "--schema",
            "FOLDER/schema.toml",
            "--drop",
            "person",
            output="out.tsv",
            seed=105,
        ),
        "file, Parquet": csv(*two, "--keep", "key", source="in.parquet", output="out.parquet", seed=106),
        "file, Parquet, private from a hold-out": csv(
            *one, "--holdout", 0.3, "--kernel", "laplace", source="in.parquet", output="out.parquet", seed=107
        ),
        "file, Arrow of Parquet": csv(
            *one, "--public", "FOLDER/public.parquet", source="in.parquet", output="out.arrow", seed=108
        ),
    }


def _streams() -> dict[str, Case]:
    def batches() -> Iterator[pa.RecordBatch]:
        return iter(ARROW.to_batches(max_chunksize=333))

    return {
        "stream, function": partial(privatize_stream, batches, 2.0, keep=["key"], seed=110),
        "stream, function with hold-out": partial(privatize_stream, batches, 2.0, reference="holdout", seed=111),
        "stream, private from a hold-out": partial(privatize_stream, batches, 2.0, holdout=0.4, seed=112),
        "stream, lazy polars": partial(privatize_stream, POLARS.lazy(), 1.0, kernel="laplace", seed=113),
        "stream, Parquet folder": _parquet_folder,
    }


def spark_cases() -> dict[str, SparkCase]:
    """Those that are given a Spark session."""
    table = ARROW.drop_columns(["byte", "clock", "lasted", "group"])  # types that Spark does not have
    asked: dict[str, dict[str, Any]] = {
        "Spark, private": {"keep": ["key"], "seed": 120},
        "Spark, hold-out": {"reference": "holdout", "keep": ["key"], "seed": 121},
        "Spark, private from a hold-out": {"holdout": 0.3, "columns": ["count", "label"], "seed": 122},
        "Spark, public": {"public": table.slice(0, 300), "kernel": "laplace", "seed": 123},
    }
    sizes = [0, 300, 1, 699]
    return {
        name: partial(_on_spark, table=table, sizes=sizes, epsilon=2.0, options=each) for name, each in asked.items()
    }


def record_of(released: Released) -> dict[str, Any]:
    """What is kept of a release."""
    parts = columns_of(released.data)
    return {
        "sha256": digest(released.data),
        "epsilon": released.epsilon,
        "released": released.rows,
        "rows": len(parts[0][2]),
        "columns": {name: kind for name, kind, _ in parts},
    }


def made_with() -> dict[str, str]:
    """What the bits of a release may depend on besides dipriv."""
    blas = {str(each["architecture"]) for each in threadpool_info() if "architecture" in each}
    return {
        "processor": " ".join([platform.machine(), *np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])]),
        "BLAS": " ".join(sorted(blas)),
        "libc": " ".join(platform.libc_ver()),
        **{name: version(name) for name in LIBRARIES},
    }


def _on_spark(session: Any, *, table: pa.Table, sizes: list[int], epsilon: float, options: dict[str, Any]) -> Released:
    return privatize_spark(session, table, sizes, epsilon, **options)


def _fidelity(frame: Any, epsilon: float, *, seed: int, **options: Any) -> Released:
    kept = fidelity(frame, epsilon, seed=seed, **options)
    return Released(pa.table({"column": list(kept), "kept": list(kept.values())}), epsilon, len(kept))


def _inferred() -> Released:
    told = {name: json.dumps(kind) for name, kind in inferred(PEOPLE.drop(columns="city")).items()}
    return Released(pa.table({"column": list(told), "kind": list(told.values())}), 0.0, len(told))


def _parquet_folder() -> Released:
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate((ARROW.slice(0, 400), ARROW.slice(400))):
            pq.write_table(part.drop_columns(["lasted"]), Path(folder) / f"part-{number}.parquet", row_group_size=150)
        return privatize_stream(folder, 2.0, keep=["key"], seed=114)


def _write_inputs(folder: Path) -> None:
    pacsv.write_csv(PLAIN, folder / "in.csv")
    pq.write_table(ARROW, folder / "in.parquet")
    pq.write_table(tables.arrow_people(400, 94), folder / "public.parquet")
    kinds = ('[sex]\nkind = "categorical"\nlevels = ["f", "m"]\n', '[bmi]\nkind = "continuous"\nlower = 0.0\n',
             '[area]\nkind = "categorical"\nlevels = ["=north", "south", "east", "west"]\n')  # fmt: skip
    (folder / "schema.toml").write_text("".join(kinds), encoding="utf-8")


def _lines(path: Path) -> pa.Table:
    return pa.table({"line": path.read_text(encoding="utf-8").splitlines()})


def _arrow_file(path: Path) -> pa.Table:
    return pa.ipc.open_file(path).read_all()


def _with_spark() -> dict[str, Any]:
    """The records of the cases on Spark; those that are written already, where there is no Spark."""
    names = spark_cases()
    if find_spec("pyspark") is None:
        before = json.loads(DIGESTS.read_text(encoding="utf-8"))["cases"]
        return {name: before[name] for name in names}
    with tempfile.TemporaryDirectory() as log:
        sessions = spark_support.session(Path(log))
        session = next(sessions)
        found = {name: record_of(case(session)) for name, case in names.items()}
        next(sessions, None)
    return found


def main() -> None:
    """Write digests.json anew."""
    found = {name: record_of(case()) for name, case in cases().items()} | _with_spark()
    text = json.dumps({"made with": made_with(), "cases": found}, indent=1, ensure_ascii=False)
    DIGESTS.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(found)} digests written.\n")


if __name__ == "__main__":
    main()
