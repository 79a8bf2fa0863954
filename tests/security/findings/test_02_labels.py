"""Finding 2: a label that one person alone has was disclosed with near certainty at any ε."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dipriv

ROWS, RELEASES, EPSILON, DELTA = 1000, 15, 0.1, 1e-9
PAIRS = ("only-one", "Ann Smith", "", "(rare)")
OTHERS = np.array(["f", "m", "x"])[np.random.default_rng(0).choice(3, ROWS, p=[0.5, 0.45, 0.05])]


def shown(label: str, **options: Any) -> int:
    """In how many releases the label of the last row is printed, as a cell or in the schema."""
    frame = pd.DataFrame({"x": np.append(OTHERS[:-1], label)})
    releases = [dipriv.privatize(frame, EPSILON, seed=seed, **options) for seed in range(RELEASES)]
    return sum(
        label in {*release.data["x"], *(getattr(release.schema["x"], "levels", None) or ())} for release in releases
    )


@pytest.mark.parametrize("label", PAIRS)
def test_a_label_of_one_row_is_not_shown(label: str) -> None:
    """In D no release shows it, so in D' one does with probability at most δ: 60 of them with at most 60 δ < 1e-7."""
    assert shown(label, delta=DELTA) == 0


def test_labels_that_are_called_public_are_shown() -> None:
    """The control: the attack sees what the default does not show."""
    assert shown("only-one", labels="public") == RELEASES


def test_the_label_changes_nothing_that_is_promised() -> None:
    frames = [pd.DataFrame({"x": np.append(OTHERS[:-1], label)}) for label in ("f", *PAIRS)]
    assert len({str(dipriv.privatize(frame, EPSILON, seed=1).guarantee) for frame in frames}) == 1
