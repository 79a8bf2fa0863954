"""Exported references that somebody crafted: each is refused with an error that says what is wrong, soon and in little
memory, and none runs anything.

Those that are made at random are in test_fuzz.py and benchmarks/fuzz.
"""

from __future__ import annotations

import io
import json
import math
import os
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dipriv
from dipriv import _serialization as state
from dipriv.errors import InputError
from dipriv.guarantee import Model
from dipriv.references import Known
from dipriv.release import local
from tests.security.support import FITS, PEOPLE, RNG, little

Plain = dict[str, Any]
Arrays = dict[str, np.ndarray]


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
    ("boxes", "Boxes", put("Boxes", "starts", lambda a: a * 1000)),
    ("boxes", "Boxes", put("Boxes", "starts", lambda a: a[:1])),
    ("boxes", "Boxes", put("Boxes", "top", lambda a: a[::-1].copy())),
    ("boxes", "Boxes", put("Boxes", "top", at(3, np.nan))),
    ("boxes", "Boxes", put("Boxes", "top", lambda a: a[:-5])),
    ("boxes", "Boxes", put("Boxes", "rest", lambda a: a[:, :, ::-1].copy())),
    ("boxes", "Boxes", put("Boxes", "rest", at((0, 0, 0), -np.inf))),
    ("boxes", "Boxes", put("Boxes", "edges", lambda a: np.append(a, a))),
    ("boxes", "fit together", put("Boxes", "rest", lambda a: np.concatenate([a, a], axis=1))),
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
    ("boxes", NOT_OURS, put("Boxes", "top", lambda a: a.astype(np.float32))),
    ("boxes", NOT_OURS, put("Boxes", "starts", lambda a: a.astype(np.uint64))),
    ("joint", "JointKernel", say("JointKernel", bits=60)),
    ("joint", "JointKernel", put("JointKernel", "weights", lambda a: a * 10**9)),
    ("joint", "JointKernel", put("JointKernel", "weights", lambda a: np.ones(10**5, dtype=np.int64))),
    ("joint", "JointKernel", put("JointKernel", "weights", lambda a: np.arange(1, 2000))),
    ("cap", "CapKernel", say("CapKernel", cosine=(1 << 32) - 9)),
    ("cap", "CapKernel", say("CapKernel", cosine=-1)),
    ("cap", "CapKernel", say("CapKernel", mixing=(1 << 64) - 1)),
    ("cap", "CapKernel", put("CapKernel", "takes_part", lambda a: a * 2)),
    ("cap", "CapKernel", put("CapKernel", "takes_part", lambda a: np.ones(10**5, dtype=np.int64))),
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


def test_an_index_in_an_older_file_is_not_used(exported: dict[str, bytes]) -> None:
    plain, arrays = opened(exported["boxes"])
    arrays["a99"] = np.full(10, 10**6)  # beyond all boxes
    fields = {"starts": {"array": "a99"}, "origin": 0.0, "cells_per_unit": 1.0, "by_order": False}
    first(plain, "Boxes")["guide"] = {"class": "Guide", "fields": fields}
    crafted, true = local.read(closed(plain, arrays), seed=3), local.read(exported["boxes"], seed=3)
    pd.testing.assert_frame_equal(crafted.privatize(PEOPLE[["age", "pay"]]), true.privatize(PEOPLE[["age", "pay"]]))
    first(plain, "Boxes")["other"] = first(plain, "Boxes").pop("guide")
    refuses(closed(plain, arrays), NOT_OURS)  # control: another field that the class does not have


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

NOT_LOCAL = "not that of a record"
CLAIMS: list[tuple[dict[str, Any], str]] = [
    ({"epsilon": 0.5}, "spends more"),
    ({"epsilon": math.nan}, "not a finite number"),
    ({"epsilon": 1e300}, "outside"),
    ({"epsilon": "1"}, "as a number"),
    ({"epsilon": True}, "as a number"),
    ({"epsilon": "inf"}, "not a finite number"),
    ({"epsilon": "inf", "model": "none"}, NOT_LOCAL),
    ({"delta": 1e-9}, NOT_LOCAL),
    ({"model": "central"}, NOT_LOCAL),
    ({"model": "everybody"}, "model is none of"),
    ({"unit": {"kind": "row"}}, NOT_LOCAL),
    ({"unit": {"kind": "rows-of-one-value", "column": "a", "max_rows": 3}}, NOT_LOCAL),
    ({"neighbouring": "substitute-one"}, NOT_LOCAL),
    ({"unprotected": [{"kind": "fit-rows"}]}, NOT_LOCAL),
    ({"assumptions": []}, NOT_LOCAL),
    ({"legacy": [{"field": "protects", "text": "every row of everybody, always"}]}, NOT_LOCAL),
    ({"kernel": "laplace\n  Attacker: powerless"}, "printable line"),
    ({"reference": {"source": "known", "description": "known law\x1b[2J"}}, "printable line"),
    ({"kernel": "x" * 100_000}, "printable line"),
    ({"more": 1}, "unknown"),
]


@pytest.mark.parametrize(("said", "told"), CLAIMS, ids=[str(said)[:40] for said, _ in CLAIMS])
@pytest.mark.parametrize("name", ["gamma", "joint", "cap", "labels"])
def test_claims_that_the_kernel_does_not_keep(
    name: str, said: dict[str, Any], told: str, exported: dict[str, bytes]
) -> None:
    plain, arrays = opened(exported[name])
    guarantee = content(plain)["guarantee"]["guarantee"]
    if said == {"epsilon": 0.5}:
        said = {"epsilon": guarantee["epsilon"] * (1 - 1e-12)}
    guarantee.update(said)
    refuses(closed(plain, arrays), told)


SENTENCES: dict[str, Any] = {
    "protects": "the owner of a record, from everyone else, the collector included",
    "kernel": "laplace",
    "reference": "known law",
    "conditions": {"tuple": ["the record is privatized once, where it is: each further release of it adds its ε"]},
    "secure_randomness": True,
    "model": "local",
    "unit": "one record",
    "neighbours": "any two records",
    "delta": 0.0,
}
"""What format 2 of exported references said of a guarantee."""
FORMER_CLAIMS: list[tuple[dict[str, Any], str]] = [
    ({"epsilon": 0.5}, "spends more"),
    ({"delta": 1e-9}, NOT_LOCAL),
    ({"model": "central"}, NOT_LOCAL),
    ({"protects": "every row of everybody, always"}, NOT_LOCAL),
    ({"unit": "nobody"}, NOT_LOCAL),
    ({"neighbours": "equal records"}, NOT_LOCAL),
    ({"conditions": {"tuple": []}}, NOT_LOCAL),
    ({"kernel": "laplace\n  Attacker: powerless"}, "printable line"),
]


def in_format_2(data: bytes, said: dict[str, Any]) -> bytes:
    plain, arrays = opened(data)
    parts = content(plain)
    fields = {"epsilon": parts["guarantee"]["guarantee"]["epsilon"]} | SENTENCES | said
    parts |= {"format": 2, "guarantee": {"class": "Guarantee", "fields": fields}}
    return closed({"pairs": [list(pair) for pair in parts.items()]}, arrays)


@pytest.mark.parametrize("name", ["gamma", "joint", "cap", "labels"])
def test_format_2_is_read_as_facts(name: str, exported: dict[str, bytes]) -> None:
    found = local.read(in_format_2(exported[name], {})).guarantee
    assert found.epsilon == local.read(exported[name]).guarantee.epsilon
    assert (found.model, found.legacy) == (Model.LOCAL, ())


@pytest.mark.parametrize(("said", "told"), FORMER_CLAIMS, ids=[str(said)[:40] for said, _ in FORMER_CLAIMS])
def test_claims_in_format_2(said: dict[str, Any], told: str, exported: dict[str, bytes]) -> None:
    refuses(in_format_2(exported["gamma"], said), told)


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
        ("cap", "CapKernel", None),
        ("labels", "Transition", None),
    ):
        plain, arrays = opened(exported[name])
        if edit is not None:
            edit(plain, arrays)
        elif of == "JointKernel":
            fields = first(plain, of)
            fields["inside"] += fields["inside"] // 10**9
        elif of == "CapKernel":
            fields = first(plain, of)
            fields["mixing"] += fields["mixing"] // 10**8
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
        assert loaded.privatize(PEOPLE[columns]).shape == PEOPLE[columns].shape


def test_labels_of_times_are_exported(tmp_path: Path) -> None:
    days = pd.to_datetime(["2020-01-01", "2020-01-02"])
    frame = pd.DataFrame({"day": pd.Categorical(RNG.choice(days, 50), categories=days)})
    dipriv.DIP(1.0, public=frame).fit(frame).export_local(tmp_path / "r")
    loaded = local.load_local(tmp_path / "r")
    assert set(loaded.privatize(frame)["day"]) <= set(days)


def test_limits_are_stated() -> None:
    assert state.MAX_BYTES == 1 << 30
