"""scikit-learn's own checks on `DIP`; those that it may fail are declared. Now and then it passes them: in tables as
small as theirs noise may leave one value, and then two transforms do not differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import dipriv

FRESH_NOISE = "by design: each transform draws fresh noise, so two transforms of the same rows differ"
EXPECTED_FAILURES = {
    "check_fit_idempotent": FRESH_NOISE,
    "check_estimators_pickle": FRESH_NOISE,
}


@pytest.mark.slow
@parametrize_with_checks([dipriv.DIP()])  # type: ignore[untyped-decorator]
def test_the_checks_of_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    reason = EXPECTED_FAILURES.get(getattr(check, "func", check).__name__)
    try:
        check(estimator)
    except AssertionError:
        if reason is None:
            raise
        pytest.xfail(reason)
