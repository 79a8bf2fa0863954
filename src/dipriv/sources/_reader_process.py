"""A program that reads a file of Stata, SPSS, SAS (by ReadStat) or ORC (by Arrow), in a process of its own.

Both libraries are written in C or C++, and some damaged files end the process that reads them: here that is a process
that has nothing else to lose. It knows nothing of dipriv.

    python -P _reader_process.py read_dta|... BYTES CELLS BYTES_A_CELL < FILE > ARROW_STREAM
    python -P _reader_process.py orc BYTES [facts] < FILE > ARROW_STREAM

No more memory is taken than BYTES. ReadStat's cells are doubles and texts, CELLS of them in a batch at most; what the
file says about its columns is in the schema's metadata, as JSON. A batch of ORC is a stripe; the number of rows is in
the schema's metadata, and `facts` leaves out the rows. Exit codes: 0; 1 if the file cannot be read; 2 if ReadStat needs
more memory than BYTES, and then the output is "ROWS COLUMNS".
"""

from __future__ import annotations

import io
import json
import sys
from typing import Any

UNREADABLE, TOO_LARGE = 1, 2


def main(reader: str, room: str, *options: str) -> int:
    """Read standard input, and write standard output."""
    _limit(int(room))
    if reader == "orc":
        return _orc(*options)
    return _readstat(reader, int(room), *map(int, options))


def _orc(*options: str) -> int:
    import pyarrow as pa
    from pyarrow import orc

    found = orc.ORCFile(pa.BufferReader(sys.stdin.buffer.read()))
    schema = found.schema.with_metadata({"rows": str(found.nrows)})
    with pa.ipc.new_stream(sys.stdout.buffer, schema) as out:
        for stripe in range(0 if "facts" in options else found.nstripes):
            out.write_batch(found.read_stripe(stripe).replace_schema_metadata(schema.metadata))
    return 0


def _readstat(name: str, room: int, cells: int, bytes_a_cell: int) -> int:
    import pyarrow as pa
    import pyreadstat

    reader = getattr(pyreadstat, name)
    content = io.BytesIO(sys.stdin.buffer.read())
    options = {"output_format": "dict", "disable_datetime_conversion": True}
    _, facts = reader(content, metadataonly=True, **options)
    names, rows = list(facts.column_names), max(0, facts.number_rows or 0)
    if rows * len(names) * bytes_a_cell > room:
        sys.stdout.write(f"{rows} {len(names)}")
        return TOO_LARGE
    types = [facts.readstat_variable_types.get(name) for name in names]
    fields = [pa.field(name, pa.string() if of == "string" else pa.float64()) for name, of in zip(names, types)]  # noqa: B905
    schema = pa.schema(fields, {"facts": json.dumps(_plain(facts))})
    size, first = max(1, cells // max(1, len(names))), 0
    with pa.ipc.new_stream(sys.stdout.buffer, schema) as out:
        while True:
            content.seek(0)
            found, _ = reader(content, row_offset=first, row_limit=size, **options)
            arrays = [pa.array(found[field.name], field.type, from_pandas=True) for field in fields]
            out.write_batch(pa.record_batch(arrays, schema=schema))
            if not arrays or len(arrays[0]) < size:
                return 0
            first += size


def _plain(facts: Any) -> dict[str, Any]:
    labels = {
        name: [[float(code), str(text)] for code, text in of.items() if isinstance(code, (int, float))]
        for name, of in facts.variable_value_labels.items()
    }
    return {
        "formats": {name: str(of or "") for name, of in facts.original_variable_types.items()},
        "value_labels": labels,
        "column_labels": {name: str(of) for name, of in facts.column_names_to_labels.items() if of},
    }


def _limit(room: int) -> None:
    """No more memory than that, and no file with the memory of a process that ends."""
    try:
        import resource
    except ImportError:  # a system without limits
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    room = room if most == resource.RLIM_INFINITY else min(room, most)
    resource.setrlimit(resource.RLIMIT_AS, (room, most))


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except Exception:  # messages may hold cells
        sys.exit(UNREADABLE)
