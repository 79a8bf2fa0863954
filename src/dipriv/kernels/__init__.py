"""Kernels: private, distribution-invariant noise on the unit cube."""

from dipriv.kernels.laplace import Laplace, LaplaceKernel
from dipriv.kernels.margins import Margin
from dipriv.kernels.noisy_uniform import noisy_uniform_cdf
from dipriv.kernels.optimal.choose import Optimal, OptimalColumns, OptimalJoint
from dipriv.kernels.optimal.columns import ColumnsKernel
from dipriv.kernels.optimal.flows import Swap
from dipriv.kernels.optimal.joint import JointKernel
from dipriv.kernels.protocol import Kernel, KernelRecipe
from dipriv.kernels.transition import Transition

__all__ = [
    "ColumnsKernel",
    "JointKernel",
    "Kernel",
    "KernelRecipe",
    "Laplace",
    "LaplaceKernel",
    "Margin",
    "Optimal",
    "OptimalColumns",
    "OptimalJoint",
    "Swap",
    "Transition",
    "noisy_uniform_cdf",
]
