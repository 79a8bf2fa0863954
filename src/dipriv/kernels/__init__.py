"""Kernels: private, distribution-invariant noise on the unit cube."""

from dipriv.kernels.laplace import Laplace, LaplaceKernel
from dipriv.kernels.noisy_uniform import noisy_uniform_cdf
from dipriv.kernels.protocol import Kernel, KernelRecipe
from dipriv.kernels.transition import Transition

__all__ = ["Kernel", "KernelRecipe", "Laplace", "LaplaceKernel", "Transition", "noisy_uniform_cdf"]
