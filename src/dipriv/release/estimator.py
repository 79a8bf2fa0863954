"""DIP with the manners of scikit-learn: fit on reference rows, transform the rows to release."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dipriv._random.bits import Seed, source
from dipriv._tables import frames as tables
from dipriv._tables.identifiers import refuse_free_text
from dipriv.errors import DisclosureError, InputError
from dipriv.guarantee.guarantee import Assumption, AssumptionKind, check_epsilon
from dipriv.references import Private
from dipriv.release import fitting, local
from dipriv.release import privatize as release
from dipriv.release.fidelity import expected_fidelity
from dipriv.release.promise import Origin, make_guarantee, make_local_guarantee
from dipriv.sources._fingerprint import fingerprint_of
from dipriv.sources.protocol import CountedTables


class DIP(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Distribution-invariant privatization as a transformer.

    `fit(rows)` learns the reference, under a part of ε if it is private; `transform(rows)` releases rows, the same or
    others. With "holdout" the rows given to `fit` are the hold-out: they are not protected, and `transform` releases
    *other* rows.

    Parameters are those of `dipriv.privatize`.

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
        reference: release.ReferenceLike = "private",
        kernel: release.KernelLike = "optimal",
        schema: release.SchemaLike = None,
        columns: Sequence[str] | None = None,
        keep: Sequence[str] = (),
        public: Any = None,
        seed: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.reference = reference
        self.kernel = kernel
        self.schema = schema
        self.columns = columns
        self.keep = keep
        self.public = public
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> DIP:
        """Learn from reference rows `X` (their names and types alone with a known law or a public table)."""
        epsilon = check_epsilon(self.epsilon)
        recipe, noise = release.as_reference_spec(self.reference, self.public), release.as_kernel(self.kernel)
        table = tables.read(X)
        names = release.select(table, self.columns, self.keep, aside=(getattr(recipe, "by", None),))
        declared = release.as_schema(self.schema, names)
        facts = [table.column(name) for name in names]
        bits = source(self.seed)
        if isinstance(recipe, Private):
            held = table.clip_infinities()
            rows = CountedTables(held.rows, lambda: [held])
            self._basis = fitting.plan_fit(recipe, noise, epsilon, facts, declared, rows=rows, bits=bits.child("fit"))
            self.fitted_ = self._basis.fit(rows, bits.child("fit"))
            self.origin_ = Origin("private")
        else:
            self.origin_ = Origin(
                "public" if self.public is not None else "law" if recipe.source == "nothing" else "fit"
            )
            read = release.public_rows(self.public, recipe) if self.public is not None else table
            if self.origin_.source == "fit":
                refuse_free_text(read, names, declared, self.keep)
            fitted_on = None if self.origin_.source == "law" else read
            self._basis = fitting.plan_fit(
                recipe, noise, epsilon, facts, declared, reference=fitted_on, bits=bits.child("fit")
            )
            self.fitted_ = self._basis.fit(None, bits)
        said = make_guarantee(recipe, noise, self._basis, self.origin_, self.keep, epsilon=epsilon, secure=bits.secure)
        once = Assumption(AssumptionKind.TRANSFORMED_ONCE, epsilon=self.fitted_.kernel.epsilon)
        self.guarantee_ = replace(said, assumptions=(*said.assumptions, once))
        self.schema_ = self.fitted_.schema
        self.n_features_in_ = len(table.names)
        self.feature_names_in_ = np.array(table.names, dtype=object)
        self._key = os.urandom(32)
        self._seen = None if self.origin_.is_public else fingerprint_of(table.batch().select(list(names)), self._key)
        return self

    def transform(self, X: Any) -> Any:
        """Release the rows `X`: same library, dtypes, row order and index."""
        check_is_fitted(self, "fitted_")
        table = tables.read(X)
        tables.check_names(self.keep, table.names, "keep")
        self.fitted_.check(table)
        if table.names != tuple(self.feature_names_in_):
            raise InputError(
                f"the {len(table.names)} columns are not those that fit saw, in their order ({self.n_features_in_}).",
                "Pass the columns of fit in the same order; feature_names_in_ lists them.",
            )
        if not self.origin_.is_public and self._is_reference(table):
            raise DisclosureError(
                "these are the rows that DIP was fitted on: the guarantee does not cover them.",
                "Fit on some rows and transform others, or use dipriv.privatize, which splits for you.",
            )
        return self.fitted_.release(table, self.keep, source(self.seed).child("noise"))

    def transform_batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Release a stream of Arrow record batches, one at a time: tables larger than memory are ordinary.

        The rows are numbered through the stream, so that a seeded run gives the same rows for any batches.
        """
        check_is_fitted(self, "fitted_")
        return self.fitted_.release_batches(batches, self.keep, source(self.seed).child("noise"))

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit and transform the same rows: with a private reference, a known law or a public table."""
        recipe = release.as_reference_spec(self.reference, self.public)
        if self.public is None and recipe.source in ("rows", "groups"):
            raise DisclosureError(
                "fit_transform would release the rows that the reference is fitted on.",
                'Use reference="private", or fit on some rows and transform others.',
            )
        return self.fit(X, y).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the released columns."""
        check_is_fitted(self, "fitted_")
        out = {*self.fitted_.names, *self.keep}
        return np.array([name for name in self.feature_names_in_ if name in out], dtype=object)

    def export_local(self, path: str | Path) -> None:
        """Write the fitted reference for use where the data is (appendix S3); only if it is private or public."""
        check_is_fitted(self, "fitted_")
        if not self.origin_.is_public:
            raise DisclosureError(
                "this reference was fitted on rows that are not known to be public: it contains their values, and "
                "exporting it would publish them.",
                'Fit with reference="private", public=table or a known law, and export that.',
            )
        recipe, noise = release.as_reference_spec(self.reference, self.public), release.as_kernel(self.kernel)
        said = make_local_guarantee(recipe, noise, self._basis, self.origin_, self.fitted_.kernel.epsilon)
        local.save(path, self.fitted_, said)

    @property
    def fidelity_(self) -> dict[str, float]:
        """{column: expected correlation of released with true values}, as `Release.fidelity`."""
        check_is_fitted(self, "fitted_")
        return expected_fidelity(self.fitted_)

    def _is_reference(self, table: tables.Table) -> bool:
        return fingerprint_of(table.batch().select(list(self.fitted_.names)), self._key) == self._seen

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.non_deterministic = True
        return tags
