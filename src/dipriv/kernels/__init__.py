"""Kernels: private, distribution-invariant noise on the unit cube."""

from dipriv._base.coordinates import UniformCoordinate
from dipriv.kernels.laplace import Laplace
from dipriv.kernels.optimal import Optimal, OptimalCap, OptimalColumns, OptimalJoint
from dipriv.kernels.protocol import ExactRatio, Kernel, KernelSpec, by_name, kernel_spec
from dipriv.kernels.transition import Transition

__all__ = [
    "ExactRatio",
    "Kernel",
    "KernelSpec",
    "Laplace",
    "Optimal",
    "OptimalCap",
    "OptimalColumns",
    "OptimalJoint",
    "Transition",
    "UniformCoordinate",
    "by_name",
    "kernel_spec",
]
