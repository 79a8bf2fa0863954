"""Where a stream's rows come from: lazy polars queries, Arrow data sets, Parquet files, or a function of batches.

A source can be read again and again, and gives Arrow batches of one schema. Messages name files, columns and numbers of
batches, never a cell.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import narwhals as nw
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from dipriv._tables.frames import Column, Table
from dipriv.errors import DiprivError, InputError
from dipriv.sources._untrusted import check_width, checked, rows_at_once

Read: TypeAlias = Callable[[list[str]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, eq=False)
class Source:
    """A table that comes in batches; `categories` are those that the types of columns list."""

    name: str
    schema: pa.Schema = field(repr=False)
    read: Read = field(repr=False)
    categories: Mapping[str, pa.Array] = field(repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        names = self.schema.names
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(f"column name {twice[0]!r} occurs twice in {self.name}.", "Rename the columns apart.")
        if not names:
            raise InputError(f"{self.name} has no columns.", "Give a table with at least one column.")

    @property
    def empty(self) -> Table:
        """A table of no rows, for what is public: names and types."""
        return Table(self.schema.empty_table(), "pyarrow", tuple(self.schema.names), 0)

    def facts(self, names: Sequence[str]) -> list[Column]:
        """The public facts of some columns."""
        found = [self.empty.column(name) for name in names]
        return [
            replace(column, labels=listed, label_values=tuple(listed.to_pylist()))
            if (listed := self.categories.get(column.name)) is not None
            else column
            for column in found
        ]

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows of these columns from the start; refuses a batch with other columns or types."""
        expected = pa.schema([self.schema.field(name) for name in names])
        for number, batch in enumerate(self.read(list(names)), start=1):
            found = {column.name: column.type for column in batch.schema}
            for column in expected:
                if found.get(column.name) != column.type:
                    what = f"is {found[column.name]}" if column.name in found else "is missing"
                    raise InputError(
                        f"column {column.name!r} {what} in batch {number} of {self.name}; it was {column.type}.",
                        "Give every batch the same columns and types.",
                    )
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays([batch.column(name) for name in names], schema=expected)


def open_source(source: Any) -> Source:
    """What can be streamed as a `Source`."""
    if nw.dependencies.is_polars_lazyframe(source):
        return _lazy_frame(source)
    if isinstance(source, str | Path):
        return _parquet(str(source))
    if isinstance(source, ds.Dataset):
        return _data_set(source, "the data set")
    if callable(source) and not isinstance(source, type):
        return _function(source)
    raise InputError(
        f"a {type(source).__name__} cannot be read in several passes.",
        "Give a polars LazyFrame, a pyarrow Dataset, a path of Parquet files, or a function that returns a fresh "
        "iterator of record batches; tables in memory are for dipriv.privatize.",
    )


def _lazy_frame(frame: Any) -> Source:
    import polars as pl

    if not hasattr(frame, "collect_batches"):
        raise InputError(
            f"polars {pl.__version__} cannot give the rows of a LazyFrame in batches.",
            "Upgrade polars, or write the query to Parquet files (sink_parquet) and give their path.",
        )
    name = "the LazyFrame"
    with _told(name, pl.exceptions.PolarsError):
        types = frame.collect_schema()
        schema = pl.DataFrame(schema=types).to_arrow().schema

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        with _told(name, pl.exceptions.PolarsError):
            for part in frame.select(names).collect_batches(maintain_order=True, lazy=True, engine="streaming"):
                yield from part.to_arrow().to_batches()

    listed = {
        column: pa.array(kind.categories.to_list(), pa.large_string())
        for column, kind in types.items()
        if isinstance(kind, pl.Enum)
    }
    return Source(name, _bare(schema), read, listed)


def _parquet(path: str) -> Source:
    """The Parquet files at a path: a file, a folder with all that is in it, or a pattern such as people/*.parquet.

    Arrow's data sets unpack whole row groups, whatever these unfold to; here files are read by few rows.
    """
    place = Path(path)
    files = [path] if place.exists() else sorted(glob.glob(path, recursive=True))
    if not files:
        raise InputError(f"no file is at {path!r}.", "Check the path; * stands for any part of a name.")
    with _told(path, Exception):
        data = ds.dataset(path if place.is_dir() else files, format="parquet", partitioning="hive")
        check_width(path, len(data.schema))
        _check_files(data, path)

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        with _told(path, Exception):
            for fragment in data.get_fragments():
                for batch in _fragment_batches(fragment, data.schema, names):
                    yield checked(path, batch)

    return Source(path, _bare(data.schema), read)


def _fragment_batches(fragment: Any, schema: pa.Schema, names: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows of one file, with the values that the names of its folders give."""
    given = ds.get_partition_keys(fragment.partition_expression)
    own = [name for name in names if name not in given]
    with fragment.filesystem.open_input_file(fragment.path) as stream:
        file = pq.ParquetFile(stream)
        for batch in file.iter_batches(rows_at_once(file, stream), columns=own, use_threads=False):
            cells = {name: batch.column(name) for name in own}
            cells |= {
                name: pa.repeat(pa.scalar(given[name], schema.field(name).type), batch.num_rows)
                for name in names
                if name in given
            }
            yield pa.RecordBatch.from_arrays([cells[name] for name in names], names=names)


def _data_set(data: ds.Dataset, name: str) -> Source:
    with _told(name):
        _check_files(data, name)

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        with _told(name):
            # with threads Arrow reads on while nobody asks, without bound
            batches = data.to_batches(columns=names, batch_readahead=2, fragment_readahead=1, use_threads=False)
            for batch in batches:
                yield checked(name, batch)

    return Source(name, _bare(data.schema), read)


def _check_files(data: ds.Dataset, name: str) -> None:
    """All files have the columns and types of the first: Arrow would fill in nulls, or leave columns out."""
    try:
        fragments = list(data.get_fragments())
    except ValueError:  # a data set with a filter does not list its files
        return
    schemas = [{column.name: column.type for column in fragment.physical_schema} for fragment in fragments]
    for fragment, own in zip(fragments, schemas, strict=True):
        first = schemas[0]
        if odd := [column for column in {**first, **own} if first.get(column) != own.get(column)]:
            here, there = (str(types.get(odd[0], "missing")) for types in (own, first))
            raise InputError(
                f"{name}: column {odd[0]!r} is {here} in {Path(getattr(fragment, 'path', 'a part')).name}, "
                f"{there} in the first file ({len(odd)} columns differ).",
                "Write all files with the same columns and types, or give only those that have them.",
            )


def _function(function: Callable[[], Any]) -> Source:
    name = "what the function returns"

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        return _checked(function())

    one, other = function(), function()
    if one is other and isinstance(one, Iterator):
        raise InputError("the function returns one and the same iterator.", "Return a fresh one at each call.")
    batch = next(_checked(one), None)
    if batch is None:
        raise InputError("the function returns no batch.", "Return an iterator of record batches with some rows.")
    return Source(name, _bare(batch.schema), read)


def _checked(batches: Any) -> Iterator[pa.RecordBatch]:
    if not hasattr(batches, "__iter__") or isinstance(batches, pa.Table):
        raise InputError(
            f"the function returns a {type(batches).__name__}.",
            "Return a fresh iterator of pyarrow.RecordBatch, such as table.to_batches().",
        )
    for batch in batches:
        if not isinstance(batch, pa.RecordBatch):
            raise InputError(
                f"the function's iterator gives a {type(batch).__name__}.", "Let it give pyarrow.RecordBatch."
            )
        yield batch


def _bare(schema: pa.Schema) -> pa.Schema:
    return pa.schema([column.remove_metadata() for column in schema])


@contextmanager
def _told(name: str, *kinds: type[Exception]) -> Iterator[None]:
    """Errors of Arrow, polars and the system, told without their cells."""
    try:
        yield
    except DiprivError:
        raise
    except (pa.ArrowException, OSError, UnicodeError, *kinds) as error:
        raise InputError(
            f"{name} cannot be read ({type(error).__name__}).",
            "Read it by itself to see what is wrong: the original message is not shown here, as it may hold cells.",
        ) from None
