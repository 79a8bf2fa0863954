"""Kernels: private, distribution-invariant noise on the unit cube."""

from dipriv.kernels.laplace import Laplace, LaplaceKernel, noisy_uniform_cdf
from dipriv.kernels.protocol import Kernel, KernelRecipe

__all__ = ["Kernel", "KernelRecipe", "Laplace", "LaplaceKernel", "noisy_uniform_cdf"]
