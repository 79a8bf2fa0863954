"""How many rows of the original and of the release break each rule of the schema."""

from __future__ import annotations

from dipriv._tables.frames import Table
from dipriv.errors import SchemaError
from dipriv.release.rules import bind
from dipriv.report.facts import RuleFacts
from dipriv.schema import Schema


def rule_facts(before: Table, after: Table, schema: Schema) -> tuple[RuleFacts, ...]:
    """Facts about the rules whose columns both tables have, with the same types."""
    if not schema.rules:
        return ()
    shared = [name for name in schema.rules.columns() if name in after.names and name in before.names]
    columns = [after.column(name) for name in shared]
    alike = [column for column in columns if before.column(column.name).arrow_type == column.arrow_type]
    names = {column.name for column in alike}
    stated = schema.rules.within(names)
    if not stated:
        return ()
    kinds = Schema({name: kind for name, kind in schema.items() if name in names})
    try:
        bound = bind(stated, alike, kinds)
    except SchemaError:  # the tables are not those that the rules were stated for
        return ()
    (in_before,), (in_after,) = bound.broken(before), bound.broken(after)
    counts = zip(stated.texts, in_before.tolist(), in_after.tolist(), strict=True)
    return tuple(RuleFacts(text, (one, other)) for text, one, other in counts)
