"""The mechanisms that the paper compares DIP with, each with the guarantee that it truly gives.

All take an array and give an array (`privatize(values, rng)`), and state their guarantee (`guarantee(rng)`);
`naive` takes a table and privatizes its columns one by one with equal shares of ε.
"""

from research.baselines.exponential import Exponential, FrequencyResampling
from research.baselines.glm import PrivateLogistic
from research.baselines.laplace import Laplace
from research.baselines.minimax import Ball, BoundedMoment
from research.baselines.naive import naive

__all__ = [
    "Ball",
    "BoundedMoment",
    "Exponential",
    "FrequencyResampling",
    "Laplace",
    "PrivateLogistic",
    "naive",
]
