"""The result of a release: a publishable part, and the secrets as a separate object."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._base.arrays import Mask
from dipriv.errors import InputError
from dipriv.guarantee import Guarantee
from dipriv.release.accounting import Receipt
from dipriv.release.analysis import Analysable, Analysis
from dipriv.release.bootstrap import BootstrapModel
from dipriv.release.evidence import evidence_of
from dipriv.release.fidelity import expected_fidelity
from dipriv.schema import Schema
from dipriv.sources import read_table
from dipriv.sources.protocol import ReleaseJob
from dipriv.sources.spark import ReleasedParts, is_spark_frame
from dipriv.utility.judging import judge
from dipriv.utility.verdict import Verdict

if TYPE_CHECKING:
    from dipriv.release.fitting import FittedMechanism
    from dipriv.report import Comparison
    from dipriv.sources.holdout import Split
    from dipriv.sources.protocol import RowSelection
    from dipriv.utility.plan import Forecast

Data = TypeVar("Data")


def is_lazy(data: object) -> bool:
    """Whether rows are computed later by a job that reports it: a Spark DataFrame, or a job for later tables."""
    return is_spark_frame(data) or isinstance(data, ReleaseJob | ReleasedParts)


@dataclass(frozen=True)
class RowCounts:
    """How many rows were read, held out, dropped by contribution bounding, and released."""

    read: int
    held_out: int = 0
    dropped: int = 0
    released: int = 0


@dataclass(frozen=True)
class Written:
    """A file or folder that released rows were written to."""

    path: Path | None
    """None for the standard output."""
    formulas: dict[str, int] = field(default_factory=dict)
    """How many released texts of a column a spreadsheet would take for formulas; a fact about the release."""
    escaped: bool = False
    """Whether these have an apostrophe before them."""
    sample: tuple[pa.Table, pa.Table] | None = field(default=None, repr=False)
    """Matching rows of the private table and of the release, for a report: private, and in no pickle or copy."""

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"sample": None}


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseSecrets:
    """What must not be published: the split's key, who was released, the fitted mechanism with its reference.

    Its repr shows no content. It is pickled or copied only on request: `pickle.dumps(secrets.picklable())`.
    """

    split: Split | None
    """The hold-out's fixed assignment, to be used again for any further release of the same table."""
    mechanism: FittedMechanism
    _selection: RowSelection
    _may_be_pickled: bool = False

    @property
    def schema(self) -> Schema:
        """What each column was taken as, with levels and atoms that were read from reference rows."""
        return self.mechanism.schema

    @property
    def released(self) -> Mask:
        """Marks the rows of an input in memory that were released."""
        selection = self._selection
        held = np.zeros(selection.n_rows, dtype=bool) if selection.held_out is None else selection.held_out
        if selection.split is not None and selection.held_out is None:
            raise InputError("which rows were released is not known here.", "Release a table in memory.")
        return ~held if selection.within_bound is None else ~held & selection.within_bound

    @property
    def row_positions(self) -> NDArray[np.intp]:
        """The positions in the input of the released rows."""
        return np.flatnonzero(self.released)

    def picklable(self) -> ReleaseSecrets:
        """The same secrets in an object that can be pickled; the pickle contains the secrets."""
        return ReleaseSecrets(self.split, self.mechanism, self._selection, _may_be_pickled=True)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if not self._may_be_pickled:
            raise TypeError("secrets of a release are pickled or copied only on request: secrets.picklable()")
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return "ReleaseSecrets(not shown)"


@dataclass(frozen=True, eq=False, repr=False)
class Release(Analysable, Generic[Data]):
    """A released table and what is guaranteed about it.

    `data`, `guarantee`, `schema`, `fidelity` and `verdict` may be published. Not for publication are `secrets`, and, in
    memory, the private rows that `written.sample` keeps for a report; a pickle or a copy has neither.

    Attributes
    ----------
    data : the released rows, in the type of the table that was given; `ReleasedBatches` for files, streams and lazy
        queries, a lazy DataFrame for Spark.
    guarantee : what is guaranteed, and to whom.
    schema : what each column was taken as.
    row_counts : how many rows were read, held out, dropped and released.
    declared : the columns whose kinds were declared.
    dataset : the name of the data set in the ledger, if there is one.
    written : where the rows were written, if they were.
    """

    data: Data
    guarantee: Guarantee
    schema: Schema
    row_counts: RowCounts
    declared: tuple[str, ...] = ()
    dataset: str | None = None
    _secrets: ReleaseSecrets | None = field(default=None)
    written: Written | None = None
    _receipt: Receipt | None = field(default=None)
    _model: BootstrapModel | None = field(default=None)

    @property
    def receipt(self) -> Receipt:
        """What was reserved for this release."""
        return Receipt(self.guarantee) if self._receipt is None else self._receipt

    def _settle(self) -> None:
        """Commit the release in the ledger if its rows exist; rows that are computed later commit it themselves.

        Raises
        ------
        LedgerError : the database failed.
        """
        if self._receipt is None or is_lazy(self.data):
            return
        data: Any = self.data
        if hasattr(data, "notify"):  # rows that are made while they are read
            data.notify(self._receipt.commit, self._receipt.fail)
        else:
            self._receipt.commit(self.n_rows)

    def commit(self) -> None:
        """Say in the ledger that the rows are written: for a Spark DataFrame that was written without `write`."""
        self.receipt.commit(self.n_rows)

    @property
    def n_rows(self) -> int:
        """How many rows are released."""
        return self.row_counts.released

    @property
    def secrets(self) -> ReleaseSecrets:
        """The split, the fitted mechanism, and which rows were released: not for publication.

        Raises
        ------
        InputError : this is a copy or was pickled.
        """
        if self._secrets is None:
            raise InputError("this release was pickled or copied, and has no secrets.", "Use the original.")
        return self._secrets

    @cached_property
    def fidelity(self) -> dict[str, float]:
        """{column: expected correlation of released with true values}, from reference and kernel alone.

        For categories it is agreement beyond chance, Cohen's kappa. It does not depend on the released rows and may be
        published with them: analysts need it to correct attenuation (docs/howto/attenuation.md).
        """
        return {} if self._secrets is None else expected_fidelity(self._secrets.mechanism)

    @cached_property
    def _analysis(self) -> Analysis:
        if self._model is None:
            from dipriv.release.sheet import why_no_model

            raise InputError(
                f"this release has no model that intervals and answers are computed from: "
                f"{why_no_model(self.guarantee)}",
                'Release with reference="private", the default, and without a unit.',
            )
        return Analysis(self._model, self._rows)

    def _rows(self) -> Any:
        """The released rows in memory, in the caller's library where there is one."""
        data: Any = self.data
        facts = () if self._model is None else self._model.facts
        if hasattr(data, "to_table") and self.written is not None and self.written.path is not None:
            return read_table(self.written.path, facts).native
        return data.to_table() if hasattr(data, "notify") else read_table(data, facts).native

    @cached_property
    def verdict(self) -> Verdict | None:
        """What the release is good for: columns that are good, usable or lost, pairs, rows, and what would help.

        It follows from the measurements of the reference, the guarantee and `fidelity`: it costs no ε and may be
        published. None in a pickle of a release that was made before there were verdicts.
        """
        if self._secrets is None:
            return None
        mechanism = self._secrets.mechanism
        return judge(mechanism.learned_names, self.n_rows, self.guarantee, self.fidelity, evidence_of(mechanism))

    @cached_property
    def forecast(self) -> Forecast | None:
        """What more ε would have given, as `dipriv.plan` says it: from public facts alone, so it may be published.

        None where the reference is not private, and for releases with a unit.
        """
        from dipriv.release.forecast import forecast_of

        return None if self._model is None else forecast_of(self._model, self.guarantee.delta)

    def summary(self) -> str:
        """Rows, privacy budget and verdict in a few lines; `guarantee` says in full what is guaranteed.

        Returns
        -------
        str : lines of text.
        """
        from dipriv.guarantee.wording import SEEDED, privacy_loss, protects

        rows, given = self.row_counts, self.guarantee
        lines = [
            *([] if given.secure_randomness else [SEEDED]),
            f"Released {rows.released:,} of {rows.read:,} rows, {len(self.schema)} columns.",
            f"Guarantee: {privacy_loss(given.epsilon, given.delta)}; protects {protects(given)}.",
        ]
        return "\n".join(lines if self.verdict is None else [*lines, str(self.verdict)])

    def __str__(self) -> str:
        return self.summary()

    def write(
        self, path: str | Path, *, force: bool = False, format: str | None = None, escape_formulas: bool = False
    ) -> Written:
        """Write the released rows with the files beside them: whole or not at all.

        PATH.dipriv.json has the guarantee; PATH.sheet.json and, to read, PATH.sheet.html are the data sheet, which
        `dipriv.load_sheet` reads. Nothing private is in them.

        Parameters
        ----------
        path : a file whose name ends in its format; for Spark a folder.
        force : replace an existing file.
        format : the format, if the name does not end in one.
        escape_formulas : in text files, put ' before texts that a spreadsheet would run.

        Returns
        -------
        Written : the path, and how many texts a spreadsheet would take for formulas.

        Raises
        ------
        InputError : the file exists, or its format cannot represent the columns.
        StorageError : the file cannot be written.
        """
        from dipriv.release.writing import write_release

        return write_release(self, path, force=force, format=format, escape_formulas=escape_formulas)

    save = write

    def report(self, path: str | Path | None = None, *, original: Any, target: str | None = None) -> Comparison:
        """Compare the release with the private table. The result contains statistics of that table: do not publish it.

        Parameters
        ----------
        path : where to write a report, one HTML file that its owner alone can read; None for none.
        original : the private table that was released.
        target : a column to regress on the others, in both tables.

        Returns
        -------
        Comparison : print it, or show it in a notebook.

        Raises
        ------
        InputError : the tables have no column in common, or a package that only a report needs is not installed.
        StorageError : the report cannot be written.
        """
        from dipriv.report import compare

        found = compare(original, self, target=target)
        if path is not None:
            found.write(path)
        return found

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name not in ("_secrets", "_receipt", "_analysis")}
        return kept | {"fidelity": self.fidelity, "verdict": self.verdict, "_secrets": None, "_receipt": None}

    def _repr_html_(self) -> str:
        from dipriv.release.notebook import release_html

        return release_html(self)

    def __repr__(self) -> str:
        delta = f", delta={self.guarantee.delta:g}" if self.guarantee.delta else ""
        seeded = "" if self.guarantee.secure_randomness else ", NOT PRIVATE: seeded"
        of = f"{self.n_rows} rows, {len(self.schema)} columns"
        return f"Release({of}, epsilon={self.guarantee.epsilon:g}{delta}{seeded})"
