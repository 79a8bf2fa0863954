"""Tables that come in batches: lazy polars queries, Arrow data sets, folders of Parquet files, functions.

Each can be read again and again, and gives Arrow batches of one schema. Messages name files, columns and numbers of
batches, never a cell.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from dipriv._tables.arrow import shown_type
from dipriv._tables.presentation import Presentation, TextColumns
from dipriv.errors import InputError
from dipriv.sources._errors import translate_errors
from dipriv.sources._untrusted import check_width, rows_at_once, validate_batch

if TYPE_CHECKING:
    import pyarrow.dataset as ds

Read: TypeAlias = Callable[[list[str]], Iterator[pa.RecordBatch]]
_REMEDY = "Read it by itself to see what is wrong: the original message is not shown, as it may hold cells."


@dataclass(frozen=True, eq=False)
class BatchSource:
    """A table that comes in batches; `categories` are those that the types of columns list."""

    name: str
    schema: pa.Schema = field(repr=False)
    read: Read = field(repr=False)
    categories: Mapping[str, pa.Array] = field(repr=False, default_factory=dict)
    presentation: Presentation = field(repr=False, default_factory=Presentation)
    text_columns: TextColumns = field(repr=False, default_factory=TextColumns)
    in_folders: tuple[str, ...] = ()
    """The columns that names of folders give, such as year=2025."""

    def __post_init__(self) -> None:
        names = self.schema.names
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(f"column name {twice[0]!r} occurs twice in {self.name}.", "Rename one of them.")
        if not names:
            raise InputError(f"{self.name} has no columns.", "Give a table with at least one column.")

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, where that is known beforehand."""
        return None

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows of these columns from the start; refuses a batch with other columns or types."""
        expected = pa.schema([self.schema.field(name) for name in names])
        for number, batch in enumerate(self.read(list(names)), start=1):
            found = {column.name: column.type for column in batch.schema}
            for column in expected:
                if found.get(column.name) != column.type:
                    what = f"is {shown_type(found[column.name])}" if column.name in found else "is missing"
                    was = shown_type(column.type)
                    raise InputError(
                        f"column {column.name!r} {what} in batch {number} of {self.name}; it was {was}.",
                        "Give every batch the same columns and types.",
                    )
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays([batch.column(name) for name in names], schema=expected)


def lazy_frame(frame: Any) -> BatchSource:
    import polars as pl

    if not hasattr(frame, "collect_batches"):
        raise InputError(
            f"polars {pl.__version__} cannot give the rows of a LazyFrame in batches.",
            "Upgrade polars, or write the query to Parquet files (sink_parquet) and give their path.",
        )
    name = "the LazyFrame"
    with translate_errors(name, (pl.exceptions.PolarsError,), _REMEDY):
        types = frame.collect_schema()
        schema = pl.DataFrame(schema=types).to_arrow().schema
        plan = frame.explain(optimized=False)

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        with translate_errors(name, (pl.exceptions.PolarsError,), _REMEDY):
            for part in frame.select(names).collect_batches(maintain_order=True, lazy=True, engine="streaming"):
                yield from part.to_arrow().to_batches()

    listed = {
        column: pa.array(kind.categories.to_list(), pa.large_string())
        for column, kind in types.items()
        if isinstance(kind, pl.Enum)
    }
    in_folders = tuple(column for column in types if _names_folders(column, plan))
    return BatchSource(name, _bare(schema), read, listed, in_folders=in_folders)


def _names_folders(column: str, paths: str) -> bool:
    """Whether a folder in these paths is called COLUMN=value; a file itself may be."""
    written = [name for name in {column, quote(column), quote(column, safe="")} if f"{name}=" in paths]
    names = "|".join(map(re.escape, written))
    return bool(written) and re.search(rf"[/\\\[ ](?:{names})=[^/\\\n]*[/\\]", paths) is not None


def parquet_files(path: str) -> BatchSource:
    """The Parquet files at a path: a file, a folder with all that is in it, or a pattern such as people/*.parquet.

    Arrow's data sets decompress whole row groups of any size; here files are read a few rows at a time.
    """
    place = Path(path)
    files = [path] if place.exists() else sorted(glob.glob(path, recursive=True))
    if not files:
        raise InputError(f"no file is at {path!r}.", "Check the path; * stands for any part of a name.")
    with translate_errors(path, remedy=_REMEDY):
        import pyarrow.dataset as ds  # takes longer than a small file

        data = ds.dataset(path if place.is_dir() else files, format="parquet", partitioning="hive")
        check_width(path, len(data.schema))
        _check_files(data, path)

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        with translate_errors(path, remedy=_REMEDY):
            for fragment in data.get_fragments():
                for batch in _fragment_batches(fragment, data.schema, names):
                    yield validate_batch(path, batch)

    return BatchSource(path, _bare(data.schema), read, in_folders=_in_folders(data))


def _in_folders(data: ds.Dataset) -> tuple[str, ...]:
    """The columns that names of folders give. A data set with a filter does not list its files."""
    from pyarrow.dataset import get_partition_keys

    if children := getattr(data, "children", ()):
        return tuple(dict.fromkeys(name for child in children for name in _in_folders(child)))
    try:
        fragments = data.get_fragments()
        return tuple(
            dict.fromkeys(name for part in fragments for name in get_partition_keys(part.partition_expression))
        )
    except ValueError:
        partitioning = getattr(data, "partitioning", None)
        if partitioning is not None:
            return tuple(partitioning.schema.names)
        paths = "\n".join(f"/{path}" for path in getattr(data, "files", ()))
        return tuple(name for name in data.schema.names if _names_folders(name, paths))


def _fragment_batches(fragment: Any, schema: pa.Schema, names: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows of one file, with the values that the names of its folders give."""
    from pyarrow.dataset import get_partition_keys

    given = get_partition_keys(fragment.partition_expression)
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


def data_set(data: ds.Dataset, name: str = "the data set") -> BatchSource:
    with translate_errors(name, (), _REMEDY):
        _check_files(data, name)

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        with translate_errors(name, (), _REMEDY):
            # with threads Arrow reads on while nobody asks, without bound
            batches = data.to_batches(columns=names, batch_readahead=2, fragment_readahead=1, use_threads=False)
            for batch in batches:
                yield validate_batch(name, batch)

    return BatchSource(name, _bare(data.schema), read, in_folders=_in_folders(data))


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
            here, there = (shown_type(types[odd[0]]) if odd[0] in types else "missing" for types in (own, first))
            raise InputError(
                f"{name}: column {odd[0]!r} is {here} in {Path(getattr(fragment, 'path', 'a part')).name}, "
                f"{there} in the first file ({len(odd)} columns differ).",
                "Write all files with the same columns and types, or give only those that have them.",
            )


def batch_function(function: Callable[[], Any]) -> BatchSource:
    name = "what the function returns"

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        return _checked(function())

    one, other = function(), function()
    if one is other and isinstance(one, Iterator):
        raise InputError("the function returns one and the same iterator.", "Return a fresh one at each call.")
    batch = next(_checked(one), None)
    if batch is None:
        raise InputError("the function returns no batch.", "Return an iterator of record batches with some rows.")
    return BatchSource(name, _bare(batch.schema), read)


def _checked(batches: Any) -> Iterator[pa.RecordBatch]:
    if not hasattr(batches, "__iter__") or isinstance(batches, pa.Table):
        raise InputError(
            f"expected an iterator from the function, got {type(batches).__name__}.",
            "Return a fresh iterator of pyarrow.RecordBatch, such as table.to_batches().",
        )
    for batch in batches:
        if not isinstance(batch, pa.RecordBatch):
            raise InputError(
                f"expected record batches from the function's iterator, got {type(batch).__name__}.",
                "Let it yield pyarrow.RecordBatch.",
            )
        yield batch


def _bare(schema: pa.Schema) -> pa.Schema:
    return pa.schema([column.remove_metadata() for column in schema])
