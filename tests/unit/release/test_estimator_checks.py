"""scikit-learn's own checks on `DIP`; those that it does not pass are declared, and fail here once it passes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

import dipriv

FRESH_NOISE = "by design: each transform draws fresh noise, so two transforms of the same rows differ"
EXPECTED_FAILURES = {
    "check_fit_idempotent": FRESH_NOISE,
    "check_estimators_pickle": FRESH_NOISE,
}


@parametrize_with_checks([dipriv.DIP()], expected_failed_checks=lambda estimator: EXPECTED_FAILURES)  # type: ignore[untyped-decorator]
def test_the_checks_of_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
