"""Write released rows of any source to a file or a folder, with the guarantee and the data sheet beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dipriv._base.parallel import ahead
from dipriv._sinks import FileSink, FolderSink
from dipriv._tables import frames
from dipriv.errors import InputError
from dipriv.guarantee._checks import LONGEST_TEXT
from dipriv.guarantee.sidecar import PAGE_SUFFIX, SHEET_SUFFIX, SIDECAR_SUFFIX, Provenance, Sidecar
from dipriv.release.model_file import dump_model
from dipriv.release.result import Release, Written
from dipriv.release.sheet import Sheet, described, printable, why_no_model
from dipriv.sources.spark import ReleasedParts, is_spark_frame
from dipriv.sources.stream import ReleasedBatches

SAMPLE_ROWS = 200_000
"""How many matching rows of table and release are kept for a report, at most about."""
BLOCKS_AHEAD = 6
"""Released blocks that wait to be written, as writers take long for some of them: about a row group of Parquet."""


def write_release(
    release: Release[Any], path: str | Path, *, force: bool, format: str | None, escape_formulas: bool
) -> Written:
    """Write a release that was made; see `Release.write`."""
    sink: FileSink | FolderSink
    if is_spark_frame(release.data):
        if format is not None:
            raise InputError("format has no meaning for a folder of Parquet files.", "Leave it out.")
        sink = FolderSink.at(path, force=force, escape_formulas=escape_formulas)
    else:
        sink = FileSink.at(path, format, force=force, escape_formulas=escape_formulas)
        if isinstance(release.data, ReleasedBatches):
            sink.check(release.data.schema, release.n_rows, release.data.presentation)
        else:
            sink.check(_as_arrow(release.data).schema, release.n_rows)
    with sink:
        return deliver(release, sink)


def deliver(
    release: Release[Any], sink: FileSink | FolderSink, *, sample: bool = False, command: str | None = None
) -> Written:
    """Write the rows into an open sink, commit it with the files beside it, then commit the release in the ledger."""
    receipt = release.receipt
    with _saying_what_is_written(sink), receipt.failing():
        if isinstance(sink, FolderSink):
            written = _into_folder(release, sink, command)
        else:
            written = _into_file(release, sink, sample, command)
        receipt.commit(release.n_rows)
    return written


@contextmanager
def _saying_what_is_written(sink: FileSink | FolderSink) -> Iterator[None]:
    """An error says what there is of the output."""
    try:
        yield
    except BaseException as error:
        if isinstance(sink, FileSink) and sink.path is None:
            error.add_note("What the standard output received may be a part of the rows.")
        elif sink.is_written:
            error.add_note(f"{sink.name} is written; the files beside it may not be.")
        else:
            error.add_note(f"{sink.name} is not written.")
        raise


def _into_folder(release: Release[Any], sink: FolderSink, command: str | None) -> Written:
    if isinstance(release.data, ReleasedParts):
        release.data.write(sink.part)
    else:
        _shuffled_into(sink.part, release)
    sink.check_written(release.n_rows)
    sink.commit(files_beside(release, sink.path.name, command=command))
    return Written(sink.path)


def _shuffled_into(folder: Path, release: Release[Any]) -> None:
    """Write a released DataFrame, a file for each part."""
    from dipriv.sources.spark.frame import worker_errors
    from dipriv.sources.spark.workspace import jobs

    with jobs(release.data.sparkSession.sparkContext), worker_errors():
        release.data.write.option("compression", "zstd").parquet(f"file://{folder}")


def written_data(data: Any, written: Written | None) -> Any:
    """Released rows for use after their plan is closed: of Spark, those in the folder, which need no key."""
    if written is None or written.path is None or not (isinstance(data, ReleasedParts) or is_spark_frame(data)):
        return data
    from dipriv.sources.spark.files import uri_of

    session = data.session if isinstance(data, ReleasedParts) else data.sparkSession
    return session.read.parquet(uri_of(written.path))


def _into_file(release: Release[Any], sink: FileSink, sample: bool, command: str | None) -> Written:
    rate = min(1.0, SAMPLE_ROWS / max(1, release.n_rows))
    picks = np.random.default_rng(0)
    before: list[pa.Table] = []
    after: list[pa.Table] = []
    if isinstance(release.data, ReleasedBatches):
        for private, released in ahead(release.data.pairs(), BLOCKS_AHEAD):
            _write(sink, released)
            if sample:
                picked = pa.array(picks.random(private.rows) < rate)
                before.append(private.selected_rows().select(released.column_names).filter(picked))
                after.append(released.filter(picked))
    else:
        _write(sink, _as_arrow(release.data))
    formulas = dict(sink.formulas)
    sink.commit(files_beside(release, sink.name, formulas, sink.escape_formulas, command))
    pair = (pa.concat_tables(before), pa.concat_tables(after)) if before else None
    return Written(sink.path, formulas, sink.escape_formulas, pair)


def _as_arrow(data: Any) -> pa.Table:
    """A dataframe as an Arrow table; refuses columns that Arrow has no type for."""
    table = frames.read(data)
    found = pa.Table.from_batches([table.batch()])
    if lost := [name for name in table.names if name not in found.column_names]:
        raise InputError(
            f"column {lost[0]!r} has no Arrow type, and cannot be written.",
            "Convert it before the release, or write release.data yourself.",
        )
    return found


def _write(sink: FileSink, table: pa.Table) -> None:
    for batch in table.to_batches():
        sink.write(batch)


def sidecar_of(
    release: Release[Any],
    formulas: dict[str, int] | None = None,
    escaped: bool = False,
    command: str | None = None,
) -> Sidecar:
    """What the file beside an output says: nothing private is in it."""
    return Sidecar(
        release.guarantee,
        rows_read=release.row_counts.read,
        rows_dropped=release.row_counts.dropped,
        rows_released=release.row_counts.released,
        columns=column_kinds(release),
        fidelity=release.fidelity,
        verdict=None if release.verdict is None else release.verdict.to_dict(),
        dataset=release.dataset,
        formulas=formulas or {},
        rules=printable(release.schema.rules.texts),
        formulas_escaped=escaped,
        schema=release.schema.to_dict(),
        declared=printable(release.declared),
        provenance=Provenance.now(None if command is None else printable([command])[0][:LONGEST_TEXT]),
    )


def files_beside(
    release: Release[Any],
    name: str,
    formulas: dict[str, int] | None = None,
    escaped: bool = False,
    command: str | None = None,
) -> dict[str, str]:
    """The files beside an output, {ending of the name: text}: sidecar, data sheet, and the data sheet as a page."""
    sidecar = sidecar_of(release, formulas, escaped, command)
    sheet = sheet_of(release, name, sidecar)
    return {
        SIDECAR_SUFFIX: json.dumps(sidecar.to_dict(), indent=2, ensure_ascii=False, default=str) + "\n",
        SHEET_SUFFIX: sheet.to_json(),
        PAGE_SUFFIX: sheet.to_html(),
    }


def sheet_of(release: Release[Any], name: str, sidecar: Sidecar) -> Sheet:
    """The data sheet of an output with this name."""
    model = release._model
    reason = why_no_model(release.guarantee) if model is None else None
    try:
        if model is not None:
            dump_model(model)
    except InputError as error:
        model, reason = None, error.fault
    return Sheet(name, replace(sidecar, schema=None, declared=()), release.schema, release.declared, reason, model)


def column_kinds(release: Release[Any]) -> dict[str, str]:
    """{column: what it was taken as}."""
    return {name: described(name, release.schema, release.declared) for name in release.schema}
