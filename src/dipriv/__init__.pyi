from . import codecs, kernels, references, statistics
from ._version import __version__ as __version__
from .auditing.results import Audit
from .auditing.run import audit
from .errors import (
    BudgetError,
    DiprivError,
    DisclosureError,
    InputError,
    InternalError,
    LedgerError,
    MissingDependencyError,
    PrivacyWarning,
    ReferenceDataError,
    SchemaError,
    SourceChangedError,
    StorageError,
)
from .guarantee.guarantee import Guarantee
from .inspection import Inspection, inspect
from .ledger.ledger import Ledger
from .release.estimator import DIP
from .release.forecast import plan
from .release.intervals import Interval
from .release.local import LocalReference, load_local
from .release.privatize import infer_schema, privatize, privatize_file
from .release.result import Release
from .release.sheet import Sheet, load_sheet
from .report.facts import Comparison
from .report.summarize import compare
from .schema import Categorical, Continuous, Datetime, Discrete, Mixed, Schema
from .sources.holdout import Split
from .utility.plan import Forecast
from .utility.verdict import Verdict

__all__ = [
    "DIP",
    "Audit",
    "BudgetError",
    "Categorical",
    "Comparison",
    "Continuous",
    "Datetime",
    "DiprivError",
    "DisclosureError",
    "Discrete",
    "Forecast",
    "Guarantee",
    "InputError",
    "Inspection",
    "InternalError",
    "Interval",
    "Ledger",
    "LedgerError",
    "LocalReference",
    "MissingDependencyError",
    "Mixed",
    "PrivacyWarning",
    "ReferenceDataError",
    "Release",
    "Schema",
    "SchemaError",
    "Sheet",
    "SourceChangedError",
    "Split",
    "StorageError",
    "Verdict",
    "__version__",
    "audit",
    "codecs",
    "compare",
    "infer_schema",
    "inspect",
    "kernels",
    "load_local",
    "load_sheet",
    "plan",
    "privatize",
    "privatize_file",
    "references",
    "statistics",
]
