"""The promise to a person with several rows: persons as canaries, and two planted bugs as controls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from scipy import stats

from benchmarks.audit.setting import Setting
from benchmarks.measure import say
from dipriv.auditing.persons import audit_persons
from dipriv.auditing.procedure import Privatize
from dipriv.references import Known
from dipriv.sources.contribution_bound import ContributionBound

EPSILON, CONFIDENCE, SEED = 1.0, 0.95, 1
PERSONS, EACH, MAX_ROWS = 4000, 12, 4
SOUND, NO_BOUND, NOT_DIVIDED = "as it is", "planted bug: all rows of a person", "planted bug: all of ε for each row"


def run(setting: Setting) -> dict[str, Any]:
    """Known distribution and private reference, as they are and with each bug; fewer persons for trials."""
    persons = PERSONS if setting.rows is None else max(100, setting.rows // EACH)
    rng = np.random.default_rng(SEED)
    whose = rng.permutation(np.repeat(np.arange(persons), EACH))
    table = pa.table({"person": whose, "x": rng.normal(size=persons * EACH)})
    ways: dict[str, tuple[dict[str, Any], int | None]] = {
        "one column, known distribution": ({"reference": Known(stats.norm())}, persons),
        "one column, private reference": ({}, None),
    }
    found = []
    for way, (options, canaries) in ways.items():
        for bug in (SOUND, NO_BOUND, NOT_DIVIDED):
            release = Privatize(EPSILON, {"unit": "person", "rows_per_unit": MAX_ROWS, **options})
            unit = ContributionBound("person", MAX_ROWS)
            claim: dict[str, Any] = {"delta": release.delta(table), "confidence": CONFIDENCE, "seed": SEED}
            with planted(bug):
                bound, check = audit_persons(release, table, unit, EPSILON, canaries=canaries, **claim)
            found.append({"way": way, "bug": bug, **bound.to_dict(), "bounded": check.passed})
            say(f"persons: {way}, {bug}: {bound.lower:.3f}, {check.what}: {check.passed}")
    size = {"persons": persons, "rows of a person": EACH, "rows released": MAX_ROWS}
    return {"epsilon": EPSILON, "confidence": CONFIDENCE, "seeds": [SEED], **size, "found": found}


@contextmanager
def planted(bug: str) -> Iterator[None]:
    """The code with this bug."""
    if bug == NO_BOUND:
        with patch.object(ContributionBound, "kept", lambda self, keys, scores: np.ones(len(keys), dtype=np.bool_)):
            yield
    elif bug == NOT_DIVIDED:
        with patch.object(ContributionBound, "row_epsilon", lambda self, epsilon: epsilon):
            yield
    else:
        yield
