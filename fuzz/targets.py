"""Each reader of dipriv as a target: how its cases are made, and what is done with them.

A case that is accepted is used, not only read: columns are turned into numbers, a reference privatizes a record.
"""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Protocol

import pyarrow as pa

from dipriv import Guarantee, Schema
from dipriv._tables import frames as tables
from dipriv._tables.arrow import distinct_labels
from dipriv._tables.column_types import TypeRules
from dipriv.dialect import Dialect
from dipriv.errors import DiprivError
from dipriv.guarantee import ReferenceFacts, ReferenceSource
from dipriv.guarantee.sidecar import SIDECAR_SUFFIX, read_sidecar
from dipriv.ledger import Ledger
from dipriv.sources._formats import format_named
from dipriv.sources._formats.registry import in_dialect
from dipriv.sources.batches import parquet_files
from dipriv.sources.files import File
from dipriv.sources.holdout import Split
from fuzz import references, seeds, whole
from fuzz.mutate import NUMBERS, TEXTS, any_value, mutate_bytes, mutate_plain


class Target(Protocol):
    """Makes a case from random numbers alone, and runs it: refusals are `DiprivError`s, all else is a fault."""

    def case(self, rng: Random) -> Any: ...

    def run(self, case: Any) -> None: ...


class Text:
    """CSV and TSV: mutated files, and cells of all sorts put together by rules."""

    def __init__(self, folder: Path) -> None:
        self.files = [text.encode() for text in seeds.CSV]

    def case(self, rng: Random) -> tuple[str, bytes]:
        format = rng.choice(("csv", "csv", "csv", "tsv"))
        if rng.random() < 0.4:
            return format, mutate_bytes(rng, rng.choice(self.files))
        separator, end = "\t" if format == "tsv" else ",", rng.choice(("\n", "\r\n", "\r"))
        width = rng.choice((1, 1, 2, 3, 5))
        names = [rng.choice(("a", "b", "c", f"x{place}", rng.choice(TEXTS))) for place in range(width)]
        kinds = [rng.choice((_whole, _real, _word, _time, _anything)) for _ in range(width)]
        lines = [names] + [
            [_anything(rng) if rng.random() < 0.03 else kind(rng) for kind in kinds] for _ in range(rng.randrange(6))
        ]
        if lines[1:] and rng.random() < 0.1:
            rng.choice(lines).append("1")
        text = end.join(separator.join(_quoted(rng, cell) for cell in line) for line in lines)
        return format, text.encode("utf-8", "surrogatepass")

    def run(self, case: tuple[str, bytes]) -> None:
        format, content = case
        _use(_source(f"t.{format}", format, content))


class Dialects(Text):
    """Text files in other encodings, with what their keeper says about them, right or wrong."""

    encodings = ("utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32", "ascii", "shift-jis")

    def case(self, rng: Random) -> Any:
        format, content = super().case(rng)
        text = content.decode("utf-8", "replace")
        if rng.random() < 0.5:
            text = text.translate(str.maketrans(rng.choice((",", "\t")) + ".", rng.choice(";|:") + ","))
        given: dict[str, Any] = {
            "separator": rng.choice((None, None, ",", ";", "tab", "|", ":", "x", "")),
            "quote": rng.choice((None, None, '"', "'")),
            "decimal": rng.choice((None, ".", ",")),
            "encoding": rng.choice((None, None, *self.encodings, "base64")),
            "missing": rng.choice(([], ["-9"], [""])),
            "dates": rng.choice((None, "ymd", "dmy", "mdy")),
            "skip": rng.choice((None, None, 0, 1, 2, 9999)),
        }
        return format, text.encode(rng.choice(self.encodings), "replace"), given

    def run(self, case: Any) -> None:
        format, content, given = case
        dialect = Dialect.from_dict(given)
        known = in_dialect(format_named(format), dialect)
        file = File(f"t.{format}", known, buffer=pa.py_buffer(content))
        _numbers(tables.read(file.read(TypeRules.of({}, {}, dialect))))


class Workbook:
    """Excel workbooks: mutated files, and files with one mutated part."""

    def __init__(self, folder: Path) -> None:
        self.files = seeds.read(folder, "excel")

    def case(self, rng: Random) -> bytes:
        content = rng.choice(self.files)
        if rng.random() < 0.3:
            return mutate_bytes(rng, content)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = {name: archive.read(name) for name in sorted(archive.namelist())}
        name = rng.choice([name for name in parts for _ in range(5 if "sheet" in name else 1)])
        parts[name] = mutate_bytes(rng, parts[name])
        changed = io.BytesIO()
        with zipfile.ZipFile(changed, "w") as archive:
            for part, text in parts.items():
                archive.writestr(zipfile.ZipInfo(part), text)
        return changed.getvalue()

    def run(self, case: bytes) -> None:
        _use(_source("t.xlsx", "excel", case))


class Binary:
    """Files of one format, mutated."""

    def __init__(self, folder: Path, format: str) -> None:
        self.format = format
        self.files = seeds.read(folder, format)

    def case(self, rng: Random) -> bytes:
        return mutate_bytes(rng, rng.choice(self.files))

    def run(self, case: bytes) -> None:
        _use(_source(f"t.{self.format}", self.format, case))


class Folder:
    """A folder of Parquet files for the engines, one of them mutated, in a partition of any name."""

    def __init__(self, folder: Path) -> None:
        self.place, self.files = _own(folder), seeds.read(folder, "parquet")

    def case(self, rng: Random) -> tuple[str, bytes, bytes]:
        good = rng.choice(self.files)
        part = "" if rng.random() < 0.7 else f"g={rng.choice(TEXTS)}".replace("/", "").replace("\0", "")[:40]
        return part, good, mutate_bytes(rng, rng.choice((good, rng.choice(self.files))))

    def run(self, case: tuple[str, bytes, bytes]) -> None:
        part, *contents = case
        shutil.rmtree(self.place, ignore_errors=True)
        home = self.place / part.encode("utf-8", "replace").decode()
        home.mkdir(parents=True)
        for number, content in enumerate(contents):
            (home / f"{number}.parquet").write_bytes(content)
        source = parquet_files(str(self.place))
        _numbers(tables.read(pa.Table.from_batches(source.batches(source.schema.names), source.schema)))


class Kept:
    """Splits that were saved."""

    def __init__(self, folder: Path) -> None:
        self.file = _own(folder) / "split.json"
        self.plain = {"holdout": 0.25, "key": "0f" * 32, "by": "id"}

    def case(self, rng: Random) -> bytes:
        text = _json(mutate_plain(rng, self.plain, 4), rng)
        return mutate_bytes(rng, text) if rng.random() < 0.3 else text

    def run(self, case: bytes) -> None:
        self.file.write_bytes(case)
        split = Split.load(self.file)
        split.save(self.file)
        if Split.load(self.file) != split:
            raise AssertionError("a split that was accepted is written and read as another")
        split.held_out(tables.read(pa.table({"id": ["a", "7"], "x": [1, 2]})))


class Declared:
    """Schemas: mutated plain data, written out, and mutated text."""

    kinds: tuple[dict[str, Any], ...] = (
        {"kind": "continuous", "lower": 0.0, "upper": 10},
        {"kind": "discrete", "levels": [1, 2, 2.5]},
        {"kind": "discrete", "step": 0.25},
        {"kind": "mixed", "atoms": [0.0, 1.0], "lower": -5, "unit": 1.0},
        {"kind": "categorical", "levels": ["a", "b", "=c"], "encoding": "codes"},
        {"kind": "datetime", "resolution": "day"},
    )

    def __init__(self, folder: Path, write: Callable[[Any], str], read: Callable[[str], Schema]) -> None:
        self.write, self.read = write, read

    def case(self, rng: Random) -> str:
        plain: Any = {
            rng.choice(("a", "b", "a.b", "", "x y")): rng.choice(self.kinds) for _ in range(rng.randint(1, 3))
        }
        if rng.random() < 0.8:
            plain = mutate_plain(rng, plain)
        try:
            text = self.write(plain)
        except (TypeError, ValueError, RecursionError, AttributeError):  # not everything can be written
            text = str(plain)[:5000] if not isinstance(plain, (dict, list)) else "[" * 2000
        if rng.random() < 0.3:
            text = mutate_bytes(rng, text.encode("utf-8", "replace")).decode("utf-8", "replace")
        return text

    def run(self, case: str) -> None:
        found = self.read(case)
        if Schema.from_json(found.to_json()) != found or Schema.from_toml(found.to_toml()) != found:
            raise AssertionError("a schema that was accepted is written and read as another")
        repr(found)


class Note:
    """The note beside a release."""

    def __init__(self, folder: Path) -> None:
        self.plain = json.loads((folder / "note.json").read_text(encoding="utf-8"))
        self.released = _own(folder) / "t.csv"

    def case(self, rng: Random) -> bytes:
        text = _json(mutate_plain(rng, self.plain, 5), rng)
        return mutate_bytes(rng, text) if rng.random() < 0.3 else text

    def run(self, case: bytes) -> None:
        Path(f"{self.released}{SIDECAR_SUFFIX}").write_bytes(case)
        if (found := read_sidecar(self.released)) is not None:
            str(found.guarantee), json.dumps(found.to_dict(), allow_nan=False)


class Book:
    """Ledgers: mutated files, and files whose entries, tables and views say what they should not."""

    def __init__(self, folder: Path) -> None:
        self.file, self.seed = _own(folder) / "ledger.db", seeds.read(folder, "ledger")[0]

    def case(self, rng: Random) -> tuple[str, Any]:
        if rng.random() < 0.5:
            return "bytes", mutate_bytes(rng, self.seed, 12)
        return "statements", [_statement(rng) for _ in range(rng.randint(1, 3))]

    def run(self, case: tuple[str, Any]) -> None:
        kind, content = case
        for ending in ("-journal", "-wal", "-shm"):
            Path(f"{self.file}{ending}").unlink(missing_ok=True)
        self.file.write_bytes(content if kind == "bytes" else self.seed)
        if kind == "statements":
            with sqlite3.connect(self.file, isolation_level=None) as link:
                link.execute("PRAGMA synchronous = OFF")
                link.execute("PRAGMA ignore_check_constraints = ON")
                for statement, values in content:
                    with suppress(sqlite3.Error, OverflowError):
                        link.execute(statement, values)
            link.close()
        with Ledger.open(self.file) as book:
            for found in book.datasets():
                str(found.left), found.power()
                for record in book.records(found.name):
                    f"{record.started:%Y} {record.guarantee}"
                book.split_key(found.name)
            book.preview(names=(), table=seeds.VISITS, suggestion="new")
            book.preview(names=("new",), table=replace(seeds.VISITS, content=bytes(16)), suggestion=None, is_new=True)
            book.commit(book.reserve("people", 0.1, PROMISE), 1)


PROMISE = Guarantee(0.1, "laplace", ReferenceFacts(ReferenceSource.KNOWN, "known law"))
_COLUMNS = {
    "dipriv_ledger": ("id", "version", "fingerprint_key", "created"),
    "dipriv_datasets": ("id", "name", "budget", "split_key", "holdout", "split_by", "created"),
    "dipriv_fingerprints": ("fingerprint", "dataset", "rows"),
    "dipriv_contents": (
        "id",
        "dataset",
        "rows",
        "content",
        "row_order",
        "is_ordered",
        "row_sketch",
        "repeats",
        "created",
    ),
    "dipriv_columns": ("id", "content", "digest", "n_distinct", "sketch", "tags", "label"),
    "dipriv_samples": ("id", "content", "way", "sample"),
    "dipriv_distinct": ("id", "dataset", "other", "content", "created"),
    "dipriv_releases": ("number", "dataset", "epsilon", "state", "started", "finished", "rows", "guarantee", "output"),
}
_DEFINITIONS = (
    "CREATE TRIGGER t AFTER INSERT ON dipriv_releases BEGIN DELETE FROM dipriv_releases; END",
    "DROP TABLE dipriv_fingerprints",
    "CREATE VIEW v AS SELECT * FROM dipriv_releases",
    "ALTER TABLE dipriv_datasets RENAME TO gone",
    "ALTER TABLE dipriv_releases ADD COLUMN more TEXT",
    "CREATE TABLE other (x)",
    "DELETE FROM dipriv_ledger",
    "PRAGMA user_version = 7",
    "PRAGMA journal_mode = WAL",
)


def make(name: str, folder: Path) -> Target:
    """The target of this name; seeds are in the folder."""
    return _MAKERS[name](folder)


_MAKERS: dict[str, Callable[[Path], Target]] = {
    "csv": Text,
    "csv in a dialect": Dialects,
    "excel": Workbook,
    "stata": lambda folder: Binary(folder, "stata"),
    "spss": lambda folder: Binary(folder, "spss"),
    "xport": lambda folder: Binary(folder, "xport"),
    "jsonl": lambda folder: Binary(folder, "jsonl"),
    "orc": lambda folder: Binary(folder, "orc"),
    "parquet": lambda folder: Binary(folder, "parquet"),
    "parquet folder": Folder,
    "arrow": lambda folder: Binary(folder, "arrow"),
    "schema in TOML": lambda folder: Declared(folder, _toml, Schema.from_toml),
    "schema in JSON": lambda folder: Declared(folder, json.dumps, Schema.from_json),
    "exported reference": references.Reference,
    "note": Note,
    "saved split": Kept,
    "ledger": Book,
    "privatize": whole.Whole,
}
NAMES = tuple(_MAKERS)


def _source(name: str, format: Any, content: bytes) -> File:
    return File(name, format_named(format), buffer=pa.py_buffer(content))


def _use(source: File) -> None:
    _numbers(tables.read(source.read()))


def _numbers(found: tables.Table) -> None:
    """Turn every column that dipriv takes into numbers."""
    for name in found.names:
        with suppress(DiprivError):
            column = found.column(name)
            labels = distinct_labels(found.array(name)) if column.storage.family == "label" else None
            found.cells(name, labels)


def _statement(rng: Random) -> tuple[str, tuple[Any, ...]]:
    if rng.random() < 0.2:
        return rng.choice(_DEFINITIONS), ()
    table = rng.choice(list(_COLUMNS))
    value = any_value(rng)
    if isinstance(value, (list, dict)):
        value = rng.choice((b"", b"x" * 31, "{}", "[]", "[" * 3000, '{"unit": 3}', '"id"'))
    value = rng.choice((value, value, str(value), rng.choice(NUMBERS)))
    if isinstance(value, int) and abs(value) >= 1 << 63:
        value = float(value) if abs(value) < 1e300 else str(value)
    return f"UPDATE {table} SET {rng.choice(_COLUMNS[table])} = ?", (value,)


def _own(folder: Path) -> Path:
    """A folder for files of this process."""
    import tempfile

    return Path(tempfile.mkdtemp(dir=folder))


def _json(plain: Any, rng: Random) -> bytes:
    try:
        return json.dumps(plain).encode()
    except (TypeError, ValueError, RecursionError):  # not everything can be written
        return b"[" * rng.choice((10, 1000, 100_000))


def _toml(plain: Any) -> str:
    import tomli_w

    return tomli_w.dumps(plain)


def _quoted(rng: Random, cell: str) -> str:
    chance = rng.random()
    if chance < 0.8 and not any(sign in cell for sign in ',"\n\r\t'):
        return cell
    return cell if chance < 0.05 else '"' + cell.replace('"', '""') + '"'


def _whole(rng: Random) -> str:
    return str(rng.randint(-20, 20)) if rng.random() < 0.9 else str(rng.choice(NUMBERS))


def _real(rng: Random) -> str:
    return f"{rng.uniform(-5, 5):.3g}" if rng.random() < 0.9 else str(rng.choice(NUMBERS))


def _word(rng: Random) -> str:
    return rng.choice(("a", "b", "", "Köln")) if rng.random() < 0.9 else rng.choice(TEXTS)


def _time(rng: Random) -> str:
    day = f"{rng.randint(1600, 2300)}-{rng.randint(1, 13):02}-{rng.randint(1, 31):02}"
    return rng.choice((day, f"{day} {rng.randint(0, 24):02}:00:00", f"{day}T00:00:00Z", "12:30:00"))


def _anything(rng: Random) -> str:
    return str(rng.choice((*TEXTS, *NUMBERS)))
