"""Every call that the golden tests make to dipriv: when the package is rearranged, this is the only file to adapt.

The tests have words of their own for options, those of version 0.1.0.dev0 but for `seed`; `_NAMES` says what an option
is called now.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from typer.testing import CliRunner

import dipriv
from dipriv import kernels, references
from dipriv._tables import frames
from dipriv.cli import app
from dipriv.guarantee.sidecar import Sidecar, read_sidecar
from dipriv.ledger import Ledger, Record
from tests import spark_support

_NAMES: dict[str, str] = {}

Schema = dipriv.Schema
Continuous = dipriv.Continuous
Discrete = dipriv.Discrete
Mixed = dipriv.Mixed
Categorical = dipriv.Categorical
Datetime = dipriv.Datetime
Kind = Continuous | Discrete | Mixed | Categorical | Datetime
Split = dipriv.Split
BudgetError = dipriv.BudgetError
Private = references.Private
Known = references.Known
Mixture = references.Mixture
Empirical = references.Empirical
Parametric = references.Parametric
Grouped = references.Grouped
Optimal = kernels.Optimal
Laplace = kernels.Laplace


@dataclass(frozen=True)
class Released:
    """A released table of any library, the ε that its guarantee states, and how many rows it says are released."""

    data: Any
    epsilon: float
    rows: int


def privatize(frame: Any, epsilon: float, *, seed: int | None, **options: Any) -> Released:
    """A table in memory."""
    release = dipriv.privatize(frame, epsilon, **_named(seed=seed, **options))
    return Released(release.data, release.guarantee.epsilon, release.n_rows)


def released_rows(frame: Any, epsilon: float, *, seed: int, **options: Any) -> list[bool]:
    """Which rows of a table in memory are released."""
    return [bool(free) for free in dipriv.privatize(frame, epsilon, **_named(seed=seed, **options)).secrets.released]


def fidelity(frame: Any, epsilon: float, *, seed: int, **options: Any) -> dict[str, float]:
    """How much of each column is kept, as the release says."""
    return dipriv.privatize(frame, epsilon, **_named(seed=seed, **options)).fidelity


def inferred(frame: Any) -> dict[str, dict[str, Any]]:
    """What each column is taken as."""
    return dipriv.infer_schema(frame).to_dict()


def fit_transform(frame: Any, epsilon: float, *, seed: int, **options: Any) -> Released:
    """The estimator, fitted on the rows that it releases."""
    dip = dipriv.DIP(epsilon, **_named(seed=seed, **options))
    data = dip.fit_transform(frame)
    return Released(data, dip.guarantee_.epsilon, len(data))


def fit_then_transform(rows: Any, frame: Any, epsilon: float, *, seed: int, **options: Any) -> Released:
    """The estimator, fitted on other rows."""
    dip = dipriv.DIP(epsilon, **_named(seed=seed, **options)).fit(rows)
    data = dip.transform(frame)
    return Released(data, dip.guarantee_.epsilon, len(data))


def transform_batches(
    rows: Any, batches: Iterable[pa.RecordBatch], epsilon: float, *, seed: int, **options: Any
) -> Released:
    """The estimator, fitted on other rows, over a stream."""
    dip = dipriv.DIP(epsilon, **_named(seed=seed, **options)).fit(rows)
    data = pa.Table.from_batches(list(dip.transform_batches(batches)))
    return Released(data, dip.guarantee_.epsilon, data.num_rows)


def export(path: Path, rows: Any, epsilon: float, *, seed: int, **options: Any) -> None:
    """Write a reference for local use."""
    dipriv.DIP(epsilon, **_named(seed=seed, **options)).fit(rows).export_local(path)


def load(path: Path, *, seed: int) -> dipriv.LocalReference:
    """Read a reference for local use."""
    return dipriv.load_local(path, **_named(seed=seed))


def locally(rows: Any, private: Any, epsilon: float, *, seed: int, fit: Mapping[str, Any] | None = None) -> Released:
    """Export, load, and privatize: a table, or a list of records one by one, each with a seed of its own."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "reference.dipriv"
        export(path, rows, epsilon, seed=seed, **(fit or {}))
        if not isinstance(private, list):
            loaded = load(path, seed=seed)
            data = loaded.privatize(private)
            return Released(data, loaded.guarantee.epsilon, len(data))
        each = [load(path, seed=seed + number) for number in range(len(private))]
        records = [one.privatize(record) for one, record in zip(each, private, strict=True)]
        return Released(pa.Table.from_pylist(records), each[0].guarantee.epsilon, len(records))


def command(*arguments: object) -> None:
    """`dipriv ...` on the command line."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output


def privatize_file(
    write: Callable[[Path], None], source: str, output: str, read: Callable[[Path], Any], *arguments: object, seed: int
) -> Released:
    """`dipriv privatize SOURCE -o OUTPUT --seed ...` in a folder of its own, into which `write` puts the input."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        placed = [str(argument).replace("FOLDER", name) for argument in arguments]
        counted = [] if "--ledger" in placed else ["--no-ledger"]
        if not counted:
            command("ledger", "create", placed[placed.index("--ledger") + 1])
        out = folder / output
        command("privatize", folder / source, "-o", out, "--seed", seed, "--quiet", *counted, *placed)
        note = json.loads(Path(f"{out}.dipriv.json").read_text(encoding="utf-8"))
        return Released(read(out), note["guarantee"]["epsilon"], note["rows"]["released"])


def privatize_stream(source: Any, epsilon: float, *, seed: int, **options: Any) -> Released:
    """A table larger than memory."""
    release = dipriv.privatize(source, epsilon, **_named(seed=seed, **options))
    return Released(release.data.to_table(), release.guarantee.epsilon, release.n_rows)


def privatize_spark(
    session: Any, table: pa.Table, sizes: list[int], epsilon: float, *, seed: int, **options: Any
) -> Released:
    """A Spark DataFrame, in partitions of these sizes."""
    frame = spark_support.in_partitions(session, table, sizes)
    release = dipriv.privatize(frame, epsilon, **_named(seed=seed, **options))
    return Released(release.data.toArrow(), release.guarantee.epsilon, release.n_rows)


def held_out(split: Split, frame: Any) -> list[bool]:
    """Which rows of a table are held out."""
    return [bool(held) for held in split.held_out(frames.read(frame))]


def open_ledger(path: Path) -> Ledger:
    """The ledger in a file."""
    return Ledger.open(path) if path.exists() else Ledger.create(path)


def promise_in(record: Record) -> dipriv.Guarantee:
    """The guarantee that a ledger has of a release of rows."""
    return record.guarantee


def sidecar_beside(released: Path) -> Sidecar:
    """Read the sidecar beside a released file."""
    found = read_sidecar(released)
    assert found is not None
    return found


def _named(**options: Any) -> dict[str, Any]:
    return {_NAMES.get(name, name): value for name, value in options.items()}
