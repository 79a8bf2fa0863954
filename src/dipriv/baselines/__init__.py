"""The mechanisms that the paper compares DIP with, each with the guarantee that it truly gives.

All take an array and give an array (`privatize(values, rng)`), and state their guarantee (`guarantee(rng)`);
`naive` takes a table and privatizes its columns one by one with equal shares of ε.
"""

from dipriv.baselines.exponential import Exponential, FrequencyResampling
from dipriv.baselines.glm import PrivateLogistic
from dipriv.baselines.laplace import Laplace
from dipriv.baselines.minimax import Ball, BoundedMoment
from dipriv.baselines.naive import naive

__all__ = [
    "Ball",
    "BoundedMoment",
    "Exponential",
    "FrequencyResampling",
    "Laplace",
    "PrivateLogistic",
    "naive",
]
