"""Made the files in files/ with version 0.1.0.dev0, in the formats of that version: ledger 1 (and 2 to 5), reference 2.

    python -m tests.golden.make_files

Never make files of an old format again: they are here to show that what earlier versions wrote can still be read. A new
format gets new files, beside these.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from scipy import stats

import dipriv
from dipriv.errors import PrivacyWarning
from dipriv.guarantee import Guarantee, ReferenceFacts, ReferenceSource
from tests.golden import tables
from tests.golden.calls import (
    Categorical,
    Continuous,
    Datetime,
    Discrete,
    Kind,
    Known,
    Mixed,
    Parametric,
    Schema,
    Split,
    command,
    export,
    held_out,
    load,
    open_ledger,
    privatize,
    promise_in,
    released_rows,
    sidecar_beside,
)

FILES = Path(__file__).with_name("files")
KINDS: dict[str, Kind] = {
    "age": Discrete(step=1),
    "rating": Discrete(levels=(1, 2, 3.5)),
    "pay": Mixed(atoms=(0.0, 999.0), lower=0.0, upper=1e6),
    "height": Continuous(lower=0.5, upper=2.5),
    "city": Categorical(levels=("Bonn", "Köln", "São Paulo")),
    "smokes": Categorical(levels=(False, True), encoding="onehot"),
    "born": Datetime(resolution="day"),
    "seen": Datetime(),
}
KEYS: tuple[str, ...] = (*(str(number) for number in range(12)), "-3", "007", "x1", "Köln", "", " ", "1e3", "東京")


def read_csv(name: str) -> pa.Table:
    """A table among the files."""
    return pacsv.read_csv(FILES / name)


def mask(rows: list[bool]) -> str:
    """1 for each row that is held out, or released, 0 for the others."""
    return "".join("01"[each] for each in rows)


def masks(by_position: Split, by_key: Split) -> dict[str, str]:
    """What the splits hold out of 100 positions, of 20 keys in text, and of those that are numbers, as such."""
    return {
        "positions": mask(held_out(by_position, pa.table({"x": np.zeros(100)}))),
        "keys": mask(held_out(by_key, pa.table({"person": list(KEYS)}))),
        "numbers": mask(held_out(by_key, pa.table({"person": [float(key) for key in KEYS[:13]]}))),
    }


def again(ledger: Path) -> dict[str, str]:
    """Which rows a further release has of each data set, by its name; the hold-out is the ledger's."""
    shared: dict[str, Any] = {"reference": "holdout", "unit": "person", "rows_per_unit": 5}
    asked: dict[str, dict[str, Any]] = {"people": {}, "visits": shared, "readings": {"reference": "holdout"}}
    return {
        name: mask(released_rows(read_csv(f"{name}.csv"), 0.25, ledger=ledger, dataset=name, seed=5, **options))
        for name, options in asked.items()
    }


def _tables() -> None:
    rng = np.random.default_rng(0)
    person, pressure = np.repeat(np.arange(20), 5), rng.normal(120, 15, 100).round(1)
    pacsv.write_csv(tables.plain(120, 11).drop_columns(["person", "area"]), FILES / "people.csv")
    pacsv.write_csv(pa.table({"person": person, "pressure": pressure}), FILES / "visits.csv")
    pacsv.write_csv(pa.table({"level": rng.integers(1, 6, 80)}), FILES / "readings.csv")


def _ledger() -> dict[str, str]:
    path = FILES / "ledger.db"
    people, visits, readings = (read_csv(f"{name}.csv") for name in ("people", "visits", "readings"))
    with open_ledger(path) as ledger:
        ledger.set_budget("people", 3.0)
        privatize(people, 0.5, ledger=ledger, dataset="people", seed=1)
        privatize(people, 0.1, ledger=ledger, seed=2, holdout=0.5)
        promised = promise_in(ledger.records("people")[-1])
        ledger.commit(ledger.reserve("people", 0.2, promised, output="people-2.csv"), 120)
        ledger.fail(ledger.reserve("people", 0.3, promised, output="people-3.csv"))
        ledger.reserve("people", 0.4, promised)
        shared: dict[str, Any] = {"reference": "holdout", "unit": "person", "rows_per_unit": 4, "holdout": 0.4}
        for _ in range(2):
            privatize(visits, 1.0, ledger=ledger, dataset="visits", seed=3, **shared)
        privatize(readings, 0.7, ledger=ledger, dataset="readings", reference="holdout", seed=4)
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "ledger.db"
        copy.write_bytes(path.read_bytes())
        return again(copy)


def make_ledger_2(path: Path) -> None:
    """A ledger of version 2, which counts δ: three releases, and a budget of ε and δ."""
    approximate = Guarantee(0.5, "optimal", ReferenceFacts(ReferenceSource.PRIVATE, "private", delta=1e-9), delta=1e-9)
    with open_ledger(path) as ledger:
        ledger.set_budget("people", 3.0, 1e-8)
        ledger.commit(ledger.reserve("people", 0.5, approximate, output="people.csv"), 120)
        ledger.fail(ledger.reserve("people", 0.75, approximate))
        ledger.commit(ledger.reserve("people", 0.5, replace(approximate, delta=0.0)), 60)


def make_ledger_3(path: Path) -> None:
    """A ledger of version 3, which knows tables by their cells: default budget, hold-out, an affirmed data set."""
    people, readings = (read_csv(f"{name}.csv") for name in ("people", "readings"))
    with open_ledger(path) as ledger:
        ledger.set_budget("readings", 2.0, 1e-8)
        privatize(people, 0.5, ledger=ledger, seed=None, dataset="people")
        privatize(readings, 0.7, ledger=ledger, seed=None, dataset="readings", reference="holdout")
        privatize(people.sort_by("age"), 0.25, ledger=ledger, seed=None, new_dataset="others")


def make_ledger_4(path: Path) -> None:
    """A ledger of version 4, which samples rows with their counts: a data set, and a part affirmed to be another."""
    people = read_csv("people.csv")
    with open_ledger(path) as ledger:
        privatize(people, 0.5, ledger=ledger, seed=None, dataset="people")
        privatize(people.slice(0, 40), 0.25, ledger=ledger, seed=None, new_dataset="others")


def make_ledger_5(path: Path) -> None:
    """A ledger of version 5: a stream of one data set that also had rows of another, which protects persons."""
    visits = read_csv("visits.csv")
    with open_ledger(path) as ledger, suppress_warnings():
        privatize(visits, 0.5, ledger=ledger, seed=None, dataset="visits", unit="person", rows_per_unit=4)
        dip = dipriv.DIP(1.0, ledger=ledger, dataset="later").fit(later_visits())
        for _ in dip.transform_batches(pa.concat_tables([later_visits(), visits]).to_batches()):
            pass


def make_ledger_6(path: Path) -> None:
    """A ledger of version 6: a hold-out by keys that are written with leading zeros."""
    with open_ledger(path) as ledger, suppress_warnings():
        privatize(
            padded_visits(),
            0.5,
            ledger=ledger,
            seed=None,
            dataset="padded",
            reference="holdout",
            unit="person",
            rows_per_unit=5,
        )


def padded_visits() -> pa.Table:
    """The visits, with persons like 00007."""
    visits = read_csv("visits.csv")
    persons = pa.array([f"{person:05}" for person in visits["person"].to_pylist()])
    return visits.set_column(0, "person", persons)


def later_visits() -> pa.Table:
    """Visits of other persons."""
    rng = np.random.default_rng(1)
    return pa.table({"person": np.arange(1000, 1100), "pressure": rng.normal(120, 10, 100).round(3)})


@contextmanager
def suppress_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        yield


def _references() -> dict[str, Any]:
    frame = tables.people(200, 12)
    mixed, pay = frame[["age", "pay", "smokes", "city", "grade", "born"]], frame[["pay"]]
    pair = pa.table({"height": stats.norm(1.7, 0.1).rvs(60, random_state=1), "weight": np.linspace(50, 100, 60)})
    count = pa.table({"visits": np.arange(9), "wait": np.linspace(0.1, 4.0, 9)})
    public = pa.table({"age": np.arange(20, 60), "city": ["Bonn", "Köln", None, "Ulm"] * 10})
    known = Known({"visits": stats.poisson(4), "wait": stats.gamma(2.0)})
    body = pa.table({name: np.linspace(-1.0, 1.0, 9) for name in ("height", "weight", "waist")})
    tall = {"height": 1.5, "weight": 0.5, "waist": -0.25}
    asked: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
        "private-network": (
            mixed,
            {},
            {"age": 44, "pay": 0.0, "smokes": True, "city": "Köln", "grade": "mid", "born": "1982-01-15T00:00:00"},
        ),
        "private-column": (pay, {}, {"pay": 1200.5}),
        "known": (count, {"reference": known}, {"visits": 3, "wait": 1.5}),
        "known-caps": (body, {"reference": Known(stats.multivariate_normal(np.zeros(3), np.eye(3)))}, tall),
        "public-empirical": (public, {"public": public, "kernel": "laplace"}, {"age": 33, "city": None}),
        "parametric-normal": (
            pair,
            {"reference": Parametric("multivariate_normal"), "public": pair},
            {"height": 1.8, "weight": 71.0},
        ),
    }
    expected = {}
    for name, (rows, options, record) in asked.items():
        export(FILES / f"reference-{name}.dipriv", rows, 3.0, seed=6, **options)
        expected[name] = {"record": record, **local_results(name, record)}
    return expected


def local_results(name: str, record: dict[str, Any]) -> dict[str, Any]:
    """The ε of an exported reference, and what it makes of a record with each of eight seeds."""
    path = FILES / f"reference-{name}.dipriv"
    typed = {key: np.datetime64(value, "us").item() if key == "born" else value for key, value in record.items()}
    released = [load(path, seed=seed).privatize(typed) for seed in range(8)]
    plain = [{key: _plain(value) for key, value in each.items()} for each in released]
    return {"epsilon": load(path, seed=0).guarantee.epsilon, "released": plain}


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def _splits() -> dict[str, str]:
    by_position, by_key = Split.new(0.3), Split.new(0.5, by="person")
    by_position.save(FILES / "split.json")
    by_key.save(FILES / "split-by-person.json")
    return masks(by_position, by_key)


def _notes() -> dict[str, Any]:
    """As the command line writes them; the released files themselves are not kept, but for their names."""
    arguments: dict[str, tuple[object, ...]] = {
        "private": ("people.csv", "--epsilon", 1, "--keep", "day"),
        "holdout": ("people.csv", "--epsilon", 0.5, "--reference", "holdout", "--drop", "day"),
        "unit": ("visits.csv", "--epsilon", 2, "--unit", "person", "--rows-per-unit", 4, "--seed", 1),
    }
    expected = {}
    with TemporaryDirectory() as folder:
        for name, (source, *asked) in arguments.items():
            out = Path(folder) / f"{name}.csv"
            command("privatize", FILES / str(source), "-o", out, "--no-ledger", "--quiet", *asked)
            note = Path(f"{out}.dipriv.json")
            (FILES / note.name).write_bytes(note.read_bytes())
            said = sidecar_beside(FILES / f"{name}.csv")
            expected[name] = {"guarantee": said.guarantee.to_dict(), "fidelity": dict(said.fidelity)}
    return expected


def main() -> None:
    """Write the files, if there are none."""
    if FILES.exists() and any(FILES.iterdir()):
        sys.exit("The files are there. Those of an old format are never made again: see the top of make_files.py.")
    FILES.mkdir(exist_ok=True)
    _tables()
    make_ledger_2(FILES / "ledger-2.db")
    make_ledger_3(FILES / "ledger-3.db")
    make_ledger_4(FILES / "ledger-4.db")
    make_ledger_5(FILES / "ledger-5.db")
    make_ledger_6(FILES / "ledger-6.db")
    for ending in ("toml", "json"):
        Schema(KINDS).save(FILES / f"schema.{ending}")
    expected = {"ledger": _ledger(), "references": _references(), "splits": _splits(), "notes": _notes()}
    text = json.dumps(expected, indent=1, ensure_ascii=False)
    (FILES / "expected.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
