"""What the experiment joint-kernels computes: against closed forms, against built-in kernels, and on record."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from dipriv._base.coordinates import UniformCoordinate
from dipriv.kernels import OptimalCap, OptimalJoint
from research import pages
from research.experiments import joint_kernels
from research.experiments.joint_kernels import Columns

THEORY = Path(__file__).parents[2] / "docs" / "theory" / "kernels.md"
QUANTILE = 4.9
"""Standard errors that a normal variable exceeds, either way, once in a million."""


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_best_threshold_of_normal_scores(epsilon: float) -> None:
    """The root of c = (e^ε - 1) E(g - c)⁺, for quantiles of the normal distribution in place of a sample."""
    q, n = np.expm1(epsilon), 200_000
    root = brentq(lambda c: q * (stats.norm.pdf(c) - c * stats.norm.sf(c)) - c, 0.0, 5.0)
    scores = stats.norm.ppf((np.arange(n) + 0.5) / n)
    assert joint_kernels.best_of(scores, epsilon) == pytest.approx(root, rel=1e-3)
    assert joint_kernels.best_of(scores, 1.05 * epsilon) != pytest.approx(root, rel=1e-3)  # control


def margins(count: int) -> list[UniformCoordinate]:
    return [UniformCoordinate(f"c{number}") for number in range(count)]


@pytest.mark.parametrize("count", [2, 3, 10])
def test_one_block_of_numbers_is_the_cap_kernel(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cap cuts off cosines, the block what they keep of ranks, which is nearly proportional: 1% at most."""
    monkeypatch.setattr(joint_kernels, "DRAWS", 200_000)
    found = joint_kernels.of_blocks((Columns(count),), 2.0, np.random.default_rng(1))
    cap = joint_kernels.of_kernel(OptimalCap(), margins(count), [1.0] * count, 2.0)
    error = np.expm1(2.0) * QUANTILE / np.sqrt(200_000 * count)  # of q E[s; s >= τ], s of variance 1/count at most
    assert abs(found - cap) < error + 0.01 * cap
    assert abs(joint_kernels.of_kernel(OptimalJoint(), margins(count), [1.0] * count, 1.5) - found) > error  # control


def test_single_numbers_are_flipped_as_the_xor_kernel_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_kernels, "DRAWS", 200_000)
    columns = (Columns(1, 3.0), Columns(1, 2.0), Columns(1, 1.0))
    weights = {"c0": 3.0, "c1": 2.0, "c2": 1.0}
    found = joint_kernels.of_blocks(columns, 1.0, np.random.default_rng(1))
    xor = joint_kernels.of_kernel(OptimalJoint(weights), margins(3), list(weights.values()), 1.0)
    assert abs(found - xor) < np.expm1(1.0) * QUANTILE / np.sqrt(200_000)
    assert (
        abs(found - joint_kernels.of_kernel(OptimalJoint(weights), margins(3), [3.0, 2.0, 1.0], 0.9)) > 0.01
    )  # control


def test_a_program_of_two_cells_a_side_keeps_signs() -> None:
    """3/4 of the correlation of signs: that is tanh(ε/2) at most, and on average half of it if one column has all ε."""
    found = joint_kernels.of_program(2, 1.0)
    assert 0.75 * np.tanh(0.5) / 2 < found < 0.75 * np.tanh(0.5)
    assert joint_kernels.of_program(4, 1.0) > found


def on_record() -> dict[tuple[str, str, float], Any]:
    rows = pages.record("reproduction/joint-kernels")["rows"]
    return {(row["setting"], row["method"], row["epsilon"]): row for row in rows}


def test_no_kernel_on_record_keeps_more_than_the_bound_and_blocks_keep_most() -> None:
    cells = on_record()
    for (setting, method, epsilon), row in cells.items():
        bound = cells[setting, "no kernel more than", epsilon]
        error = QUANTILE * np.hypot(row["measured_sd"], bound["measured_sd"]) / np.sqrt(row["reps"])
        assert row["measured_mean"] <= bound["measured_mean"] + error
        if method == "blocks":
            built = [cells[setting, other, epsilon]["measured_mean"] for other in ("XOR", "cap")]
            assert row["measured_mean"] > max(built)


def test_the_tables_of_the_theory_are_the_record() -> None:
    """Each line names its setting; its numbers are those of ε = 1, then of ε = 4."""
    cells, found = on_record(), 0
    for line in THEORY.read_text(encoding="utf-8").splitlines():
        setting, *numbers = [part.strip() for part in line.strip("|").split("|")]
        if not re.fullmatch(r"\d+ (numbers|flags).*", setting):
            continue
        blocks = ("blocks",) if len(numbers) == 8 else ()
        methods = ("XOR", "cap", *blocks, "no kernel more than")
        wanted = [
            f"{cells[setting, method, epsilon]['measured_mean']:.3f}" for epsilon in (1.0, 4.0) for method in methods
        ]
        assert numbers == wanted
        found += 1
    assert found == len(joint_kernels.SETTINGS)
