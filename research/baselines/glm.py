"""OPM for generalized linear models (DJW 5.2.1): stochastic gradients, each sent through the l2 ball mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri

from dipriv._base.arrays import FloatArray
from dipriv._base.jit import jit
from dipriv._random.bits import Seed, source
from dipriv.errors import InputError
from dipriv.guarantee import Guarantee, Model
from research.baselines.checks import (
    FLOATING,
    NO_REFERENCE,
    about,
    as_numbers,
    as_vector,
    check_positive,
    set_epsilon,
    uniforms,
)
from research.baselines.minimax import Ball


@dataclass(frozen=True)
class PrivateLogistic:
    """Logistic regression from one locally private gradient a row.

    θ_{i+1} = θ_i - i^(-1/2) Z_i / r, where Z_i is the private version (`Ball`, radius r) of the gradient of row i's
    loss at θ_i, and the estimate is the mean of all θ_i. A gradient is no longer than its row, so `radius` bounds the
    rows' lengths, intercept included; longer rows are shortened to it. Everything a row has to say passes through one
    ε-private draw, the response included.
    """

    epsilon: float
    radius: float = field(repr=False)

    def __post_init__(self) -> None:
        set_epsilon(self, floating=True)
        object.__setattr__(self, "radius", check_positive("radius", self.radius))

    def fit(self, x: object, y: object, seed: Seed = None) -> FloatArray:
        """Coefficients, one for each column of x (put a column of ones for an intercept)."""
        predictors, responses = as_numbers(x, "x"), as_vector(y, "y")
        if predictors.ndim != 2 or predictors.shape[1] == 0 or len(predictors) != len(responses):
            shapes = f"x has shape {predictors.shape}, y {responses.shape}."
            raise InputError(shapes, "Give rows x columns of numbers, and one response for each row.")
        if not np.isin(responses, (0.0, 1.0)).all():
            raise InputError("y holds numbers other than 0 and 1.", "Give one 0 or 1 for each row of x.")
        bits = source(seed).child("glm")
        rows, columns = predictors.shape
        gauss = np.stack([ndtri(uniforms(bits, rows, column)) for column in range(columns)], axis=1)
        coins = np.stack([uniforms(bits, rows, columns), uniforms(bits, rows, columns + 1)], axis=1)
        length = Ball(self.epsilon, self.radius).length(columns)
        held = predictors / np.maximum(1.0, _norms(predictors) / self.radius)[:, None]
        return descend(held, responses, gauss, coins, self.radius, length, 1 / (1 + math.exp(-self.epsilon)))

    def guarantee(self, seed: Seed = None) -> Guarantee:
        """ε for each row, from everyone."""
        return Guarantee(
            epsilon=self.epsilon,
            kernel="a random half of a sphere, for each gradient",
            reference=NO_REFERENCE,
            model=Model.LOCAL,
            assumptions=(about("bound of the rows' lengths"), FLOATING),
            secure_randomness=seed is None,
        )


def _norms(x: FloatArray) -> FloatArray:
    """The lengths of rows, without squares that overflow."""
    largest = np.maximum(np.abs(x).max(axis=1), 1e-300)
    return np.asarray(largest * np.linalg.norm(x / largest[:, None], axis=1))


@jit
def descend(
    x: FloatArray, y: FloatArray, gauss: FloatArray, coins: FloatArray, radius: float, length: float, agree: float
) -> FloatArray:
    """The mean of the iterates."""
    theta, mean = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for i in range(len(x)):
        gradient = (1.0 / (1.0 + np.exp(-np.dot(theta, x[i]))) - y[i]) * x[i]
        norm = np.sqrt(np.dot(gradient, gradient))
        side = 1.0 if coins[i, 0] <= 0.5 + norm / (2.0 * radius) else -1.0
        if coins[i, 1] > agree:
            side = -side
        towards = np.dot(gauss[i], gradient) if norm > 0.0 else gauss[i, 0]
        step = length / radius / np.sqrt(np.dot(gauss[i], gauss[i])) / np.sqrt(i + 1.0)
        theta -= gauss[i] * (step if towards * side > 0.0 else -step)
        mean += (theta - mean) / (i + 1.0)
    return mean
