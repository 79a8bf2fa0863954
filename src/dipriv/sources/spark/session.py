"""A Spark session for the command line."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dipriv.errors import InputError, MissingDependencyError


def open_session(**settings: str) -> Any:
    """The running session, else a new one where spark-submit or Spark's own settings say, else on all cores here.

    Names of settings have _ for the dot: spark_master="local[2]".
    """
    if find_spec("pyspark") is None:
        raise MissingDependencyError("Spark is not installed.", 'Install it: pip install "dipriv[spark]".')
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
    session.sparkContext.setLogLevel("OFF")  # what Spark logs of a failed task may hold cells; errors are raised anyway
    return session


def find_java() -> None:
    """Refuse to start Spark where there is no Java."""
    home = os.environ.get("JAVA_HOME")
    if home is not None:
        if not (Path(home) / "bin" / "java").exists():
            raise InputError(f"JAVA_HOME is {home}, where no bin/java is.", "Correct it, or unset it.")
    elif shutil.which("java") is None:
        raise InputError(
            "Spark needs Java, and there is none: JAVA_HOME is not set, and java is not on the path.",
            "Install Java 17 or later (apt install openjdk-17-jre-headless).",
        )
