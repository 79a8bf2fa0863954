"""All names that can be reproduced, and where each is; modules are imported when asked for."""

from __future__ import annotations

from importlib import import_module

from dipriv.errors import InputError
from research.protocol import Drawing, Experiment

WHERE = {
    "discrete-means": "discrete_means:MEANS",
    "sample-size": "discrete_means:SAMPLE_SIZE",
    "continuous-ks": "continuous_ks:KS",
    "graphs": "graphs:LOW",
    "graphs-highdim": "graphs:HIGH",
    "linear-regression": "linear_regression:LINEAR",
    "uc-salary": "uc_salary:SALARY",
    "bank-logistic": "bank:LOGISTIC",
    "bank-exposure": "bank:EXPOSURE",
    "movielens": "movielens:MOVIES",
    "row-fidelity": "row_fidelity:ROW_FIDELITY",
    "joint-kernels": "joint_kernels:JOINT_KERNELS",
    "flowchart": "figures:FLOWCHART",
    "continualization": "figures:CONTINUALIZATION",
    "mixed": "figures:MIXED",
    "grid-2d": "figures:GRID",
    "kernels": "kernel_figures:KERNELS",
}


def find(name: str) -> Experiment | Drawing:
    """The experiment or figure of this name."""
    if name not in WHERE:
        raise InputError(f"there is no experiment {name!r}.", f"Choose from: {', '.join(WHERE)}.")
    module, attribute = WHERE[name].split(":")
    try:
        found: Experiment | Drawing = getattr(import_module(f"research.experiments.{module}"), attribute)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{name} needs {error.name}.", "Install it: pip install -r research/requirements.txt."
        ) from error
    return found


def experiment(name: str) -> Experiment:
    """The experiment of this name."""
    found = find(name)
    if not isinstance(found, Experiment):
        raise InputError(f"{name!r} is a figure, not an experiment.", "Choose an experiment.")
    return found
