from . import codecs, kernels, references, statistics
from ._version import __version__ as __version__
from .auditing.results import Audit
from .auditing.run import audit
from .dialect import Dialect
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
    RuleWarning,
    SchemaError,
    SourceChangedError,
    StorageError,
    UtilityWarning,
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
from .schema import (
    Categorical,
    Code,
    Continuous,
    Datetime,
    Discrete,
    Identifier,
    Mixed,
    Money,
    Percent,
    Postal,
    Schema,
    Text,
    Weight,
    Year,
)
from .sources.holdout import Split
from .utility.plan import Forecast
from .utility.verdict import Verdict

__all__ = [
    "DIP",
    "Audit",
    "BudgetError",
    "Categorical",
    "Code",
    "Comparison",
    "Continuous",
    "Datetime",
    "Dialect",
    "DiprivError",
    "DisclosureError",
    "Discrete",
    "Forecast",
    "Guarantee",
    "Identifier",
    "InputError",
    "Inspection",
    "InternalError",
    "Interval",
    "Ledger",
    "LedgerError",
    "LocalReference",
    "MissingDependencyError",
    "Mixed",
    "Money",
    "Percent",
    "Postal",
    "PrivacyWarning",
    "ReferenceDataError",
    "Release",
    "RuleWarning",
    "Schema",
    "SchemaError",
    "Sheet",
    "SourceChangedError",
    "Split",
    "StorageError",
    "Text",
    "UtilityWarning",
    "Verdict",
    "Weight",
    "Year",
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
