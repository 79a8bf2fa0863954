"""Tables with rules between columns: what is audited is the mechanism, on the columns that it learns and releases.

Rules rewrite each row by itself before the mechanism, and released rows after it. Both are public functions, so what an
audit finds about the mechanism bounds the release as well.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dipriv._tables import frames
from dipriv._tables.frames import Table
from dipriv.errors import InputError
from dipriv.release.options import ReleaseOptions
from dipriv.release.rules import bind

IN_SPEC = ("target", "pairs", "labels", "reference_share")
"""Options of a private reference, which stand in its spec once the rules are known."""


def without_rules(
    table: Table, epsilon: float, options: dict[str, Any], secret: str | None
) -> tuple[Table, dict[str, Any], tuple[str, ...]]:
    """The table with the columns that are learned, options that fit it, and a remark; all as it is without rules.

    Raises
    ------
    InputError : the reference is fitted on a public table, or the secret follows from other columns.
    """
    asked = ReleaseOptions(epsilon, **options)
    names = asked.privatized(table.names)
    stated = asked.rules(names, table.names)
    if not stated:
        return table, options, ()
    if asked.public is not None:
        raise InputError(
            "the schema has rules between columns, and the reference is fitted on a public table.",
            "Audit the release with a private reference, or the table without rules.",
        )
    rules = bind(stated, [table.column(name) for name in names], asked.declared(names))
    learned = rules.learned_names
    if secret in rules.names and (secret not in learned or secret in rules.computed):
        raise InputError(
            f"the secret {secret!r} follows from other columns by a rule.", "Take one of those as the secret."
        )
    rewritten = rules.rewritten(table)
    others = [name for name in table.names if name not in names]
    arrays = {name: rewritten.whole_array(name) for name in learned} | {
        name: table.whole_array(name) for name in others
    }
    types = {name: of for name, of in (asked.types or {}).items() if name in learned}
    changed = {name: value for name, value in options.items() if name not in IN_SPEC} | {
        "schema": rules.learned_schema(),
        "types": types or None,
        "columns": None if options.get("columns") is None else learned,
        "reference": asked.spec_for(rules),
    }
    remark = f"rules rewrite rows before and after the mechanism, at no cost; audited were {', '.join(learned)}."
    return frames.read(pa.table(arrays)), changed, (remark,)
