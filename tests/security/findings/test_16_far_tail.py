"""Finding 16: in the far tail the noise was clipped, not the noisy value, so that the value could be read off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dipriv._random import discrete_gaussian as gaussian
from dipriv._random.discrete_laplace import MAX_SCALE, discrete_laplace
from dipriv._random.rejection import MAX_NOISE, MAX_NOISY, noisy_sum
from dipriv.kernels.laplace import LaplaceKernel

SIGN_BIT = 1 << 48
"""With t = 2^56 there are 48 low bits, then the sign."""


@dataclass(frozen=True)
class FarDraws:
    """One draw whose U is below 2^-128, so that |z| exceeds 88 t."""

    negative: bool = False
    count: int = 1

    def blocks(self, use: int) -> Any:
        return np.array([[0, SIGN_BIT if self.negative else 0]], dtype=np.uint64)

    def blocks_again(self, use: int, attempt: int, rows: Any) -> Any:
        return np.array([[0, 1 << 63]], dtype=np.uint64)[: len(rows)]

    def of_column(self, column: int) -> FarDraws:
        return self


@pytest.mark.parametrize("negative", [False, True])
def test_a_far_draw_tells_nothing_of_the_value(negative: bool) -> None:
    draws: Any = FarDraws(negative)
    z = discrete_laplace(draws, MAX_SCALE)
    assert z.tolist() == [-MAX_NOISE if negative else MAX_NOISE]
    values = np.array([0, 1, 10**15, MAX_NOISY, -MAX_NOISY])
    assert len(set(noisy_sum(values, z).tolist())) == 1
    assert len(set((values + z).tolist())) == len(values)  # control: clipping the noise alone tells


def test_clipping_is_a_function_of_the_exact_sum() -> None:
    for x in (-MAX_NOISY, -5, 0, 3, MAX_NOISY):
        for z in (0, 7, MAX_NOISY, MAX_NOISE - 1, MAX_NOISE, MAX_NOISE + 1, 2**70, -MAX_NOISE - 1, -(2**70)):
            drawn = min(max(z, -MAX_NOISE), MAX_NOISE)
            exact = min(max(x + z, -MAX_NOISY), MAX_NOISY)
            assert noisy_sum(np.array([x]), np.array([drawn])).tolist() == [exact]


@pytest.mark.parametrize("bits", [20, 40])
@pytest.mark.parametrize("negative", [False, True])
def test_the_kernel_releases_far_draws_as_the_same_end(bits: int, negative: bool) -> None:
    kernel = LaplaceKernel(2.0 ** (bits - 56), np.array([bits]), np.array([MAX_SCALE]))
    draws: Any = FarDraws(negative)
    ends = {float(kernel.perturb(np.array([[u]]), draws)[0, 0]) for u in (0.0, 0.3, 1.0)}
    assert ends == {2.0**-53 if negative else 1 - 2.0**-53}
    assert math.exp(-(MAX_NOISE - 2.0**bits) / MAX_SCALE) / 2 < 2.0**-53


def test_a_far_gaussian_draw_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    draws: Any = FarDraws()
    monkeypatch.setattr(gaussian, "_decide", lambda *_: (-(2**70), 0))
    assert gaussian.discrete_gaussian(draws, Fraction(5), band=math.inf).tolist() == [-MAX_NOISE]
