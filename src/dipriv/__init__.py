"""dipriv: publish a private table row by row, nearly the same distribution, under differential privacy.

The public names are listed in `__init__.pyi` and loaded on first use, so that `import dipriv` is quick.
"""

import lazy_loader

from dipriv._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
