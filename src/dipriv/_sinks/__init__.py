"""Outputs that appear whole or not at all, with a sidecar file beside them that says what is guaranteed."""

from dipriv._sinks.file import FileSink
from dipriv._sinks.folder import FolderSink

__all__ = ["FileSink", "FolderSink"]
