"""scikit-learn transformer: fit on reference rows, transform the rows to release."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy.sparse import issparse

from dipriv._base.extras import needs_extra
from dipriv._base.table_fingerprint import TableFingerprint
from dipriv._random.bits import Seed, source
from dipriv._random.streams import Stream
from dipriv._tables import frames
from dipriv._tables.any_values import array_of_any
from dipriv._tables.frames import Table, check_names
from dipriv._tables.typed_tables import conform, read_from_text
from dipriv.errors import DisclosureError, InputError, PrivacyWarning
from dipriv.references.protocol import LabelPolicy
from dipriv.release import local
from dipriv.release.accounting import TransformReceipts
from dipriv.release.fidelity import expected_fidelity
from dipriv.release.make_guarantee import make_local_guarantee
from dipriv.release.options import KernelLike, ReferenceLike, ReleaseOptions
from dipriv.release.plan import prepare
from dipriv.schema import ColumnType, SchemaLike
from dipriv.sources._fingerprint import Fingerprint, fingerprint_of
from dipriv.sources.in_memory import DeferredSource
from dipriv.sources.stream import forked

with needs_extra("sklearn", "DIP"):
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from dipriv.ledger import Ledger

UNPROTECTED_TARGET = (
    "y is not protected: DIP privatizes X alone, and a model that is fitted on y may disclose it. If y is private, "
    "release one table that contains it, and fit models on the released table."
)
NOT_COUNTED = " No ledger counts this: each fit spends ε anew, and a search over parameters or folds fits many times."


class DIP(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Distribution-invariant privatization as a transformer.

    `fit(rows)` learns the reference, under a part of ε if it is private; `transform(rows)` releases rows, the same or
    others. With "holdout" the rows given to `fit` are the hold-out: they are not protected, and `transform` releases
    *other* rows. Only `X` is privatized: in a pipeline, `y` passes by unprotected, and a `PrivacyWarning` says so.

    Each fit spends ε, those of cross-validation and of a search over parameters among them, which fit once for each
    fold and candidate; a ledger adds them up.

    With a ledger, `fit` reserves ε and δ, which cover the first `transform`; each further one reserves the ε of the
    rows' noise again, and no δ. All are counted for the data set of `fit`, and released tables are registered there:
    a table that is or resembles another data set is refused.

    Parameters
    ----------
    epsilon, delta, reference, kernel, schema, types, missing, columns, drop, keep, public, target, reference_share,
    labels, pairs, ledger, dataset, new_dataset, seed : as for `dipriv.privatize`.

    Attributes
    ----------
    guarantee_ : the guarantee of one `transform` of each row.
    schema_ : what each column was taken as.
    mechanism_ : the fitted codecs, reference and kernel.
    n_features_in_, feature_names_in_ : the columns that `fit` saw.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(400, 2))
    >>> DIP(epsilon=1.0).fit_transform(rows).shape
    (400, 2)
    >>> DIP(epsilon=1.0, reference="holdout").fit(rows[:100]).transform(rows[100:]).shape
    (300, 2)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        reference: ReferenceLike = None,
        kernel: KernelLike = "optimal",
        schema: SchemaLike = None,
        types: Mapping[str, ColumnType] | None = None,
        missing: Sequence[str] = (),
        columns: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        keep: Sequence[str] = (),
        public: Any = None,
        target: str | None = None,
        reference_share: float | None = None,
        labels: LabelPolicy | None = None,
        pairs: Sequence[tuple[str, str]] = (),
        ledger: Ledger | str | Path | None = None,
        dataset: str | Sequence[str] | None = None,
        new_dataset: str | Sequence[str] | None = None,
        seed: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.reference = reference
        self.kernel = kernel
        self.schema = schema
        self.types = types
        self.missing = missing
        self.columns = columns
        self.drop = drop
        self.keep = keep
        self.public = public
        self.target = target
        self.reference_share = reference_share
        self.labels = labels
        self.pairs = pairs
        self.ledger = ledger
        self.dataset = dataset
        self.new_dataset = new_dataset
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> DIP:
        """Learn from reference rows `X` (their names and types alone with a known distribution or a public table).

        Parameters
        ----------
        X : a table as `dipriv.privatize` takes it, or a list of rows, which are read as doubles; what is no number is
            missing.
        y : ignored, and not privatized; a `PrivacyWarning` says so.

        Returns
        -------
        DIP : the fitted transformer.

        Raises
        ------
        InputError, SchemaError, ReferenceDataError, BudgetError, LedgerError : as `dipriv.privatize`.

        Warns
        -----
        PrivacyWarning, UtilityWarning : as `dipriv.privatize`, and if `y` is given.
        """
        options = self._options()
        options.warn()
        if y is not None:
            warnings.warn(
                UNPROTECTED_TARGET + ("" if options.is_counted else NOT_COUNTED), PrivacyWarning, stacklevel=2
            )
        table = as_table(X)
        plan = prepare(DeferredSource(table), options)
        plan.warn_if_too_small()
        release = plan.run()
        self.mechanism_ = release.secrets.mechanism
        self.guarantee_ = plan.guarantee
        self.local_guarantee_ = make_local_guarantee(options.spec, options.kernel_spec, plan.fit_plan, plan.origin)
        self.schema_ = release.schema
        self._read_from_text = read_from_text(table, self.mechanism_.facts)
        self.n_features_in_ = len(table.names)
        self.feature_names_in_ = np.array(table.names, dtype=object)
        self._keep, self._seed, self._marks = tuple(options.keep), options.seed, options.file_dialect.missing
        again = replace(plan.guarantee, epsilon=self.mechanism_.kernel.epsilon, delta=0.0)
        self._receipts = TransformReceipts(again, plan.session, release.receipt)
        self._fingerprint_key = os.urandom(32)
        self._reference_fingerprint = None if plan.origin.is_public else self._fingerprint(table)
        return self

    def transform(self, X: Any) -> Any:
        """Release the rows `X`: same library, dtypes, row order and index.

        Every row is released: nulls, infinities and values out of range have a place, and objects that cannot be
        converted to their column's type are missing values.

        Parameters
        ----------
        X : rows with the columns that `fit` saw.

        Returns
        -------
        The released rows, in the library of `X`.

        Raises
        ------
        DisclosureError : these are reference rows, which have no formal protection.
        InputError, ReferenceDataError : the columns are not those of `fit`.
        BudgetError : the ledger's budget does not allow another transform, or the rows are those of another data set.
        """
        check_is_fitted(self, "mechanism_")
        table = as_table(_numbers_of_objects(X))
        if table.backend == "numpy" and len(table.names) != self.n_features_in_:
            raise InputError(
                f"X has {len(table.names)} features, but DIP is expecting {self.n_features_in_} features as input.",
                "Pass the columns of fit; feature_names_in_ lists them.",
            )
        check_names(self._keep, table.names, "keep")
        typed = self._typed(table.with_wide_indices())
        self.mechanism_.check(typed)
        if table.names != tuple(self.feature_names_in_):
            raise InputError(
                f"the {len(table.names)} columns are not those that fit saw, in their order ({self.n_features_in_}).",
                "Pass the columns of fit in the same order; feature_names_in_ lists them.",
            )
        if self._reference_fingerprint is not None and self._fingerprint(table) == self._reference_fingerprint:
            raise _fitted_on("")
        receipts = self._open_receipts()
        receipt = receipts.next(self._seen_by_ledger(receipts, table))
        with receipt.failing():
            bits = source(self._seed).child(Stream.NOISE)
            released = self.mechanism_.release(typed, self._keep, bits)
            if typed.backend == "pyarrow":
                released = frames.with_index_types(released, self.mechanism_.types)
            receipt.commit(table.rows)
        return released

    def transform_batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Release a stream of Arrow record batches, one at a time: tables larger than memory are ordinary.

        The rows are numbered through the stream, so that a seeded run gives the same rows for any batches.

        With a ledger, ε is spent for the data set of `fit` before the first batch leaves. Whose rows they are is asked
        then, whenever the number of rows has doubled, and at the end, and the rows up to there are registered with that
        data set: at any time, at least half of those that have left. A first batch that is or resembles another data
        set is refused with a BudgetError. If later rows turn out to be those of another data set, the stream goes on,
        because a refusal would be seen: its ε and δ are spent there, too, even beyond the budget.

        Parameters
        ----------
        batches : Arrow record batches with the columns that `fit` saw. Cells are read in the types of `fit`, alike in
            every type in which they come; what cannot be read is missing, and so is, after the first batch, a column
            that a batch lacks. Other columns are not read. State types where you read a file in parts (`dtype=str` in
            `pandas.read_csv`): a reader that guesses them from the cells of each part may change what is in them, such
            as decimal commas, and then one row changes others.

        Returns
        -------
        An iterator of released batches in the types and the order of columns of `fit`. The release is committed in the
        ledger when it is exhausted.

        Raises
        ------
        DisclosureError : after the last batch, if these were all the reference rows, which have no formal protection:
            discard what was released.
        InputError, ReferenceDataError : the first batch lacks a column of `fit`.
        BudgetError : the ledger's budget does not allow another transform, or the first batch has the rows of another
            data set.

        Warns
        -----
        PrivacyWarning : after the stream, if later rows are those of another data set, in which ε is spent, too.
        """
        check_is_fitted(self, "mechanism_")
        receipts = self._open_receipts()
        table = receipts.stream(tuple(self.feature_names_in_))
        fitted = None
        if self._reference_fingerprint is not None:
            fitted = Fingerprint(self._fingerprint_key, self.mechanism_.names)
        seen = self._seen_by([of for of in (fitted, table.fingerprint) if of is not None], batches)
        first = list(islice(seen, 1))
        receipt = table.reserve()
        with receipt.failing(), table:
            bits, n_rows, process = source(self._seed).child(Stream.NOISE), 0, os.getpid()
            for batch in self.mechanism_.release_batches(chain(first, seen), self._keep, bits):
                if process != os.getpid():
                    raise forked()
                table.register_before_leaving()
                n_rows += batch.num_rows
                yield batch
            if fitted is not None and fitted.content() == self._reference_fingerprint:
                raise _fitted_on(" Discard what was released.")
            table.register()
            receipt.commit(n_rows)

    def _seen_by(self, fingerprints: Sequence[Fingerprint], batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        """The batches in the types of `fit`, with the columns of the first one, in the order that `fit` saw.

        Nothing about a later batch is refused, as rows have left: which columns a part of a file has, and their types,
        may follow from its cells. A column that it lacks is missing in all its rows, others are not read.
        """
        marks = {column.name: self._marks for column in self._read_from_text}
        passed = [name for name in self.feature_names_in_ if name in {*self._keep, self.mechanism_.by}]
        first: pa.Schema | None = None
        for batch in (batch for batch in batches if batch.num_rows):
            if first is None:
                first = frames.read(batch).native.schema
                check_names(self._keep, first.names, "keep")
            rows = _with_columns(batch, first)
            typed = self.mechanism_.converted(frames.read(rows), marks)
            for name in passed:
                typed = typed.append_column(name, rows.column(name))
            typed = typed.select([name for name in self.feature_names_in_ if name in typed.column_names])
            self.mechanism_.check(frames.read(typed))
            for fingerprint in fingerprints:
                is_whole = {*fingerprint.names} <= {*first.names}
                fingerprint.update(rows.select(list(fingerprint.names)) if is_whole else rows)
            yield typed.to_batches()[0]

    def _typed(self, table: Table) -> Table:
        """Rows in the types of `fit`; columns of text that it read as numbers or dates are read in the same way."""
        return self.mechanism_.typed(conform(table, self._read_from_text, self._marks))

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit and transform the same rows: with a private reference, a known distribution or a public table.

        Parameters
        ----------
        X, y : as for `fit`.
        **fit_params : ignored.

        Returns
        -------
        The released rows, in the library of `X`.

        Raises
        ------
        DisclosureError : the reference would be fitted on the rows that are released.
        InputError, SchemaError, ReferenceDataError, BudgetError, LedgerError : as `fit`.
        """
        options = self._options()
        if options.public is None and options.spec.source in ("rows", "groups"):
            raise DisclosureError(
                "fit_transform would release the rows that the reference is fitted on.",
                'Use reference="private", or fit on some rows and transform others.',
            )
        return self.fit(X, y).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the released columns.

        Parameters
        ----------
        input_features : ignored.

        Returns
        -------
        The names, in the order of `feature_names_in_`.
        """
        check_is_fitted(self, "mechanism_")
        out = {*self.mechanism_.names, *self._keep}
        return np.array([name for name in self.feature_names_in_ if name in out], dtype=object)

    def export_local(self, path: str | Path) -> None:
        """Write the fitted reference for use where the data is (appendix S3); only if it is private or public.

        Parameters
        ----------
        path : of the file; an existing one is replaced.

        Raises
        ------
        DisclosureError : the reference contains rows that are not public.
        StorageError : the file cannot be written.
        """
        check_is_fitted(self, "mechanism_")
        if self._reference_fingerprint is not None:
            raise DisclosureError(
                "this reference was fitted on rows that are not known to be public: it contains their values, and "
                "exporting it would publish them.",
                'Fit with reference="private", public=table or a known distribution, and export that.',
            )
        local.save(path, self.mechanism_, self.local_guarantee_)

    @property
    def fidelity_(self) -> dict[str, float]:
        """{column: expected correlation of released with true values}, as `Release.fidelity`."""
        check_is_fitted(self, "mechanism_")
        return expected_fidelity(self.mechanism_)

    def _options(self) -> ReleaseOptions:
        return ReleaseOptions(**self.get_params(deep=False))

    def _fingerprint(self, table: Table) -> bytes:
        return fingerprint_of(
            table.fingerprinted().select(list(self.mechanism_.names)), self._fingerprint_key
        ).content()

    def _seen_by_ledger(self, receipts: TransformReceipts, table: Table) -> TableFingerprint | None:
        """The fingerprint that the ledger knows a table by, of all its columns."""
        if receipts.session is None or not table.rows:
            return None
        return fingerprint_of(table.fingerprinted(), receipts.session.fingerprint_key()).result()

    def _open_receipts(self) -> TransformReceipts:
        """The reservation of `fit` for the first transform, and a new one for each further transform."""
        if self._receipts is None:
            raise InputError(
                "this transformer was pickled or copied, and cannot count a release in its ledger.", "Fit it again."
            )
        return self._receipts

    def __getstate__(self) -> dict[str, Any]:
        """A pickle has no connection to a ledger: a transformer that has one must be fitted again."""
        state: dict[str, Any] = super().__getstate__()
        receipts = state.get("_receipts")
        return state if receipts is None or receipts.session is None else state | {"_receipts": None}

    def __setattr__(self, name: str, value: Any) -> None:
        """A parameter, as it is given; the URL of a ledger may have a password, which nothing shows."""
        super().__setattr__(name, _HiddenUrl(value) if name == "ledger" and type(value) is str else value)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.non_deterministic = True
        return tags


class _HiddenUrl(str):
    """The path or URL of a ledger, shown without what may be a password: by scikit-learn, pipelines, notebooks."""

    __slots__ = ()

    def __repr__(self) -> str:
        scheme, has_place, _ = self.partition("://")
        return repr(f"{scheme}://***" if has_place else str(self))


def _with_columns(batch: pa.RecordBatch, like: pa.Schema) -> pa.RecordBatch:
    """These columns of a batch, of any types; nulls where it lacks one."""
    names = batch.schema.names
    arrays = [
        batch.column(names.index(column.name)) if column.name in names else pa.nulls(batch.num_rows, column.type)
        for column in like
    ]
    return pa.RecordBatch.from_arrays(arrays, names=like.names)


def _fitted_on(more: str) -> DisclosureError:
    return DisclosureError(
        "these are the rows that DIP was fitted on: the guarantee does not cover them." + more,
        "Fit on some rows and transform others, or use dipriv.privatize, which splits for you.",
    )


def as_table(X: Any) -> Table:
    """A table of any form that scikit-learn passes on: dataframes as they are, other things as arrays.

    Lists, which have no type, are doubles, and what is no number is missing: numpy would find a type for all cells.
    """
    if issparse(X):
        raise InputError("sparse input is not supported.", "Convert it to a dense array: X.toarray().")
    is_frame = type(X).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow")
    if isinstance(X, list):
        X = _as_numbers(_numbers_of_objects(np.array(X, dtype=object)))
    elif hasattr(X, "__array__") and not is_frame:
        X = _as_numbers(np.asarray(X))
    return frames.read(X)


def _numbers_of_objects(X: Any) -> Any:
    """An array of objects as numbers, NaN for what is no number; all else as it is."""
    if not isinstance(X, np.ndarray) or X.dtype.kind != "O":
        return X
    numbers = array_of_any(X.ravel().tolist(), pa.float64()).to_numpy(zero_copy_only=False)
    return np.asarray(numbers).reshape(X.shape)


def _as_numbers(array: np.ndarray) -> np.ndarray:
    """A two-dimensional array of numbers, with the messages of scikit-learn."""
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported.", "Pass real and imaginary parts as columns.")
    if array.ndim == 1:
        raise InputError(
            "expected a 2D array, got a 1D array.",
            "Reshape your data: X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row.",
        )
    if array.ndim == 2 and array.shape[1] == 0:
        raise InputError(
            f"found an array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required.",
            "Pass at least one column.",
        )
    if array.dtype.kind != "O":
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "the array holds objects that are not numbers; argument must be a string, a number or a dataframe.",
            "Pass a dataframe, whose columns have types of their own.",
        ) from None
