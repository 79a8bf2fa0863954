"""`privatize` and `privatize_file`: thin callers of the one path in `dipriv.release.plan`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Unpack, overload

from dipriv._base.endings import MAY_BE_SPENT, NOTHING_IS_SPENT, if_it_ends
from dipriv._base.progress import Progress
from dipriv._random.bits import Seed
from dipriv._tables import frames
from dipriv._tables.fitted_columns import infer
from dipriv.dialect import Dialect
from dipriv.errors import InputError
from dipriv.references.protocol import LabelPolicy
from dipriv.release.options import KernelLike, OptionTypes, ReferenceLike, ReleaseOptions
from dipriv.release.plan import prepare
from dipriv.release.progress import shown
from dipriv.release.result import Release
from dipriv.schema import ColumnType, Schema, SchemaLike
from dipriv.sources import open_source
from dipriv.sources.holdout import Split
from dipriv.sources.protocol import RowSource

if TYPE_CHECKING:
    from dipriv._sinks import FileSink, FolderSink
    from dipriv.ledger import Ledger
    from dipriv.sources.stream import ReleasedBatches

Frame = TypeVar("Frame")


class LazyQuery(Protocol):
    """A lazy polars query, as type checkers distinguish it from a dataframe."""

    def sink_parquet(self, *args: Any, **options: Any) -> Any: ...


@overload
def privatize(
    data: str | Path | LazyQuery | Callable[[], Any],
    epsilon: float,
    *,
    progress: bool | Progress = ...,
    **options: Unpack[OptionTypes],
) -> Release[ReleasedBatches]: ...
@overload
def privatize(
    data: Frame, epsilon: float, *, progress: bool | Progress = ..., **options: Unpack[OptionTypes]
) -> Release[Frame]: ...
def privatize(
    data: Any,
    epsilon: float,
    *,
    delta: float | None = None,
    reference: ReferenceLike = None,
    kernel: KernelLike = "optimal",
    schema: SchemaLike = None,
    types: Mapping[str, ColumnType] | None = None,
    missing: Sequence[str] = (),
    dialect: Dialect | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    holdout: float | None = None,
    split: Split | None = None,
    public: Any = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    constant: Sequence[str] = (),
    target: str | None = None,
    reference_share: float | None = None,
    labels: LabelPolicy | None = None,
    pairs: Sequence[tuple[str, str]] = (),
    ledger: Ledger | str | Path | None = None,
    dataset: str | Sequence[str] | None = None,
    new_dataset: str | Sequence[str] | None = None,
    seed: Seed = None,
    progress: bool | Progress = False,
) -> Release[Any]:
    """Release a table row by row under differential privacy.

    The guarantee is computational: noise is drawn from AES-256 keystream with a key of the operating system.

    Parameters
    ----------
    data : pandas, polars or pyarrow table, or two-dimensional numpy array; or rows that are read in several passes: the
        path of a file (CSV, TSV, Excel, Stata, SPSS, SAS, JSON lines, Parquet, ORC, Arrow) or of a folder or pattern of
        Parquet files, a polars LazyFrame, a pyarrow Dataset, a function that returns a fresh iterator of Arrow record
        batches each time, or a Spark DataFrame. These must give the same rows in the same order each time. A function
        and its iterator may be called on other threads than yours.
    epsilon : total privacy budget of a row, over all its columns; with `unit`, of all rows of a person.
    delta : δ beside ε, for a private reference, which finds labels and frequent values under it and may be measured
        with Gaussian noise: at most this much is spent, 1e-9 by default. 0 for pure ε-differential privacy. Releases
        with other references are always pure.
    reference : "private" (learned from all rows under a part of ε, so that every row is released and protected),
        "holdout" (the paper's: empirical distribution of a random hold-out that is not released, nor protected) or a
        specification from `dipriv.references`. By default the empirical distribution of `public` if that is given, else
        "private".
    kernel : "optimal" (the noise that keeps the most of each row at this ε) or "laplace" (the paper's), or
        `Optimal(weights, costs)` or `Laplace(shares)` from `dipriv.kernels` to weigh the columns.
    schema : kinds of columns that are public facts; the others are read from the reference rows, or privately. And
        rules between columns, which are public and true in every released row. A `dipriv.Schema`, {column: kind}, or
        the path of a TOML or JSON file.
    types : {column: type} for columns of text whose type dipriv cannot settle, or would settle otherwise: "text",
        "number" ("whole" or "decimal"), "boolean", "date", "datetime" (in "seconds" or "microseconds") or "time". Cells
        that are something else are missing.
    missing : texts that mark missing cells, beside those of `dipriv.schema.MISSING_MARKS`.
    dialect : how the file is written that `data` is the path of, where that is not to be found out: separator, decimal
        mark, encoding, order of dates and more; it has precedence over that of the schema.
    columns, drop : the columns to privatize and release, or those to leave out; by default all that are not in `keep`.
    keep : columns that pass through unchanged and unprotected, such as row numbers.
    holdout, split : the share of rows to hold out (a quarter), or, instead, the split of an earlier release. Given
        with a private reference, that is learned from the hold-out with all of ε, and the other rows are released.
    public : a public table with the same columns; the reference is fitted on it and every row is released.
    unit, rows_per_unit : privacy unit: the column that identifies the person (or other entity) a row belongs to; ε and
        δ then protect a person, with all of their rows together. Contribution bounding: at most `rows_per_unit` (10)
        rows of a person, picked at random, are used and released; rows beyond that are not released. The column is
        released with new keys, 1, 2, 3, ..., so that rows of a person still belong together, in their order; it is left
        out if it is in `drop`, or if `columns` does not list it.
    constant : with `unit`, columns that are constant in a person, such as sex or birth: they are released once for a
        person, and are equal in all of their rows.
    target : a column of interest: what others say about it is kept best by a private reference.
    reference_share : the part of ε that a private reference is learned with.
    labels : where the labels of text and categorical columns come from that the schema does not list: "private" (the
        default: found under (ε, δ); labels that few rows have are released as "(other)", or as missing where labels are
        not text), "declared" (such columns are refused) or "public" (read from the rows and not protected).
    pairs : pairs of columns whose joint distribution a private reference measures first.
    ledger, dataset : a `dipriv.Ledger` or where it is, and the name of the data set there: the release is counted
        against the data set's budget before anything is released, and holds out the same rows as every other release.
        A table of several data sets, as a pooled one is, has several names, and is counted in each of them.
        With a name alone the ledger is the default one: DIPRIV_LEDGER, or else that in your own folder for data.
    new_dataset : a name, or several, instead of `dataset`, which affirms that the table describes other people than
        all other data sets that it resembles; the ledger records that.
    seed : leave out for the operating system's randomness; a seed is for experiments and voids the guarantee.
    progress : show a progress bar on the terminal; or a function, called with what is being done, how much of it is
        done, and how much there is (or None).

    Returns
    -------
    Release : `data` in the library and dtypes of the input, the guarantee, and what each column was taken as. Of rows
        that are read in passes, `data` is `ReleasedBatches`; of a Spark DataFrame, a lazy DataFrame.

    Raises
    ------
    InputError : options do not fit each other or the table, or an option would have no effect.
    SchemaError : the schema contradicts the table, a column is free text, or the type of a column is undecided.
    ReferenceDataError : the reference rows do not suffice.
    BudgetError, DisclosureError, LedgerError : the ledger refuses the release.
    SourceChangedError, StorageError : rows cannot be read, or are not the same in every pass.

    Warns
    -----
    PrivacyWarning : for a seed, for columns in `keep`, for ε beyond 10, for δ beyond 1e-5, and for a unit where earlier
        releases of the data set protect rows.
    UtilityWarning : rows times ε are too small for the columns; it comes before ε is spent.
    RuleWarning : for the table's keeper alone, if private rows break a rule of the schema, or differ in a constant
        column; released rows do not.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": range(20, 70), "smokes": [True, False] * 25})
    >>> release = privatize(table, epsilon=1.0)
    >>> list(release.data.columns), release.guarantee.epsilon
    (['age', 'smokes'], 1.0)
    """
    options = ReleaseOptions(
        epsilon,
        delta=delta,
        reference=reference,
        kernel=kernel,
        schema=schema,
        types=types,
        missing=missing,
        dialect=dialect,
        columns=columns,
        drop=drop,
        keep=keep,
        holdout=holdout,
        split=split,
        public=public,
        unit=unit,
        rows_per_unit=rows_per_unit,
        constant=constant,
        target=target,
        reference_share=reference_share,
        labels=labels,
        pairs=pairs,
        ledger=ledger,
        dataset=dataset,
        new_dataset=new_dataset,
        seed=seed,
    )
    options.warn()
    with shown(progress) as report:
        plan = prepare(open_source(data, *options.dialects), options, report)
        plan.warn_if_too_small()
        return plan.run()


def privatize_file(
    source: Any,
    output: str | Path,
    epsilon: float,
    *,
    format: str | None = None,
    force: bool = False,
    escape_formulas: bool = False,
    sample: bool = False,
    progress: bool | Progress = False,
    **options: Unpack[OptionTypes],
) -> Release[Any]:
    """Release a file into another, which appears whole or not at all, with OUTPUT.dipriv.json beside it.

    Parameters
    ----------
    source : a CSV, TSV, Excel, Stata, SPSS, SAS, JSON lines, Parquet, ORC or Arrow file, or "-" for the standard input;
        or data as for `dipriv.privatize`.
    output : a file whose name ends in its format, or "-" for the standard output; a folder for Spark.
    epsilon, options : as for `dipriv.privatize`.
    format : the format of pipes and of files whose name does not end in one; the standard output has that of the
        source by default, or csv.
    force : replace `output` if it exists.
    escape_formulas : in text files, put ' before texts that a spreadsheet would run.
    sample : keep matching rows of table and release in `release.written.sample`, for a report: private.
    progress : as for `dipriv.privatize`.

    Returns
    -------
    Release : `written` says where the rows are.

    Raises
    ------
    InputError, SchemaError, ReferenceDataError, BudgetError, DisclosureError, LedgerError, SourceChangedError,
    StorageError : as for `dipriv.privatize`, and if the output cannot be written.

    Warns
    -----
    PrivacyWarning, UtilityWarning : as for `dipriv.privatize`.
    """
    from dipriv._sinks import FileSink, FolderSink
    from dipriv.release.writing import written_data
    from dipriv.sources.files import File
    from dipriv.sources.stream import open_file

    checked = ReleaseOptions(epsilon, **options)
    checked.warn()
    if isinstance(source, str | Path) and str(source) != "-" and Path(source).resolve() == Path(output).resolve():
        raise InputError(f"source and output are the same file, {output}.", "Give the output a name of its own.")
    is_file = isinstance(source, str | Path) and (str(source) == "-" or Path(source).is_file() or format is not None)
    file = File.at(source, format, *checked.dialects) if is_file else None
    rows = open_source(source, *checked.dialects) if file is None else open_file(file)
    if str(output) == "-" and format is None:
        format = "csv" if file is None else file.format.name
    sink: FileSink | FolderSink
    if rows.writes_folder:
        sink = FolderSink.at(output, force=force, escape_formulas=escape_formulas)
    else:
        sink = FileSink.at(output, format, force=force, escape_formulas=escape_formulas)
    release = release_file(rows, sink, checked, sample=sample, progress=progress)
    return replace(release, data=written_data(release.data, release.written))


def release_file(
    source: RowSource[Any],
    sink: FileSink | FolderSink,
    options: ReleaseOptions,
    *,
    sample: bool = False,
    progress: bool | Progress = False,
    command: str | None = None,
) -> Release[Any]:
    """Release a source into a sink; the file beside it has the command that asked for it.

    Of Spark, `data` is used up: what is released is in the folder.
    """
    from dipriv.release.writing import deliver

    with shown(progress) as report, ExitStack() as until_written:
        with if_it_ends(NOTHING_IS_SPENT):
            plan = until_written.enter_context(closing(prepare(source, options, report, sample=sample)))
            sink.check(plan.output_schema, plan.row_counts.released, plan.presentation)
            plan.warn_if_too_small(stacklevel=5)
        with if_it_ends(MAY_BE_SPENT), sink:
            release = plan.run(sink.name)
            written = deliver(release, sink, sample=sample, command=command)
    return replace(release, written=written)


def infer_schema(data: Any) -> Schema:
    """What each column looks like to dipriv, read from these rows: a draft to edit and then declare.

    A schema that is inferred from private rows and then declared is assumed public; use it on public or
    reference rows, or as a draft.

    Parameters
    ----------
    data : pandas, polars or pyarrow table, or two-dimensional numpy array.

    Returns
    -------
    Schema : a kind for each column.

    Raises
    ------
    InputError, SchemaError : the table has columns that dipriv does not take.
    """
    table = frames.read(data)
    return infer(table, table.names)
