"""The exponential mechanism: exact chances, its decimal fallback, ties, gaps, and a privacy loss of at most ε."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from numpy.typing import NDArray

from dipriv._base.arrays import Words
from dipriv.references._learning import exponential_mechanism as module
from dipriv.references._learning.exponential_mechanism import exponential_choice
from tests.support import ALARM, bits, chi_square_tail

CASES = {
    "two": ([3, 5], Fraction(7, 3)),
    "ties": ([4, 4, 4], Fraction(1)),
    "many": ([0, -9, 17, 3, 3, 20, -40, 19], Fraction(25, 4)),
    "far": ([0, -(10**6), 10, -(10**18)], Fraction(5)),
    "negative": ([-(2**40), -(2**40) - 1000], Fraction(700)),
}


def words_of(*given: int) -> Callable[[int], Words]:
    """A source of these words, which never gives another."""
    left = list(given)
    return lambda count: np.array([left.pop(0) for _ in range(count)], dtype=np.uint64)


def choose(scores: list[int], scale: Fraction, *words: int, band: float = module.BAND) -> int:
    return exponential_choice(np.array(scores, dtype=np.int64), scale, words_of(*words), band)


def exact_ends(scores: list[int], scale: Fraction) -> list[Decimal]:
    """Where the intervals of the candidates end in [0, 1)."""
    with localcontext(prec=60):
        weights = [(Decimal(score - max(scores)) * scale.denominator / scale.numerator).exp() for score in scores]
        return [end / sum(weights) for end in accumulate(weights)]


def found_ends(scores: list[int], scale: Fraction, band: float) -> list[int]:
    """The same times 2^64, by bisection: the least first word that chooses a later candidate."""
    ends = []
    for candidate in range(len(scores)):
        low, high = -1, 1 << 64
        while high - low > 1:
            u = (low + high) // 2
            later = choose(scores, scale, u, *[1 << 63] * 4, band=band) > candidate
            low, high = (low, u) if later else (u, high)
        ends.append(high)
    return ends


@pytest.mark.parametrize("band", [module.BAND, math.inf])
@pytest.mark.parametrize("name", CASES)
def test_chances_are_exact_to_the_digits_of_a_word(name: str, band: float) -> None:
    scores, scale = CASES[name]
    found = found_ends(scores, scale, band)
    with localcontext(prec=60):
        for end, exact in zip(found, exact_ends(scores, scale), strict=True):
            assert abs(end - exact * (1 << 64)) <= 1
        wrong = exact_ends(scores, scale * Fraction(6, 5))
        moved = max(abs(end - exact * (1 << 64)) for end, exact in zip(found, wrong, strict=True))
        assert moved > 1 << 40 or name == "ties"  # control


def test_draws_have_the_distribution() -> None:
    scores, scale = np.array([0, 50, 90, 100, 100, 30], dtype=np.int64), Fraction(40)
    words = bits(1).words
    counts = np.bincount([exponential_choice(scores, scale, words) for _ in range(40_000)], minlength=len(scores))
    for factor, passes in ((1.0, True), (1.2, False)):
        assert (chi_square_tail(counts, np.exp(scores / (factor * float(scale)))) > ALARM) is passes


def test_the_decimal_fallback_chooses_like_double_precision() -> None:
    generator = np.random.default_rng(2)
    for seed in range(50):
        scores = generator.integers(-1000, 1000, size=generator.integers(1, 40))
        scale = Fraction(int(generator.integers(1, 3000)), 7)
        ours, exact = (exponential_choice(scores, scale, bits(seed).words, band) for band in (module.BAND, math.inf))
        assert ours == exact


def test_a_tie_at_one_half_is_settled_by_further_digits() -> None:
    assert choose([8, 8], Fraction(1), (1 << 63) - 1, 0) == 0
    assert choose([8, 8], Fraction(1), 1 << 63, 0, 0, 1) == 1
    assert choose([8, 8, 8], Fraction(1), 0x5555555555555555, 0x5555555555555555, 0) == 0
    assert choose([8, 8, 8], Fraction(1), 0x5555555555555555, 0x5555555555555555, 1 << 63) == 1


def test_double_precision_leaves_close_calls() -> None:
    gaps = np.array([2, 0], dtype=np.uint64)
    end = int(exact_ends([3, 5], Fraction(7, 3))[0] * (1 << 64))
    near, far = 1 << 18, 1 << 24  # of 2^64, against a band of 2 · 2^-45
    for u in (end - near, end, end + near):
        assert module._choice_by_doubles(gaps, 7 / 3, u, module.BAND) is None
    assert module._choice_by_doubles(gaps, 7 / 3, end - far, module.BAND) == 0
    assert module._choice_by_doubles(gaps, 7 / 3, end + far, module.BAND) == 1


def test_one_candidate_is_chosen_by_every_word() -> None:
    for u in (0, 1 << 63, (1 << 64) - 1):
        for band in (module.BAND, math.inf):
            assert choose([-7], Fraction(1, 3), u, band=band) == 0


def test_the_widest_gap_of_scores() -> None:
    widest = [-(2**63), 2**63 - 1, -(2**63)]
    for u in (1, 1 << 63, (1 << 64) - 2):
        for band in (module.BAND, math.inf):
            assert choose(widest, Fraction(1, 1000), u, 1, 1, band=band) == 1
    scale = Fraction(2**64)  # about as large as the gap
    ends = exact_ends(widest, scale)
    assert [choose(widest, scale, int(end * 2**64) - (1 << 30)) for end in ends] == [0, 1, 2]


@pytest.mark.parametrize(("factor", "private"), [(2, True), (1, False)])
def test_the_privacy_loss_is_at_most_epsilon(factor: int, private: bool) -> None:
    """Scores of sensitivity Δ and a scale of 2Δ/ε; half the scale is not ε-DP."""
    sensitivity, epsilon = 3, Fraction(1, 2)
    scale = factor * sensitivity / epsilon
    generator = np.random.default_rng(4)
    losses = [
        _privacy_loss(scores, scores + sensitivity * signs, scale)
        for scores in generator.integers(0, 30, size=(200, 5))
        for signs in (generator.choice([-1, 1], size=5), np.array([1, -1, -1, -1, -1]))
    ]
    assert (max(losses) <= epsilon) is private


def _privacy_loss(scores: NDArray[np.int64], others: NDArray[np.int64], scale: Fraction) -> float:
    """The largest |ln| of the ratio of a candidate's chances."""
    chances = [np.diff([float(end) for end in exact_ends(s.tolist(), scale)], prepend=0.0) for s in (scores, others)]
    return float(np.max(np.abs(np.log(chances[0] / chances[1]))))
