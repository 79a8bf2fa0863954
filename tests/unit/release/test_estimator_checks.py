"""scikit-learn's own checks on `DIP`; those that it does not pass are declared, and fail here once it passes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

import dipriv

FRESH_NOISE = "by design: each transform draws fresh noise, so two transforms of the same rows differ"
TO_FIX = "to fix: "
"""How the reason of a check begins that a transformer of this kind can pass."""

EXPECTED_FAILURES = {
    "check_fit_idempotent": FRESH_NOISE,
    "check_estimators_pickle": FRESH_NOISE,
    "check_n_features_in_after_fitting": f"{TO_FIX}transform checks column names before the number of columns, and its "
    "message is not the one of scikit-learn",
    "check_fit2d_predict1d": f"{TO_FIX}the error about one-dimensional arrays does not say 'Reshape your data'",
    "check_complex_data": f"{TO_FIX}the error about complex numbers does not say 'Complex data not supported'",
    "check_estimators_empty_data_messages": f"{TO_FIX}the error about a table without columns does not give its shape "
    "against the minimum",
    "check_estimator_sparse_tag": f"{TO_FIX}the error about sparse input does not say that it is sparse",
    "check_estimator_sparse_array": f"{TO_FIX}the error about sparse input does not say that it is sparse",
    "check_estimator_sparse_matrix": f"{TO_FIX}the error about sparse input does not say that it is sparse",
    "check_dtype_object": f"{TO_FIX}numpy arrays of objects are refused even if they hold numbers",
    "check_transformer_data_not_an_array": f"{TO_FIX}objects with __array__ are not converted",
}


@parametrize_with_checks([dipriv.DIP()], expected_failed_checks=lambda estimator: EXPECTED_FAILURES)  # type: ignore[untyped-decorator]
def test_the_checks_of_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
