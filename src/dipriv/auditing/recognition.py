"""Whether a ledger recognizes a table that was changed to evade its budget.

A table is released under a name whose budget this exhausts. Then the same rows are offered under another name: with
other options, in another order, under other column names, with a row or a column more or less, a part of them or
all of them twice, from another file type, or to a ledger that an older version of dipriv wrote.
Each of these must be refused, or counted under the first name. A table of other values must be released: a ledger that
refuses everything recognizes nothing. The ledger of the audit is a temporary file; rows are in no file but the
encrypted one that streams have.
"""

from __future__ import annotations

import shutil
import sqlite3
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pyarrow.types as pt

from dipriv._base.table_fingerprint import TELLING
from dipriv.auditing.learning import sample_rows
from dipriv.auditing.results import Check
from dipriv.errors import BudgetError, InputError, LedgerError, PrivacyWarning, UtilityWarning
from dipriv.ledger import Ledger
from dipriv.release.privatize import privatize
from dipriv.sources.files import File

NAME, OTHER_NAME, EPSILON = "audited", "evasion", 10.0
"""The name of the table in the ledger and the other name, and the ε of a release, which is all of the budget."""


@dataclass(frozen=True, eq=False)
class Evasion:
    """A way to offer the same rows again: the table or the file that is offered, and the options of the release.

    `to_ledger` changes the ledger first.
    """

    words: str
    make: Callable[[pa.Table], Any] = field(repr=False)
    options: Mapping[str, Any] = field(repr=False, default_factory=dict)
    to_ledger: Callable[[Path], None] = field(repr=False, default=lambda place: None)


def audit_recognition(table: pa.Table, *, seed: int = 0) -> tuple[Check, ...]:
    """One check for each way to offer the rows of this table again, and one for a table of other values.

    Ways that need options the table does not have are left out: nothing is checked if the table itself cannot be
    released with the default options. A part of a table that says little, such as one column of two labels, may not be
    recognized: other tables have the same. Parts of the rows are offered if most rows differ.

    Parameters
    ----------
    table : the private table, of which a sample is offered.
    seed : chooses the sample and shuffles.

    Returns
    -------
    The checks, in the order of `evasions`.
    """
    rng = np.random.default_rng(seed)
    table = sample_rows(table, rng).combine_chunks()
    with TemporaryDirectory() as name, warnings.catch_warnings():
        for category in (PrivacyWarning, UtilityWarning):
            warnings.simplefilter("ignore", category)  # nothing is published
        folder = Path(name)
        with Ledger.create(folder / "ledger.db") as ledger:
            ledger.set_budget(NAME, EPSILON)
            try:
                privatize(table, EPSILON, dataset=NAME, ledger=ledger, kernel="laplace")
            except InputError:
                return ()
        outcomes = [(way, _is_refused(way, table, folder)) for way in evasions(table, rng)]
        passes = not _is_refused(Evasion("other rows", lambda table: _other_values(table, rng)), table, folder)
    accusation = "A ledger takes a table of other rows for the audited table."
    found = (_check(refused, way) for way, refused in outcomes if refused is not None)
    return (*found, Check("a ledger lets other rows pass", passes, accusation))


def _is_refused(way: Evasion, table: pa.Table, folder: Path) -> bool | None:
    """Whether a copy of the ledger refuses the release, or counts it under the first name; None if there is none."""
    copy = folder / "copy.db"
    shutil.copy(folder / "ledger.db", copy)  # the ledger must not know a table from an earlier way
    way.to_ledger(copy)
    with Ledger.open(copy) as ledger:
        offered = way.make(table)
        try:
            privatize(offered, EPSILON, dataset=OTHER_NAME, ledger=ledger, kernel="laplace", **way.options)
        except (BudgetError, LedgerError):
            return True
        except InputError:
            return None
        return OTHER_NAME not in {dataset.name for dataset in ledger.datasets()}


def _check(recognized: bool, way: Evasion) -> Check:
    return Check(
        f"a ledger recognizes {way.words}",
        recognized,
        f"A ledger does not recognize {way.words}: the same rows get a second budget under another name.",
    )


def evasions(table: pa.Table, rng: np.random.Generator) -> tuple[Evasion, ...]:
    """The ways that make sense for this table: a single column cannot be left out, or kept."""
    names, n_rows = table.column_names, table.num_rows
    shuffled = pa.array(rng.permutation(n_rows))
    found = [
        Evasion("the unchanged table", lambda table: table),
        Evasion("the rows in another order", lambda table: table.take(shuffled)),
        Evasion("the rows sorted", _sorted),
        Evasion("renamed columns", lambda table: table.rename_columns([f"{name} (1)" for name in names])),
        Evasion("one row more", lambda table: pa.concat_tables([table, table.slice(0, 1)]).combine_chunks()),
        Evasion("one row less", lambda table: table.slice(1)),
        Evasion("one column more", lambda table: table.append_column("number of the row", [np.arange(n_rows)])),
        Evasion("whole numbers as real ones", _with_reals),
        Evasion("labels as categories", _with_categories),
        Evasion("a Parquet file", _parquet),
        Evasion("a CSV file", _csv),
    ]
    old: dict[str, Any] = {"to_ledger": _as_version_3}
    found += [
        Evasion("the unchanged table, in a ledger of version 3", lambda table: table, **old),
        Evasion("one row less, in a ledger of version 3", lambda table: table.slice(1), **old),
    ]
    n_distinct = _without_categories(table).group_by(names).aggregate([]).num_rows
    if n_distinct >= max(TELLING, n_rows // 2):
        found += [
            Evasion("half of the rows", lambda table: table.take(shuffled[: n_rows // 2])),
            Evasion("a tenth of the rows", lambda table: table.take(shuffled[: n_rows // 10])),
            Evasion("each row twice", lambda table: pa.concat_tables([table, table]).combine_chunks()),
        ]
    if find_spec("pandas") is not None:
        found.append(Evasion("a pandas table", lambda table: table.to_pandas()))
    if find_spec("polars") is not None:
        found.append(Evasion("a polars table", _polars))
    if len(names) > 1:
        first, *others = names
        found += [
            Evasion("columns in another order", lambda table: table.select([*others, first])),
            Evasion("one column less", lambda table: table.select(others)),
            Evasion("the option keep", lambda table: table, {"keep": [first]}),
            Evasion("the option unit", lambda table: table, {"unit": first, "rows_per_unit": 1}),
            Evasion("a CSV file with the option keep", _csv, {"keep": [first]}),
            Evasion("a CSV file with the option unit", _csv, {"unit": first, "rows_per_unit": 1}),
            Evasion("the option drop", lambda table: table, {"drop": [first]}),
            Evasion("the option columns", lambda table: table, {"columns": others}),
            Evasion(
                "shuffled rows under new names, one row and one column less",
                lambda table: table.select(others).take(shuffled).slice(1).rename_columns(_numbered(len(others))),
            ),
        ]
    return tuple(found)


def _as_version_3(place: Path) -> None:
    """Leave out what later versions of a ledger added."""
    with closing(sqlite3.connect(place)) as link:
        link.executescript(
            """
            DROP TABLE dipriv_samples;
            ALTER TABLE dipriv_contents DROP COLUMN repeats;
            ALTER TABLE dipriv_contents DROP COLUMN is_own;
            ALTER TABLE dipriv_contents DROP COLUMN named_order;
            ALTER TABLE dipriv_releases DROP COLUMN is_own;
            ALTER TABLE dipriv_releases DROP COLUMN keys_digest;
            ALTER TABLE dipriv_columns DROP COLUMN label;
            ALTER TABLE dipriv_distinct DROP COLUMN content;
            ALTER TABLE dipriv_datasets DROP COLUMN splits_by_cells;
            UPDATE dipriv_columns SET sketch = x'';
            UPDATE dipriv_ledger SET version = 3;
            """
        )


def _numbered(count: int) -> list[str]:
    return [f"column {number}" for number in range(count)]


def _sorted(table: pa.Table) -> pa.Table:
    """By the first column that Arrow can sort by, from the largest value down."""
    name = next((column.name for column in table.schema if not pt.is_dictionary(column.type)), None)
    return table if name is None else table.sort_by([(name, "descending")])


def _cast(table: pa.Table, which: Callable[[pa.DataType], bool], cast: Callable[[Any], Any]) -> pa.Table:
    for place, column in enumerate(table.schema):
        if which(column.type):
            table = table.set_column(place, column.name, cast(table.column(place)))
    return table


def _with_reals(table: pa.Table) -> pa.Table:
    def exactly(values: pa.ChunkedArray) -> pa.ChunkedArray:
        try:
            return values.cast(pa.float64())
        except pa.ArrowInvalid:  # beyond 2^53
            return values

    return _cast(table, pt.is_integer, exactly)


def _with_categories(table: pa.Table) -> pa.Table:
    return _cast(table, lambda kind: bool(pt.is_string(kind) or pt.is_large_string(kind)), pc.dictionary_encode)


def _without_categories(table: pa.Table) -> pa.Table:
    return _cast(table, pt.is_dictionary, lambda values: values.cast(values.type.value_type))


def _parquet(table: pa.Table) -> File:
    pyarrow.parquet.write_table(table, content := pa.BufferOutputStream())
    return File.of("rows.parquet", content.getvalue())


def _polars(table: pa.Table) -> Any:
    import polars

    return polars.from_arrow(table)


def _csv(table: pa.Table) -> File:
    pyarrow.csv.write_csv(_without_categories(table), content := pa.BufferOutputStream())
    return File.of("rows.csv", content.getvalue())


def _other_values(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    """Other rows: a table of the same size and column names, with normal random numbers."""
    return pa.table({name: rng.normal(size=table.num_rows) for name in table.column_names})
