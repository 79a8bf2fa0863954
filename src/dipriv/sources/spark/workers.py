"""Whether the Python of Spark's workers can run dipriv: small tasks, before anything is read or spent."""

from __future__ import annotations

import sys
from typing import Any

from dipriv._version import __version__
from dipriv.errors import InputError
from dipriv.sources.spark.workspace import jobs

REMEDY = (
    "Set PYSPARK_PYTHON (spark.pyspark.python) to a Python on the workers that has dipriv before the session starts, "
    "or send an environment along: spark-submit --archives environment.tar.gz#environment."
)


MAX_TASKS = 64
"""Tasks that look at a worker's Python. They also start it, on all cores at the same time."""


def check_workers(context: Any) -> None:
    """Refuse workers whose Python does not start, or lacks dipriv or what it needs, or has another version of it."""
    tasks = max(1, min(context.defaultParallelism, MAX_TASKS))

    def look(_: int) -> tuple[str | None, str | None]:
        # Spark sends a nested function as code, so that this one runs where dipriv cannot be imported
        try:
            import dipriv.sources.spark.tasks  # noqa: F401
            from dipriv._version import __version__ as installed
        except ImportError as error:
            return None, error.name
        return installed, None

    asked = context.pythonExec
    try:
        with jobs(context):
            workers = context.parallelize(range(tasks), tasks).map(look).collect()
    except Exception as error:
        raise InputError(f"the workers' Python ({asked}) cannot run a task: {_reason(error)}.", REMEDY) from None
    for installed, missing in workers:
        if missing is not None:
            raise InputError(f"the workers' Python ({asked}) cannot import {missing}.", REMEDY)
        if installed != __version__:
            raise InputError(
                f"a worker has dipriv {installed}, the driver {__version__}.",
                f"Install the same version on both. {REMEDY}",
            )


def _reason(error: Exception) -> str:
    """What is known of a worker that did not start; Spark's own message is long, and of no help."""
    text = str(error)
    if "PYTHON_VERSION_MISMATCH" in text:
        return f"it is not Python {sys.version_info.major}.{sys.version_info.minor}, which the driver has"
    if "Cannot run program" in text:
        return "there is no such program"
    return "it ends at once, or has no pyspark"
