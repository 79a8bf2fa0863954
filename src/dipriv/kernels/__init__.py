"""Kernels: private, distribution-invariant noise on the unit cube."""

from dipriv._base.coordinates import UniformCoordinate
from dipriv.kernels._joint.kernel import JointKernel
from dipriv.kernels._per_column.integer_channel import InvariantChannel
from dipriv.kernels._per_column.kernel import ColumnsKernel
from dipriv.kernels.laplace import Laplace, LaplaceKernel
from dipriv.kernels.noisy_uniform import noisy_uniform_cdf
from dipriv.kernels.optimal import Optimal, OptimalColumns, OptimalJoint
from dipriv.kernels.protocol import KERNEL_SPECS, ExactRatio, Kernel, KernelSpec, by_name, kernel_spec
from dipriv.kernels.transition import Transition

__all__ = [
    "KERNEL_SPECS",
    "ColumnsKernel",
    "ExactRatio",
    "InvariantChannel",
    "JointKernel",
    "Kernel",
    "KernelSpec",
    "Laplace",
    "LaplaceKernel",
    "Optimal",
    "OptimalColumns",
    "OptimalJoint",
    "Transition",
    "UniformCoordinate",
    "by_name",
    "kernel_spec",
    "noisy_uniform_cdf",
]
