"""File formats: one file each, registered by `file_format`; every module in this folder is loaded."""

from importlib import import_module
from pkgutil import iter_modules

from dipriv.sources._formats.registry import FORMATS, FileFormat, TableFile, file_format, format_named, format_of

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["FORMATS", "FileFormat", "TableFile", "file_format", "format_named", "format_of"]
