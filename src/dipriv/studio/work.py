"""The jobs of the worker: each is one or two calls of the library, and returns plain values that can be pickled."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dipriv
from dipriv._base.endings import NOTHING_IS_SPENT, if_it_ends
from dipriv._base.progress import Progress
from dipriv._tables.arrow import is_text
from dipriv._tables.column_types import TypeRules
from dipriv.auditing.results import Audit
from dipriv.errors import DiprivError, InputError
from dipriv.guarantee.sidecar import ENDINGS
from dipriv.guarantee.wording import spent
from dipriv.inspection import Inspection
from dipriv.ledger import Ledger
from dipriv.release.result import Release
from dipriv.report import check_extras, compare
from dipriv.sources.files import File
from dipriv.studio.choices import Choices
from dipriv.studio.sketches import Sketch, sketch
from dipriv.studio.worker import spends
from dipriv.utility.plan import Forecast
from dipriv.utility.verdict import Verdict

EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
MAX_FILE_BYTES = 4 << 30
MAX_ROWS, MAX_COLUMNS = 20_000_000, 1000
"""Of a table in the studio; the command line takes larger ones."""


@dataclass(frozen=True)
class Look:
    """A table as its keeper may see it: private."""

    inspection: Inspection = field(repr=False)
    sketches: dict[str, Sketch] = field(repr=False)


@dataclass(frozen=True)
class Released:
    """What is said about a release that was made, and where its files are."""

    files: tuple[Path, ...]
    """The table, its note and its data sheets; all of them may be published."""
    report: Path | None
    """Private."""
    report_fault: str
    rows: int
    read: int
    verdict: Verdict | None
    guarantee: str
    accounts: tuple[str, ...]
    warnings: tuple[str, ...]
    """Those about private rows begin with "Private:"."""
    is_seeded: bool


def look(progress: Progress, choices: Choices) -> Look:
    """Inspect a table, and sketch its columns."""
    progress("reading", 0, None)
    if choices.path.stat().st_size > MAX_FILE_BYTES:
        raise _too_large(f"the file has more than {MAX_FILE_BYTES >> 30} GB")
    dialect = choices.dialect.over(choices.schema.dialect)
    found = dipriv.inspect(choices.path, types=choices.types, dialect=dialect)
    if found.rows > MAX_ROWS or len(found.columns) > MAX_COLUMNS:
        raise _too_large(f"the table has {found.rows:,} rows and {len(found.columns):,} columns")
    progress("drawing", 0, None)
    rules = TypeRules.of({}, choices.types, dialect)
    table, _ = File.at(choices.path, dialect=dialect).read_with_questions(rules)
    return Look(found, sketch(table))


def plan(progress: Progress, choices: Choices) -> Forecast:
    """What a release will be good for at several ε."""
    progress("planning", 0, None)
    return dipriv.plan(choices.path, EPSILONS, **choices.of_plan())


@spends
def release(progress: Progress, choices: Choices, output: Path, report: Path, ledger: str | None) -> Released:
    """Make the release; then a report, whose failure does not undo it."""
    with if_it_ends(NOTHING_IS_SPENT):
        check_extras()
        opened = Ledger.open(ledger)
    with _complete(output) as complete:
        with _collected() as said, opened:
            made = dipriv.privatize_file(
                choices.path,
                output,
                choices.epsilon,
                ledger=opened,
                sample=True,
                progress=progress,
                **choices.of_release(),
            )
            complete.append(made)
            reservation = made.receipt.reservation
            places = () if reservation is None else (reservation, *reservation.also)
            accounts = tuple(
                f"Data set {one.dataset!r}, release {one.number}: {opened.dataset(one.dataset)}." for one in places
            )
            progress("comparing", 0, None)
            fault = _write_report(made, choices, report)
        return Released(
            files=(output, *(output.with_name(output.name + ending) for ending in ENDINGS)),
            report=None if fault else report,
            report_fault=fault,
            rows=made.row_counts.released,
            read=made.row_counts.read,
            verdict=made.verdict,
            guarantee=str(made.guarantee),
            accounts=accounts,
            warnings=tuple(said),
            is_seeded=choices.seed is not None,
        )


def audit(progress: Progress, choices: Choices) -> Audit:
    """Attack such a release; nothing is published or spent."""
    options = choices.of_plan()
    dialect = options.pop("dialect", choices.dialect).over(choices.schema.dialect)
    rows = File.at(choices.path, None, choices.dialect, choices.schema.dialect).read(
        TypeRules.of(choices.schema, choices.types, dialect)
    )
    types = {name: of for name, of in choices.types.items() if is_text(rows[name].type)}
    given = options | {"types": types, "missing": dialect.missing}
    return dipriv.audit(rows, choices.epsilon, seed=choices.seed, progress=progress, **given)


def _write_report(made: Release[Any], choices: Choices, path: Path) -> str:
    """Write a comparison of matching rows; what went wrong, if something did."""
    try:
        if made.written is not None and made.written.sample is not None:
            compare(
                *made.written.sample,
                schema=choices.schema,
                guarantee=made.guarantee,
                fidelity=made.fidelity,
                verdict=made.verdict,
                forecast=made.forecast,
                target=choices.target,
            ).write(path)
    except Exception as error:
        return error.fault if isinstance(error, DiprivError) else type(error).__name__
    return ""


@contextmanager
def _complete(output: Path) -> Iterator[list[Release[Any]]]:
    """What follows a release may fail; the release that is put here is complete all the same, and the error says so."""
    complete: list[Release[Any]] = []
    try:
        yield complete
    except BaseException as error:
        for made in complete:
            loss = spent(made.guarantee.epsilon, made.guarantee.delta)
            error.add_note(f"The release itself is complete: {output.name} is written, and {loss}.")
        raise


@contextmanager
def _collected() -> Iterator[list[str]]:
    """The texts of dipriv's warnings, for the table's keeper."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        for category in (dipriv.PrivacyWarning, dipriv.UtilityWarning, dipriv.RuleWarning):
            warnings.simplefilter("always", category)
        yield said
        said += dict.fromkeys(
            f"{'Private: ' * issubclass(one.category, dipriv.RuleWarning)}{one.message}" for one in caught
        )


def _too_large(what: str) -> InputError:
    return InputError(f"{what}, which is too large for the studio.", "Use the command line: dipriv privatize.")
