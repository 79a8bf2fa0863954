"""Files that somebody crafted: each gives an error that says what is wrong, soon, in little memory; none runs anything.

Those that are made at random are in test_fuzz.py and benchmarks/fuzz.
"""

from __future__ import annotations

import io
import json
import math
import os
import sqlite3
import stat
import struct
import time
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dipriv.release.publish import Request, publish
from scipy import stats
from typer.testing import CliRunner

import dipriv
from dipriv import _serialization as state
from dipriv._atomic_write import create, write_atomic
from dipriv._sinks.csv_injection import formulas_in
from dipriv._tables.arrow import distinct_labels
from dipriv.cli import app
from dipriv.errors import InputError, LedgerError, SchemaError
from dipriv.guarantee.sidecar import read_note
from dipriv.ledger import Ledger
from dipriv.references import Known, Mixture
from dipriv.release import local
from dipriv.sources import _untrusted as foreign
from dipriv.sources import files
from dipriv.sources.batches import open_source
from dipriv.sources.files import NOTE, Sink, Source

Plain = dict[str, Any]
Arrays = dict[str, np.ndarray]
RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 22, 60),
        "pay": RNG.choice([0.0, np.nan, 1.0], 60, p=[0.3, 0.2, 0.5]) * RNG.lognormal(size=60),
        "city": RNG.choice(["Bonn", "Köln", "Ulm"], 60),
    }
)
FITS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "boxes": (["age", "pay"], {"public": PEOPLE, "kernel": "laplace"}),
    "network": (["age", "city"], {"seed": 1, "kernel": "laplace"}),
    "joint": (["age", "city"], {"seed": 1}),
    "labels": (["city"], {"public": PEOPLE}),
    "gamma": (["pay"], {"reference": Known(stats.gamma(2.0, scale=3.0)), "kernel": "laplace"}),
    "counts": (["age"], {"reference": Known(stats.poisson(2)), "kernel": "laplace"}),
    "mixture": (["pay"], {"reference": Known(Mixture({0.0: 0.5}, stats.norm())), "kernel": "laplace"}),
    "normal": (["age", "pay"], {"reference": Known(stats.multivariate_normal([0, 0], [[2, 1], [1, 2]]))}),
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The bytes of a reference of each sort."""
    path = tmp_path_factory.mktemp("exported") / "reference"
    found = {}
    for name, (columns, options) in FITS.items():
        dipriv.DIP(1.0, **options).fit(PEOPLE[columns]).export_local(path)
        found[name] = path.read_bytes()
        local.read(found[name])
    return found


@contextmanager
def little(megabytes: float = 40.0, seconds: float = 30.0) -> Iterator[None]:
    """What happens inside takes little memory and time: a refusal takes milliseconds, what it prevents hours or GBs."""
    start = time.perf_counter()
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < megabytes * 1e6
    assert time.perf_counter() - start < seconds


def opened(data: bytes) -> tuple[Any, Arrays]:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return json.loads(arrays.pop("manifest").tobytes()), arrays


def closed(plain: Any, arrays: Arrays, text: bytes | None = None) -> bytes:
    buffer = io.BytesIO()
    manifest = np.frombuffer(json.dumps(plain).encode() if text is None else text, dtype=np.uint8)
    np.savez(buffer, allow_pickle=False, manifest=manifest, **arrays)
    return buffer.getvalue()


def objects(plain: Any, of: str) -> Iterator[Plain]:
    """The fields of all objects of a class in a manifest."""
    if isinstance(plain, list):
        for item in plain:
            yield from objects(item, of)
    elif isinstance(plain, dict):
        if plain.get("class") == of:
            yield plain["fields"]
        for item in plain.values():
            yield from objects(item, of)


def first(plain: Any, of: str) -> Plain:
    return next(objects(plain, of))


def content(plain: Any) -> Plain:
    return dict(plain["pairs"])


def refuses(data: bytes, *needles: str) -> None:
    with pytest.raises(InputError) as caught:
        local.read(data)
    for needle in needles:
        assert needle in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


NOT_OURS = "not a file that dipriv exported"


# ---- the archive ----


def packed(name: str, content: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def test_a_zip_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = packed("manifest.npy", bytes(50_000_000))
    assert len(bomb) < 100_000
    with little():
        with pytest.raises(InputError, match=r"would unpack to 50,000,000 bytes; 1,000,000 are allowed"):
            local.read(bomb, largest=1_000_000)
        refuses(bomb.replace(struct.pack("<I", 50_000_000), struct.pack("<I", 2**32 - 2)), "would unpack to")


def test_a_bomb_that_claims_to_be_small_is_not_unpacked_either() -> None:
    size = 100_000_000
    lies = packed("manifest.npy", bytes(size)).replace(struct.pack("<I", size), struct.pack("<I", 100))
    with little():
        refuses(lies, NOT_OURS)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_packings_are_refused(method: int, exported: dict[str, bytes]) -> None:
    with zipfile.ZipFile(io.BytesIO(exported["gamma"])) as archive:
        manifest = archive.read("manifest.npy")
    refuses(packed("manifest.npy", manifest, method), NOT_OURS)


def test_names_and_doubles_in_the_archive(exported: dict[str, bytes]) -> None:
    with zipfile.ZipFile(io.BytesIO(exported["gamma"])) as good:
        content = {name: good.read(name) for name in good.namelist()}
    for name in ("../a.npy", "a.pkl", "manifest.npy"):
        with zipfile.ZipFile(buffer := io.BytesIO(exported["gamma"]), "a") as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zipfile's own, about two of one name
            archive.writestr(name, content["manifest.npy"])
        refuses(buffer.getvalue(), NOT_OURS)


class Runs:
    """Unpickled, it would leave a file."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("ran"),)


def test_pickles_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exported: dict[str, bytes]) -> None:
    monkeypatch.chdir(tmp_path)
    buffer = io.BytesIO()
    np.save(buffer, np.array([Runs()], dtype=object), allow_pickle=True)
    plain, arrays = opened(exported["gamma"])
    with zipfile.ZipFile(whole := io.BytesIO(closed(plain, arrays)), "a") as archive:
        archive.writestr("a99.npy", buffer.getvalue())
    refuses(whole.getvalue(), NOT_OURS)
    assert not Path("ran").exists()
    np.load(io.BytesIO(buffer.getvalue()), allow_pickle=True)  # control: this one runs it
    assert Path("ran").exists()


HEADERS = {
    "far larger than its content": "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,), }",
    "of objects": "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "of records": "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
    "in columns": "{'descr': '<f8', 'fortran_order': True, 'shape': (1,), }",
    "of texts": "{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }",
    "of long doubles": "{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }",
    "below zero": "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
    "nested": "(" * 9000,
    "an expression": "__import__('os').getcwd()",
}


@pytest.mark.parametrize("what", HEADERS)
def test_arrays_that_claim_what_they_are_not(what: str, exported: dict[str, bytes]) -> None:
    header = HEADERS[what].encode() + b"\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(8)
    with zipfile.ZipFile(whole := io.BytesIO(exported["gamma"]), "a") as archive:
        archive.writestr("a99.npy", array)
    with little():
        refuses(whole.getvalue(), NOT_OURS)


# ---- the manifest ----


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000,
        b'{"tuple":[' * 5000 + b"1" + b"]}" * 5000,
        b"[" + b"1," * 3_000_000 + b"1]",
        b"9" * 1_000_000,
        b'{"ratio": ["1e999999999"]}',
        b'{"ratio": [1, 0]}',
        b'{"ratio": [1.5, 2]}',
        b'{"pairs": [["a", 1], ["a", 2]]}',
        b'{"class": "Path", "fields": {}}',
        b'{"class": "Fitted", "fields": {}}',
        b'{"dtype": "O"}',
        b'{"dtype": "V1000000000000"}',
        b'{"array": "a999"}',
        b'{"array": "a0", "more": 1}',
        b'"\\ud800"',
        b"\xff\xfe",
        b"null",
        b"",
    ],
    ids=lambda text: text[:20].decode("latin-1"),
)
def test_manifests_that_are_no_manifests(text: bytes, exported: dict[str, bytes]) -> None:
    arrays = opened(exported["gamma"])[1]
    with little(150):
        refuses(closed(None, arrays, text), NOT_OURS)


LAWS = {
    "os": "does not have",
    "rv_continuous": "does not have",
    "norm.__class__": "does not have",
    "poisson": "does not have",
    "levy_stable": "too long",
    "kstwo": "too long",
    "studentized_range": "too long",
    "nct": "too long",
    3: "does not have",
}


@pytest.mark.parametrize("name", LAWS)
def test_laws_of_other_names(name: Any, exported: dict[str, bytes]) -> None:
    plain, arrays = opened(exported["gamma"])
    first(plain, "ContinuousDistribution")["dist"]["law"] = name
    with little():
        refuses(closed(plain, arrays), LAWS[name])


@pytest.mark.parametrize(
    "args",
    [
        {"tuple": [{"array": "a0"}]},
        {"tuple": [math.nan]},
        {"tuple": [math.inf]},
        {"tuple": [-2.0]},
        {"tuple": ["2"]},
        {"tuple": [10**30, 10**400]},
        {"tuple": [2.0] * 9},
        {"tuple": [True]},
        {"tuple": [2.0, 0.0, 0.0]},
        [2.0],
    ],
    ids=str,
)
def test_laws_with_other_parameters(args: Any, exported: dict[str, bytes]) -> None:
    plain, arrays = opened(exported["gamma"])
    first(plain, "ContinuousDistribution")["dist"] |= {"args": args, "kwds": {"pairs": []}}
    refuses(closed(plain, arrays))


def test_a_law_that_takes_long_is_not_exported(tmp_path: Path) -> None:
    dip = dipriv.DIP(1.0, reference=Known(stats.levy_stable(1.8, 0.0)), kernel="laplace").fit(PEOPLE[["pay"]])
    with pytest.raises(InputError, match="'levy_stable' takes too long"):
        dip.export_local(tmp_path / "reference")


TYPES: list[Any] = [
    {"arrow": "extension<arrow.py_extension_type>"},
    {"arrow": "list<item: int64>"},
    {"arrow": "timestamp[us]", "zone": "../../../etc/passwd"},
    {"arrow": "timestamp[us]", "zone": "Nowhere/Land"},
    {"arrow": "timestamp[us]", "zone": "x" * 1000},
    {"arrow": "decimal128", "precision": 5, "scale": 2**31 - 1},
    {"arrow": "decimal128", "precision": 10**9, "scale": 0},
    {"arrow": "dictionary", "index": {"arrow": "double"}, "values": {"arrow": "string"}, "ordered": False},
    {"arrow": "int64"},
    {"arrow": ["double"]},
    "double",
    None,
]


@pytest.mark.parametrize("arrow_type", TYPES, ids=str)
def test_columns_of_other_types(arrow_type: Any, exported: dict[str, bytes]) -> None:
    plain, arrays = opened(exported["gamma"])
    first(plain, "Column")["arrow_type"] = arrow_type
    refuses(closed(plain, arrays))


# ---- the numbers ----


def put(of: str, field: str, change: Callable[[np.ndarray], Any]) -> Callable[[Any, Arrays], None]:
    """An array of the first object of a class, changed."""

    def edit(plain: Any, arrays: Arrays) -> None:
        name = first(plain, of)[field]["array"]
        arrays[name] = np.asarray(change(arrays[name]))

    return edit


def say(of: str, **fields: Any) -> Callable[[Any, Arrays], None]:
    """Fields of the first object of a class, changed."""
    return lambda plain, arrays: first(plain, of).update(fields)


def at(place: Any, value: Any) -> Callable[[np.ndarray], np.ndarray]:
    def edit(array: np.ndarray) -> np.ndarray:
        copy = array.copy()
        copy[place] = value
        return copy

    return edit


UNSOUND: list[tuple[str, str, Callable[[Any, Arrays], None]]] = [
    ("boxes", "Cubes", put("Cubes", "starts", lambda a: a * 1000)),
    ("boxes", "Cubes", put("Cubes", "starts", lambda a: a[:1])),
    ("boxes", "Cubes", put("Cubes", "top", lambda a: a[::-1].copy())),
    ("boxes", "Cubes", put("Cubes", "top", at(3, np.nan))),
    ("boxes", "Cubes", put("Cubes", "top", lambda a: a[:-5])),
    ("boxes", "Cubes", put("Cubes", "rest", lambda a: a[:, :, ::-1].copy())),
    ("boxes", "Cubes", put("Cubes", "rest", at((0, 0, 0), -np.inf))),
    ("boxes", "Cubes", put("Cubes", "edges", lambda a: np.append(a, a))),
    ("boxes", "fit together", put("Cubes", "rest", lambda a: np.concatenate([a, a], axis=1))),
    ("boxes", "MissingCodec", say("MissingCodec", width=0.0)),
    ("boxes", "MissingCodec", say("MissingCodec", missing={"tuple": [7]})),
    ("boxes", "MissingCodec", say("MissingCodec", low=-math.inf)),
    ("boxes", "AtomsLine", put("AtomsLine", "shifts", lambda a: np.append(a, a[-1]))),
    ("boxes", "LevelsCodec", put("LevelsCodec", "levels", lambda a: a[::-1].copy())),
    ("boxes", "LevelsCodec", put("LevelsCodec", "levels", lambda a: a[:0])),
    ("boxes", "FittedColumn", put("LevelsCodec", "levels", lambda a: a.astype(np.int32))),
    ("network", "Node", put("Node", "group_of", at(-1, 10**6))),
    ("network", "Node", put("Node", "group_of", at(0, -1))),
    ("network", "Node", put("Node", "inner", at(0, np.nan))),
    ("network", "Node", put("Node", "tables", lambda a: a[:, ::-1].copy())),
    ("network", "Node", put("Node", "tables", lambda a: a[:, :-1].copy())),
    ("network", "Network", put("Node", "tables", lambda a: np.concatenate([a, a]))),
    ("network", "Network", say("Node", parents={"tuple": [1]})),
    ("network", "BinnedCodec", put("BinnedCodec", "sizes", lambda a: a * 0)),
    ("network", "BinnedCodec", put("BinnedCodec", "sizes", lambda a: a + np.uint64(2**63))),
    ("network", "BinnedCodec", put("BinnedCodec", "starts", lambda a: a[::-1].copy())),
    ("network", "GridCodes", say("GridCodes", whole=0)),
    ("network", "GridCodes", say("GridCodes", whole=2**40)),
    ("network", "GridCodes", say("GridCodes", last=2**63)),
    ("network", "RankedLevelsCodec", put("RankedLevelsCodec", "order", lambda a: a * 0)),
    ("network", "RankedLevelsCodec", put("RankedLevelsCodec", "order", lambda a: a + 1)),
    ("labels", "LevelsDistribution", put("LevelsDistribution", "probabilities", lambda a: -a)),
    ("labels", "LevelsDistribution", put("LevelsDistribution", "probabilities", lambda a: a * 2)),
    ("labels", "LevelsDistribution", put("LevelsDistribution", "probabilities", at(0, np.nan))),
    ("labels", "fit together", put("LevelsDistribution", "probabilities", lambda a: np.append(a, 0.0))),
    ("labels", "FittedColumn", put("LevelsCodec", "levels", lambda a: a + np.int32(5))),
    ("labels", "FittedColumn", lambda plain, _: first(plain, "FittedColumn")["labels"].update(labels=["a", "a", "b"])),
    ("labels", "FittedColumn", lambda plain, _: first(plain, "FittedColumn")["labels"].update(labels=["a", None, "b"])),
    ("labels", "FittedColumn", say("FittedColumn", labels=None)),
    ("labels", NOT_OURS, lambda plain, _: first(plain, "FittedColumn")["labels"].update(labels=["a", {}, "b"])),
    ("labels", NOT_OURS, lambda plain, _: first(plain, "FittedColumn")["labels"].update(labels=["\ud800"])),
    ("counts", "IntegerDistribution", put("IntegerDistribution", "cumulative", lambda a: a[::-1].copy())),
    ("counts", "IntegerDistribution", put("IntegerDistribution", "cumulative", lambda a: a * 0.5)),
    ("counts", "IntegerDistribution", say("IntegerDistribution", start=2**60)),
    ("counts", "LatticeCodec", say("LatticeCodec", whole=0)),
    ("counts", "LatticeCodec", say("LatticeCodec", low=math.nan)),
    ("counts", "LatticeCodec", say("LatticeCodec", origin=2**70)),
    ("gamma", "RealCodec", say("RealCodec", low=math.nan)),
    ("gamma", "RealCodec", say("RealCodec", scale=0.0)),
    ("gamma", NOT_OURS, say("RealCodec", low="0")),
    ("mixture", "Mixture", lambda plain, _: first(plain, "Mixture").update(atoms={"pairs": [[math.nan, 0.5]]})),
    ("mixture", "Mixture", lambda plain, _: first(plain, "Mixture").update(atoms={"pairs": [[0.0, 1.5]]})),
    ("normal", "Normal", put("Normal", "root", lambda a: a.T.copy())),
    ("normal", "Normal", put("Normal", "root", lambda a: a * 0)),
    ("normal", "Normal", put("Normal", "mean", at(0, np.inf))),
    ("normal", "fit together|Normal", put("Normal", "mean", lambda a: np.append(a, 0.0))),
    ("boxes", "Column", lambda plain, _: first(plain, "Column")["storage"]["fields"].update(tick_ns=2)),
    ("boxes", NOT_OURS, say("Column", name=None)),
    ("boxes", NOT_OURS, say("Column", nullable=1)),
    ("boxes", NOT_OURS, put("Cubes", "top", lambda a: a.astype(np.float32))),
    ("boxes", NOT_OURS, put("Cubes", "starts", lambda a: a.astype(np.uint64))),
    ("joint", "JointKernel", say("JointKernel", bits=60)),
    ("joint", "JointKernel", put("JointKernel", "weights", lambda a: a * 10**9)),
    ("joint", "JointKernel", put("JointKernel", "weights", lambda a: np.ones(10**5, dtype=np.int64))),
    ("joint", "JointKernel", put("JointKernel", "weights", lambda a: np.arange(1, 2000))),
    ("labels", "ColumnsKernel", say("ColumnsKernel", which={"tuple": [-1]})),
    ("labels", NOT_OURS, say("ColumnsKernel", which={"tuple": [True]})),
    ("labels", NOT_OURS, say("Transition", _thresholds=1)),
    ("boxes", "LaplaceKernel", put("LaplaceKernel", "scales", lambda a: a.reshape(-1, 1))),
]


@pytest.mark.parametrize(("name", "told", "edit"), UNSOUND, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(UNSOUND)])
def test_numbers_that_no_export_has(
    name: str, told: str, edit: Callable[[Any, Arrays], None], exported: dict[str, bytes]
) -> None:
    plain, arrays = opened(exported[name])
    edit(plain, arrays)
    with little(), pytest.raises(InputError, match=told):
        local.read(closed(plain, arrays))


def test_a_guide_in_the_file_leads_nowhere(exported: dict[str, bytes]) -> None:
    plain, arrays = opened(exported["boxes"])
    name = first(plain, "Guide")["starts"]["array"]
    arrays[name] = arrays[name] + np.asarray(10**6, dtype=arrays[name].dtype)  # beyond all boxes
    crafted, true = local.read(closed(plain, arrays), seed=3), local.read(exported["boxes"], seed=3)
    pd.testing.assert_frame_equal(crafted.privatize(PEOPLE[["age", "pay"]]), true.privatize(PEOPLE[["age", "pay"]]))


def test_many_levels_take_no_matrix(exported: dict[str, bytes]) -> None:
    many = pd.DataFrame({"x": [f"l{i % 2000}" for i in range(6000)]})
    fitted = dipriv.DIP(1.0, public=many).fit(many).mechanism_
    laplace = replace(fitted, kernel=local.read(exported["gamma"]).fitted.kernel)
    with little():
        released = local.read(saved(laplace, local.read(exported["gamma"]).guarantee)).privatize(many)
    assert set(released["x"]) <= set(many["x"])


def saved(fitted: Any, promise: dipriv.Guarantee) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        local.save(Path(folder) / "r", fitted, promise)
        return (Path(folder) / "r").read_bytes()


# ---- the promise ----

CLAIMS: list[tuple[dict[str, Any], str]] = [
    ({"epsilon": 0.5}, "spends more"),
    ({"epsilon": math.nan}, "not a finite number"),
    ({"epsilon": 1e300}, "outside"),
    ({"epsilon": "1"}, NOT_OURS),
    ({"epsilon": True}, NOT_OURS),
    ({"delta": 1e-9}, "not that of a record"),
    ({"model": "central"}, "not that of a record"),
    ({"protects": "every row of everybody, always"}, "not that of a record"),
    ({"unit": "nobody"}, "not that of a record"),
    ({"neighbours": "equal records"}, "not that of a record"),
    ({"conditions": {"tuple": []}}, "not that of a record"),
    ({"kernel": "laplace\n  Attacker: powerless"}, "words"),
    ({"reference": "known law\x1b[2J"}, "words"),
    ({"kernel": "x" * 100_000}, "words"),
]


@pytest.mark.parametrize(("said", "told"), CLAIMS, ids=[str(said)[:40] for said, _ in CLAIMS])
@pytest.mark.parametrize("name", ["gamma", "joint", "labels"])
def test_claims_that_the_kernel_does_not_keep(
    name: str, said: dict[str, Any], told: str, exported: dict[str, bytes]
) -> None:
    plain, arrays = opened(exported[name])
    guarantee = first(plain, "Guarantee")
    if said == {"epsilon": 0.5}:
        said = {"epsilon": guarantee["epsilon"] * (1 - 1e-12)}
    guarantee.update(said)
    refuses(closed(plain, arrays), told)


def pairs(name: str, value: Any) -> Callable[[Any, Arrays], None]:
    """A part of the file's content, replaced or added."""

    def edit(plain: Any, arrays: Arrays) -> None:
        plain["pairs"] = [pair for pair in plain["pairs"] if pair[0] != name] + [[name, value]]

    return edit


WHOLES: list[tuple[str, Callable[[Any, Arrays], None]]] = [
    ("format 1", pairs("format", 1)),
    ("format", pairs("format", "x" * 1000)),
    (NOT_OURS, pairs("by", "age")),
    (NOT_OURS, pairs("kernel", {"class": "Continuous", "fields": {}})),
    (NOT_OURS, pairs("reference", None)),
    (NOT_OURS, pairs("nulls_have_mass", 1)),
    ("fit together", pairs("order", {"tuple": [True, False]})),
    ("do not fit", pairs("order", {"tuple": [0, 0]})),
    ("do not fit", pairs("order", {"tuple": []})),
    ("do not fit", pairs("order", {"tuple": ["0", "1"]})),
    ("fit together", pairs("declared", {"tuple": ["other"]})),
    ("do not fit", pairs("columns", {"tuple": []})),
]


@pytest.mark.parametrize(("told", "edit"), WHOLES, ids=range(len(WHOLES)))
def test_parts_that_do_not_belong_together(
    told: str, edit: Callable[[Any, Arrays], None], exported: dict[str, bytes]
) -> None:
    plain, arrays = opened(exported["boxes"])
    edit(plain, arrays)
    refuses(closed(plain, arrays), told)


def test_two_columns_of_one_name_are_refused(exported: dict[str, bytes]) -> None:
    plain, arrays = opened(exported["boxes"])
    for column in objects(plain, "Column"):
        column["name"] = "age"
    refuses(closed(plain, arrays), "fit together")


def test_every_kernel_is_checked_again_when_it_is_loaded(exported: dict[str, bytes]) -> None:
    """The noise of a file that claims ε is too little by a billionth: refused, whatever the kernel."""
    for name, of, edit in (
        ("gamma", "LaplaceKernel", put("LaplaceKernel", "scales", lambda a: a - 1 - a // 10**9)),
        ("joint", "JointKernel", None),
        ("labels", "Transition", None),
    ):
        plain, arrays = opened(exported[name])
        if edit is not None:
            edit(plain, arrays)
        elif of == "JointKernel":
            fields = first(plain, of)
            fields["inside"] += fields["inside"] // 10**9
        else:
            fields = first(plain, of)["budget"]["ratio"]
            fields[:] = [fields[0] * (10**9 - 1), fields[1] * 10**9]
        refuses(closed(plain, arrays))


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "large"])
def test_what_is_not_a_file_of_a_reasonable_size(kind: str, tmp_path: Path, exported: dict[str, bytes]) -> None:
    place = tmp_path / "reference"
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "large":
        place.write_bytes(exported["gamma"])
    with pytest.raises(InputError, match=r"is not a file|more than 100 bytes"):
        local.load_local(place, largest=100)


def test_what_was_exported_is_loaded(exported: dict[str, bytes]) -> None:
    """The control of all of the above: rewritten without a change, every file is accepted and works."""
    for name, (columns, _) in FITS.items():
        plain, arrays = opened(exported[name])
        loaded = local.read(closed(plain, arrays))
        rows = PEOPLE[columns] if loaded.fitted.nulls_have_mass else PEOPLE[columns].dropna()
        assert loaded.privatize(rows).shape == rows.shape


def test_labels_of_times_are_exported(tmp_path: Path) -> None:
    days = pd.to_datetime(["2020-01-01", "2020-01-02"])
    frame = pd.DataFrame({"day": pd.Categorical(RNG.choice(days, 50), categories=days)})
    dipriv.DIP(1.0, public=frame).fit(frame).export_local(tmp_path / "r")
    loaded = local.load_local(tmp_path / "r")
    assert set(loaded.privatize(frame)["day"]) <= set(days)


# ---- tables ----


def arrow_file(table: pa.Table | pa.RecordBatch) -> bytes:
    buffer = io.BytesIO()
    with pa.ipc.new_file(buffer, table.schema) as writer:
        writer.write(table)
    return buffer.getvalue()


def reading(tmp_path: Path, name: str, content: bytes) -> Callable[[], Any]:
    (tmp_path / name).write_bytes(content)
    return lambda: Source.open(tmp_path / name).read()


def test_arrow_files_that_point_outside_of_themselves(tmp_path: Path) -> None:
    codes = pa.py_buffer(np.array([0, 10**6], dtype=np.int32))
    labels = pa.DictionaryArray.from_arrays(
        pa.Array.from_buffers(pa.int32(), 2, [None, codes]), pa.array(["a"]), safe=False
    )
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], dtype=np.int32)), pa.py_buffer(b"\xff")]
    )
    for array in (labels, broken):
        call = reading(tmp_path, "t.arrow", arrow_file(pa.record_batch([array], ["x"])))
        with pytest.raises(InputError, match=r"t\.arrow: it (cannot be read|is not in UTF-8)"):
            call()
    stream = arrow_file(pa.record_batch([pa.array(["ab", "c"])], ["x"]))
    crafted = stream.replace(
        np.array([0, 2, 3], dtype=np.int32).tobytes(), np.array([0, 2, 10**6], dtype=np.int32).tobytes()
    )
    assert crafted != stream
    with pytest.raises(InputError, match=r"t\.arrow: it cannot be read"):
        reading(tmp_path, "t.arrow", crafted)()


def test_arrow_names_that_are_no_text(tmp_path: Path) -> None:
    content = arrow_file(pa.record_batch([pa.array([1])], ["abcd"])).replace(b"abcd", b"\xff\xfe\xfd\xfc")
    with pytest.raises(InputError, match=r"is not in UTF-8"):
        reading(tmp_path, "t.arrow", content)()


def test_rows_that_have_no_cells(tmp_path: Path) -> None:
    nulls = pa.Array.from_buffers(pa.null(), 2**31 - 1, [None])
    with little(), pytest.raises(InputError, match="claims 2,147,483,647 rows that have no cells"):
        reading(tmp_path, "t.arrow", arrow_file(pa.record_batch([nulls], ["x"])))()
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2**30], pa.int32()), pa.array([1]))
    with little(), pytest.raises(InputError, match="no cells"):
        reading(tmp_path, "t.arrow", arrow_file(pa.record_batch([runs], ["x"])))()


def test_labels_that_unfold_beyond_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 1 << 12
    label = "x" * (1 << 20)
    folded = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array([label]))
    view = struct.pack("<i4sii", len(label), b"xxxx", 0, 0)
    views = pa.Array.from_buffers(
        pa.string_view(), rows, [None, pa.py_buffer(view * rows), pa.py_buffer(label.encode())]
    )
    monkeypatch.setattr(foreign, "memory", lambda: 1 << 32)
    for array in (folded, views):
        with little(), pytest.raises(InputError, match=r"'x' unfold to 4,096 MB, over half"):
            reading(tmp_path, "t.arrow", arrow_file(pa.record_batch([array], ["x"])))()


def test_parquet_texts_that_unfold_are_read_in_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 1 << 15
    label = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array(["x" * (1 << 20)]))
    pq.write_table(pa.table({"x": label}), tmp_path / "t.parquet", store_schema=False)
    assert (tmp_path / "t.parquet").stat().st_size < 1 << 18  # and 32 GB of text
    monkeypatch.setattr(foreign, "BATCH_TEXT", 1 << 23)
    batch = next(Source.open(tmp_path / "t.parquet").batches())
    assert batch.num_rows == 8
    batch = next(open_source(tmp_path / "t.parquet").batches(["x"]))
    assert batch.num_rows == 8


def test_parquet_folders_with_text_that_is_none(tmp_path: Path) -> None:
    bytes_ = pa.array([b"ab", b"\xff\xfe"]).cast(pa.large_binary())
    broken = pa.Array.from_buffers(pa.large_string(), 2, bytes_.buffers())
    pq.write_table(pa.table({"x": pa.array(["a", "b"], pa.large_string())}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"x": broken}), tmp_path / "1.parquet")
    batches = open_source(tmp_path).batches(["x"])
    assert next(batches)["x"].to_pylist() == ["a", "b"]
    with pytest.raises(InputError, match="cannot be read"):
        next(batches)


def test_parquet_folders_with_a_name_that_is_no_text(tmp_path: Path) -> None:
    for number, name in enumerate((b"abcd", b"\xff\xfe\xfd\xfc")):
        pq.write_table(pa.table({"abcd": [1, 2]}), tmp_path / f"{number}.parquet", store_schema=False)
        file = tmp_path / f"{number}.parquet"
        file.write_bytes(file.read_bytes().replace(b"abcd", name))
    with pytest.raises(InputError, match=r"cannot be read \(UnicodeDecodeError\)"):
        open_source(tmp_path)


def test_labels_are_told_apart_without_unfolding_them() -> None:
    labels = pa.array(["y" * (1 << 20), "x" * (1 << 20), "never"])
    folded = pa.DictionaryArray.from_arrays(pa.array(np.arange(1 << 12, dtype=np.int32) % 2), labels)
    assert distinct_labels(folded).to_pylist() == [
        labels[1].as_py(),
        labels[0].as_py(),
    ]  # 4 GB do not fit 32-bit offsets


def test_more_than_memory_is_not_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"x": np.arange(10_000)}), tmp_path / "t.parquet")
    monkeypatch.setattr(files, "memory", lambda: 1000)
    with pytest.raises(InputError, match="does not fit the memory"):
        Source.open(tmp_path / "t.parquet").read()


def test_a_packed_file_that_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Sink.open(tmp_path / "t.arrow.gz") as sink:
        sink.write(pa.record_batch({"x": np.zeros(1_000_000)}))
        sink.publish()
    assert (tmp_path / "t.arrow.gz").stat().st_size < 20_000
    assert Source.open(tmp_path / "t.arrow.gz").read().num_rows == 1_000_000
    monkeypatch.setattr(files, "LARGEST_UNPACKED", 1_000_000)
    with pytest.raises(InputError, match="unpacks to more than"):
        Source.open(tmp_path / "t.arrow.gz").read()


@pytest.mark.parametrize("head", ["a" + ",a" * 20_000, '"a\nb"' + ",a" * 20_000, "\r\n" + ",a" * 20_000])
def test_more_columns_than_anybody_has(head: str, tmp_path: Path) -> None:
    with little(), pytest.raises(InputError, match=r"20,001 columns, more than 10,000"):
        reading(tmp_path, "t.csv", head.encode() + b"\n1\n")()
    many = pa.schema([(f"x{i}", pa.int64()) for i in range(10_001)])
    with pytest.raises(InputError, match="10,001 columns"):
        reading(tmp_path, "t.arrow", arrow_file(pa.record_batch([pa.array([1])] * 10_001, schema=many)))()


def test_a_ragged_row_that_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="row 3 has 3 columns, not 2"):
        reading(tmp_path, "t.csv", b"a,b\n1,2\n1,\xff,3\n")()


def test_a_type_that_the_format_cannot_hold_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    table = pa.table({"age": np.arange(500) % 50, "kept": pa.array([[1, 2]] * 500)})
    pq.write_table(table, tmp_path / "in.parquet")
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        request = Request(1.0, keep=("kept",), ledger=ledger, dataset="people")
        with pytest.raises(InputError, match="'kept' has a type that csv files cannot hold"):
            publish(request, Source.open(tmp_path / "in.parquet"), Sink.open(tmp_path / "out.csv"), lambda *_: None)
        assert ledger.datasets() == []


@pytest.mark.parametrize("values", [[1, None, 3], ["a", None, "b"], [True, None], [0.5, None]])
def test_a_null_that_is_alone_in_its_line_is_a_row(values: list[Any], tmp_path: Path) -> None:
    with Sink.open(tmp_path / "t.csv") as sink:
        for part in (values[:1], values, values[:1]):
            sink.write(pa.record_batch({"x": pa.array(part, pa.array(values).type)}))
        sink.publish()
    found = Source.open(tmp_path / "t.csv").read()["x"].to_pylist()
    expected = [values[0], *values, values[0]]
    assert [None if value == "" else value for value in found] == expected


# ---- schemas ----

SCHEMAS: list[tuple[str, str, str]] = [
    ("json", "[" * 100_000, "nested too deeply"),
    ("json", '{"a": {"kind": ' + "[" * 500 + "]" * 500 + "}}", "no known kind"),
    ("json", "[]", "is a list"),
    ("json", "3", "is a int"),
    ("json", '{"a": []}', "no known kind"),
    ("json", '{"a": {"kind": "continuous", "lower": 1' + "0" * 400 + "}}", "very long number"),
    ("json", '{"a": {"kind": "continuous", "lower": 1' + "0" * 5000 + "}}", "cannot be read"),
    ("json", '{"a": {"kind": "continuous", "lower": 1e999}}', "not a finite number"),
    ("json", '{"a": {"kind": "continuous", "lower": [1]}}', "not a finite number"),
    ("json", '{"a": {"kind": "discrete", "levels": [1' + "0" * 30 + "]}}", "cannot be used here"),
    ("json", '{"a": {"kind": "discrete", "levels": [[1]]}}', "cannot be used here"),
    ("json", '{"a": {"kind": "discrete", "levels": {"a": 1}}}', "cannot be used here"),
    ("json", '{"a": {"kind": "discrete", "step": 1' + "0" * 400 + "}}", "very long number"),
    ("json", '{"a": {"kind": "categorical", "levels": ["\\ud800"]}}', "cannot be used here"),
    ("json", '{"\\ud800": {"kind": "continuous"}}', "column name"),
    ("json", '{"a": {"kind": "mixed", "unit": -1}}', "not a positive number"),
    ("json", '{"a": {"kind": "mixed", "unit": 1e308}}', "not a positive number"),
    ("json", '{"a": {"kind": "mixed", "unit": "x"}}', "not a positive number"),
    ("json", '{"a": {"kind": "datetime", "resolution": ["day"]}}', "unknown"),
    ("json", "\ufeff{}", "cannot be read"),
    ("toml", "a = " + "[" * 5000, "nested too deeply"),
    ("toml", "a" + ".a" * 200_000 + " = 1", "many parts"),
    ("toml", "x = {a" + ".a" * 200_000 + " = 1}", "many parts"),
    ("toml", '["a".' + "'b' . " * 50 + "c]", "many parts"),
    ("toml", "[a]\nkind = 'continuous'\nlower = 0x" + "f" * 10_000, "very long number"),
    ("toml", "[a]\nkind = 'discrete'\nlevels = [0x" + "f" * 10_000 + "]", "cannot be used here"),
    ("toml", "[a]\nkind = 'discrete'\nlevels = [1979-05-27]", "cannot be used here"),
    ("toml", "a = 1", "no known kind"),
]


@pytest.mark.parametrize(("ending", "text", "told"), SCHEMAS, ids=range(len(SCHEMAS)))
def test_schemas_that_are_none(ending: str, text: str, told: str, tmp_path: Path) -> None:
    place = tmp_path / f"schema.{ending}"
    place.write_text(text, encoding="utf-8")
    with little(), pytest.raises(SchemaError) as caught:
        dipriv.Schema.load(place)
    assert told in caught.value.fault
    assert len(caught.value.fault) < 400


def test_a_schema_of_many_labels_with_dots_is_read() -> None:
    """The control: dots in quoted names, in labels and in numbers are no keys of many parts."""
    levels = ", ".join(f'"{".".join("abcdefg")} {i}.{i}.{i}"' for i in range(200))
    numbers = ", ".join(f"{i}.25" for i in range(200))
    text = f'["a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p"]\nkind = "categorical"\nlevels = [{levels}]\n'
    text += f'[b]\nkind = "discrete"\nlevels = [{numbers}]\n'
    assert len(dipriv.Schema.from_toml(text)) == 2


def test_a_schema_file_of_another_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="is not a file"):
        dipriv.Schema.load(tmp_path)
    (tmp_path / "s.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SchemaError, match="not in UTF-8"):
        dipriv.Schema.load(tmp_path / "s.toml")
    monkeypatch.setattr("dipriv.schema.LARGEST_FILE", 1)
    with pytest.raises(SchemaError, match="more than 1 bytes"):
        dipriv.Schema.load(tmp_path / "s.toml")


# ---- notes ----

NOTES = [
    b"[" * 100_000,
    b"[]",
    b"null",
    b"\xff",
    b'{"guarantee": []}',
    b'{"guarantee": {"epsilon": "1"}}',
    b'{"guarantee": {"epsilon": NaN, "protects": "", "kernel": "", "reference": ""}}',
    b'{"guarantee": {"epsilon": 1.0, "protects": "a\\u001b[2J", "kernel": "", "reference": ""}}',
    b'{"guarantee": {"epsilon": 1.0, "protects": "", "kernel": "", "reference": "", "delta": "0"}}',
    b'{"guarantee": {"epsilon": 1.0, "protects": "", "kernel": "", "reference": "", "conditions": [[]]}}',
    b'{"fidelity": [1]}',
]


@pytest.mark.parametrize("content", NOTES, ids=lambda content: content[:30].decode("latin-1"))
def test_notes_that_say_nothing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / f"t.csv{NOTE}").write_bytes(content)
    assert read_note(tmp_path / "t.csv") == (None, {})


def test_a_note_is_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"age": np.arange(500) % 50}), tmp_path / "in.parquet")
    done = publish(Request(1.0), Source.open(tmp_path / "in.parquet"), Sink.open(tmp_path / "out.csv"), lambda *_: None)
    assert read_note(tmp_path / "out.csv") == (done.guarantee, done.fidelity)
    assert read_note(tmp_path / "other.csv") == (None, {})


# ---- ledgers ----


@pytest.fixture
def book(tmp_path: Path) -> Path:
    place = tmp_path / "ledger.db"
    promise = dipriv.Guarantee(epsilon=0.5, protects="every row", kernel="laplace", reference="known law")
    with Ledger.open(place) as ledger:
        ledger.set_budget("people", 3.0)
        ledger.commit(ledger.reserve("people", 0.5, promise), 1)
    return place


STATEMENTS: list[tuple[str, str]] = [
    ("UPDATE dipriv_releases SET epsilon = -5", "dipriv_releases.epsilon"),
    ("UPDATE dipriv_releases SET epsilon = 9e999", "dipriv_releases.epsilon"),
    ("UPDATE dipriv_releases SET epsilon = '1e999999999x'", "dipriv_releases.epsilon"),
    ("UPDATE dipriv_releases SET epsilon = x'00'", "dipriv_releases.epsilon"),
    ("UPDATE dipriv_releases SET dataset = 99", "dipriv_releases.dataset"),
    ("UPDATE dipriv_releases SET state = 'free'", "dipriv_releases.state"),
    ("UPDATE dipriv_releases SET rows = -1", "dipriv_releases.rows"),
    ("UPDATE dipriv_releases SET started = 'yesterday'", "is damaged"),
    ("UPDATE dipriv_releases SET guarantee = 'no json'", "is damaged"),
    (f"UPDATE dipriv_releases SET guarantee = '{'[' * 3000}'", "is damaged"),
    ("UPDATE dipriv_releases SET guarantee = '[]'", "is damaged"),
    ("UPDATE dipriv_datasets SET budget = 'much'", "dipriv_datasets.budget"),
    ("UPDATE dipriv_datasets SET budget = -1.0", "dipriv_datasets.budget"),
    ("UPDATE dipriv_datasets SET split_key = 1000000000000", "dipriv_datasets.split_key"),
    ("UPDATE dipriv_datasets SET split_key = x'00'", "dipriv_datasets.split_key"),
    ("UPDATE dipriv_datasets SET holdout = 1.5", "dipriv_datasets.holdout"),
    ("UPDATE dipriv_datasets SET name = x'00'", "dipriv_datasets.name"),
    ("UPDATE dipriv_datasets SET name = ''", "dipriv_datasets.name"),
    ("UPDATE dipriv_datasets SET created = 5", "is damaged"),
    ("UPDATE dipriv_ledger SET fingerprint_key = 'text'", "dipriv_ledger.fingerprint_key"),
    ("UPDATE dipriv_ledger SET version = 2", "has version 2"),
    ("DELETE FROM dipriv_ledger", "has version None"),
    ("CREATE TRIGGER t AFTER INSERT ON dipriv_releases BEGIN DELETE FROM dipriv_releases; END", "triggers"),
    ("CREATE VIEW v AS SELECT * FROM dipriv_releases", "views"),
    ("DROP TABLE dipriv_fingerprints", "tables, views or triggers"),
    ("ALTER TABLE dipriv_releases ADD COLUMN more AS (epsilon * 2)", "tables, views or triggers"),
]


@pytest.mark.parametrize(("statement", "told"), STATEMENTS, ids=[statement[:60] for statement, _ in STATEMENTS])
def test_ledgers_that_say_what_dipriv_did_not_write(statement: str, told: str, book: Path) -> None:
    with sqlite3.connect(book) as link:
        link.execute("PRAGMA ignore_check_constraints = ON")
        link.execute(statement)
    link.close()

    def use() -> None:
        with Ledger.open(book) as ledger:
            ledger.records("people")

    with little(), pytest.raises(LedgerError) as caught:
        use()
    assert told in caught.value.fault
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_view_in_place_of_a_table_is_not_run(book: Path) -> None:
    endless = "WITH RECURSIVE n(version) AS (SELECT 1 UNION ALL SELECT version + 1 FROM n)"
    with sqlite3.connect(book) as link:
        link.execute("DROP TABLE dipriv_ledger")
        link.execute(f"CREATE VIEW dipriv_ledger AS {endless} SELECT max(version) AS version FROM n")
    link.close()
    with little(), pytest.raises(LedgerError, match="tables, views or triggers"):
        Ledger.open(book)


@pytest.mark.parametrize("start", [0, 24, 100, 4096])
def test_damaged_ledgers_are_refused(start: int, book: Path) -> None:
    content = bytearray(book.read_bytes())
    content[start : start + 400] = b"\xff" * 400
    book.write_bytes(content)
    with pytest.raises(LedgerError):
        Ledger.open(book).records("people")


# ---- places ----


def released(tmp_path: Path) -> pa.RecordBatch:
    return pa.record_batch({"x": [1, 2]})


@pytest.mark.parametrize("there", [True, False], ids=["a link to a file", "a link to nothing"])
def test_an_output_is_never_written_through_a_link(there: bool, tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "out.csv"
    if there:
        target.write_text("mine", encoding="utf-8")
    link.symlink_to(target)
    with pytest.raises(InputError, match="exists"):
        Sink.open(link)
    with Sink.open(link, force=True) as sink:
        sink.write(released(tmp_path))
        sink.publish()
    assert not link.is_symlink()
    assert link.read_text(encoding="utf-8") == '"x"\n1\n2\n'
    assert target.exists() == there
    if there:
        assert target.read_text(encoding="utf-8") == "mine"


def test_a_link_that_appears_meanwhile_is_not_written_through(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "out.csv"
    with Sink.open(link) as sink:
        sink.write(released(tmp_path))
        link.symlink_to(target)
        with pytest.raises(InputError, match="File exists"):
            sink.publish()
    assert not target.exists()


def test_a_file_that_is_there_is_not_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for name in ("there", "link"):
        with pytest.raises(FileExistsError):
            create(tmp_path / name)
    assert not (tmp_path / "target").exists()


def test_exports_schemas_and_notes_replace_links(tmp_path: Path, exported: dict[str, bytes]) -> None:
    loaded = local.read(exported["gamma"])
    writers: tuple[Callable[[Path], None], ...] = (
        lambda path: local.save(path, loaded.fitted, loaded.guarantee),
        dipriv.Schema({"a": dipriv.Continuous()}).save,
        lambda path: files.write_text(path, "text"),
        lambda path: write_atomic(path, b"bytes"),
    )
    for number, write in enumerate(writers):
        target, link = tmp_path / f"target{number}.json", tmp_path / f"link{number}.json"
        target.write_text("mine", encoding="utf-8")
        link.symlink_to(target)
        write(link)
        assert not link.is_symlink()
        assert target.read_text(encoding="utf-8") == "mine"
    assert not [found for found in tmp_path.iterdir() if found.name.endswith(".part")]


def test_a_name_too_long_for_its_note_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too long by"):
        Sink.open(tmp_path / f"{'x' * 230}.csv")
    (tmp_path / f"t.csv{NOTE}").mkdir()
    with pytest.raises(InputError, match="is a folder; a note"):
        Sink.open(tmp_path / "t.csv")


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0, 0o022])
@pytest.mark.parametrize("before", [None, 0o666])
def test_what_holds_secrets_is_for_its_owner_alone(mask: int, before: int | None, tmp_path: Path) -> None:
    table = tmp_path / "in.csv"
    table.write_text("a,b\n" + "1,x\n2,y\n" * 50, encoding="utf-8")
    secret = {name: tmp_path / name for name in ("draft.toml", "schema.json", "ledger.db", "report.html")}
    with umask(mask):
        if before is not None:
            Ledger.open(secret["ledger.db"]).close()
            for path in secret.values():
                path.touch()
                path.chmod(before)
        run = CliRunner().invoke
        assert run(app, ["inspect", str(table), "-o", str(secret["draft.toml"]), "--force"]).exit_code == 0
        dipriv.Schema({"a": dipriv.Discrete(levels=(1, 2))}).save(secret["schema.json"])
        Ledger.open(secret["ledger.db"]).close()
        if mask:  # reports take long
            del secret["report.html"]
        else:
            (tmp_path / "again.csv").write_bytes(table.read_bytes())
            told = ["-o", str(secret["report.html"]), "--force"]
            assert run(app, ["compare", str(table), str(tmp_path / "again.csv"), *told]).exit_code == 0
    assert {name: mode(path) for name, path in secret.items()} == dict.fromkeys(secret, 0o600)


def test_what_is_published_is_as_open_as_the_umask_says(tmp_path: Path) -> None:
    for mask, expected in ((0o022, 0o644), (0o077, 0o600)):
        with umask(mask), Sink.open(tmp_path / f"{mask}.csv") as sink:
            sink.write(released(tmp_path))
            sink.publish()
        assert mode(tmp_path / f"{mask}.csv") == expected


# ---- formulas ----

CELLS = [
    "=1+1",
    "+SUM(A1)",
    "-2+3",
    "@cmd",
    "\tx",
    "\rx",
    "\nx",
    "\uff1dx",
    "a=1",
    "-5",
    "+3.5e-2",
    "-",
    "=",
    "",
    None,
    "é",
]
RUN = CELLS[:8]


def write_csv(path: Path, table: pa.Table, *, escape: bool) -> Sink:
    with Sink.open(path, force=True, escape_formulas=escape) as sink:
        for batch in table.to_batches(max_chunksize=5):
            sink.write(batch)
        sink.publish()
    return sink


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize(
    "of", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_formulas_are_counted_and_escaped_if_asked_for(ending: str, of: pa.DataType, tmp_path: Path) -> None:
    texts = pa.array(CELLS).dictionary_encode().cast(of) if pa.types.is_dictionary(of) else pa.array(CELLS, of)
    table = pa.table({"=x": texts, "n": pa.array([-1.5] * len(CELLS))})
    path = tmp_path / f"t.{ending}"
    plain = write_csv(path, table, escape=False)
    assert dict(plain.formulas) == {"=x": len(RUN) + 1}  # and its name
    found = Source.open(path).read()
    assert found["=x"].to_pylist() == [cell or "" for cell in CELLS]  # the data is the same
    write_csv(path, table, escape=True)
    found = Source.open(path).read()
    assert found.column_names == ["'=x", "n"]
    assert found["'=x"].to_pylist() == [f"'{cell}" if cell in RUN else cell or "" for cell in CELLS]
    assert found["n"].to_pylist() == [-1.5] * len(CELLS)
    assert formulas_in(pa.array(found["'=x"].to_pylist(), pa.large_string())) is None


def test_other_formats_are_left_alone(tmp_path: Path) -> None:
    sink = write_csv(tmp_path / "t.parquet", pa.table({"=x": ["=1+1"]}), escape=True)
    assert pq.read_table(tmp_path / "t.parquet").to_pydict() == {"=x": ["=1+1"]}
    assert not sink.formulas


def test_the_command_warns_of_formulas_and_escapes_them(tmp_path: Path) -> None:
    table = tmp_path / "in.csv"
    table.write_text("age,said\n" + "1,=1+1\n2,yes\n" * 200, encoding="utf-8")
    told = ["privatize", str(table), "--epsilon", "1", "--no-ledger", "--seed", "1", "--force", "-o"]
    done = CliRunner().invoke(app, [*told, str(tmp_path / "out.csv")])
    assert done.exit_code == 0
    assert "Column 'said'" in done.stderr
    assert "--escape-formulas" in done.stderr
    note = json.loads((tmp_path / f"out.csv{NOTE}").read_text(encoding="utf-8"))
    assert note["formulas"]["escaped"] is False
    labels = set(Source.open(tmp_path / "out.csv").read()["said"].to_pylist())
    assert labels == {"=1+1", "yes"}
    done = CliRunner().invoke(app, [*told, str(tmp_path / "out.csv"), "--escape-formulas"])
    assert "Column 'said'" not in done.stderr
    assert set(Source.open(tmp_path / "out.csv").read()["said"].to_pylist()) == {"'=1+1", "yes"}
    done = CliRunner().invoke(app, [*told, str(tmp_path / "out.parquet"), "--escape-formulas"])
    assert done.exit_code == 2


def test_limits_are_stated() -> None:
    assert state.LARGEST == 1 << 30
