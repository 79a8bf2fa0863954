"""Whether a schema fits a table, before anything is released: for the table's keeper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dipriv.dialect import Dialect
from dipriv.references import Private
from dipriv.release.columns import columns_of
from dipriv.release.options import ReleaseOptions
from dipriv.release.rules import bind
from dipriv.release.rules.broken import broken_rules
from dipriv.schema import ColumnType, Schema
from dipriv.sources.protocol import RowSource, Scan


def check_schema(
    source: RowSource[Any],
    schema: Schema,
    *,
    types: Mapping[str, ColumnType] | None = None,
    dialect: Dialect | None = None,
) -> dict[str, int]:
    """How many rows break each rule, by its text: private.

    Raises
    ------
    SchemaError : kinds or rules do not fit the table's columns and types.
    """
    options = ReleaseOptions(1.0, schema=schema, types=types or None, dialect=dialect)
    names = options.privatized(source.column_names)
    declared = options.declared(names)
    stated = options.rules(names, source.column_names)
    rows = source.scan(Scan(names, types=options.type_rules(names, declared)))
    try:
        columns, declared = columns_of(rows, names, declared)
        rewriting = bind(stated, columns, declared) if stated else None
        facts = columns if rewriting is None else rewriting.learned()
        kinds = declared if rewriting is None else rewriting.learned_schema()
        Private().check([column.numeric(None) for column in facts], kinds)
        return {} if rewriting is None else broken_rules(rewriting, rows)
    finally:
        rows.close()
