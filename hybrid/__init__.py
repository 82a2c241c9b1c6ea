"""The hybrid engine: numerical model checking on compressed symbolic matrices.

>>> import hybrid
>>> model = hybrid.load("kanban.prism", constants={"t": 5})     # doctest: +SKIP
>>> matrix = hybrid.inject(model.transitions, level="min-time") # doctest: +SKIP
>>> answer = hybrid.check(model, 'R{"throughput"}=? [ S ]')     # doctest: +SKIP

Names and parts, such as `hybrid.analysis.linear`, are imported when first used, so that `import hybrid` costs
next to nothing.
"""

from __future__ import annotations

import sys

from mtbdd.base.lazy_loading import MovedModules, lazy_names

# `typing.TYPE_CHECKING` without importing `typing`: 30 ms in which an interrupt still shows a traceback.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from hybrid import properties as properties
    from hybrid import solvers as solvers
    from hybrid.analysis import graphs as graphs
    from hybrid.analysis import linear as linear
    from hybrid.analysis.ctl import Witness
    from hybrid.analysis.linear.system import solve
    from hybrid.analysis.linear.uniformisation import Transient, transient
    from hybrid.analysis.memory_scheduler import MemoryScheduler
    from hybrid.analysis.run.options import CheckOptions
    from hybrid.analysis.run.statistics import Reduction, SolveStatistics
    from hybrid.analysis.scheduler import Scheduler
    from hybrid.app import explorer as explorer
    from hybrid.app.api import check, check_all
    from hybrid.app.distributions import Distribution, distribution
    from hybrid.app.experiments import ExperimentTable, experiment
    from hybrid.checking import simulation as simulation
    from hybrid.checking.answer import Answer
    from hybrid.checking.certificates.verify import Verified, verify
    from hybrid.checking.filters import Range
    from hybrid.checking.multi_objective import MultiObjectiveResult
    from hybrid.checking.simulation.paths import simulate
    from hybrid.checking.simulation.walk import SamplePaths
    from hybrid.matrix import backends as backends
    from hybrid.matrix import explicit as explicit
    from hybrid.matrix.explicit.extract import explicit_matrix
    from hybrid.matrix.operators.hybrid_matrix import HybridMatrix
    from hybrid.matrix.operators.inject import inject
    from hybrid.matrix.space.base import Solution
    from hybrid.models import exploration as exploration
    from hybrid.models import interchange as interchange
    from hybrid.models import lumping as lumping
    from hybrid.models.interchange.formats import export
    from hybrid.models.interchange.from_arrays import from_scipy
    from hybrid.models.interchange.from_dd import from_dd
    from hybrid.models.loading import load, parse
    from hybrid.models.lumping.checker import QuotientModel, quotient
    from hybrid.models.model import Model
    from hybrid.models.modelling import ModelBuilder
    from mtbdd.base.errors import HybridError
    from mtbdd.build.model import SymbolicModel
    from mtbdd.language import LanguageError

    __version__: str

__all__ = [
    "Answer", "CheckOptions", "Distribution", "ExperimentTable", "HybridError", "HybridMatrix",
    "LanguageError", "MemoryScheduler", "Model", "ModelBuilder", "MultiObjectiveResult", "QuotientModel",
    "Range", "Reduction", "SamplePaths", "Scheduler", "Solution", "SolveStatistics", "SymbolicModel",
    "Transient", "Verified", "Witness", "check", "check_all", "distribution", "experiment", "explicit_matrix",
    "export", "from_dd", "from_scipy", "inject", "load", "parse", "quotient", "simulate", "solve",
    "transient", "verify",
]  # fmt: skip

DISTRIBUTION = "hybrid-model-checker"
"""The distribution of this package; dwave-hybrid installs another package of the same name."""

_HOMES = {
    "analysis.ctl": ("Witness",),
    "analysis.linear.system": ("solve",),
    "analysis.linear.uniformisation": ("Transient", "transient"),
    "analysis.memory_scheduler": ("MemoryScheduler",),
    "analysis.run.options": ("CheckOptions",),
    "analysis.run.statistics": ("Reduction", "SolveStatistics"),
    "analysis.scheduler": ("Scheduler",),
    "app.api": ("check", "check_all"),
    "app.distributions": ("Distribution", "distribution"),
    "app.experiments": ("ExperimentTable", "experiment"),
    "checking.answer": ("Answer",),
    "checking.certificates.verify": ("Verified", "verify"),
    "checking.filters": ("Range",),
    "checking.multi_objective": ("MultiObjectiveResult",),
    "checking.simulation.paths": ("simulate",),
    "checking.simulation.walk": ("SamplePaths",),
    "matrix.explicit.extract": ("explicit_matrix",),
    "matrix.operators.hybrid_matrix": ("HybridMatrix",),
    "matrix.operators.inject": ("inject",),
    "matrix.space.base": ("Solution",),
    "models.interchange.formats": ("export",),
    "models.interchange.from_arrays": ("from_scipy",),
    "models.interchange.from_dd": ("from_dd",),
    "models.loading": ("load", "parse"),
    "models.lumping.checker": ("QuotientModel", "quotient"),
    "models.model": ("Model",),
    "models.modelling": ("ModelBuilder",),
    "mtbdd.base.errors": ("HybridError",),
    "mtbdd.build.model": ("SymbolicModel",),
    "mtbdd.language": ("LanguageError",),
}

_PARTS = {
    "backends": "matrix.backends",
    "cpu": "matrix.cpu",
    "explicit": "matrix.explicit",
    "exploration": "models.exploration",
    "explorer": "app.explorer",
    "graphs": "analysis.graphs",
    "injection": "matrix.injection",
    "interchange": "models.interchange",
    "linear": "analysis.linear",
    "lumping": "models.lumping",
    "properties": "properties",
    "simulation": "checking.simulation",
    "solvers": "solvers",
    "analysis": "analysis",
    "app": "app",
    "base": "base",
    "checking": "checking",
    "matrix": "matrix",
    "models": "models",
}

_GONE = {"ordering": "orders are not searched for any more, order='auto' of hybrid.load looks at three"}
"""Names of the release before, with the message that names their replacement."""

# Former names of packages: `import hybrid.linear` finds them for one release, with a warning.
_MOVED = {
    "gpu_kernels.formats": "gpu_kernels.explicit",
    "hybrid.automata": "hybrid.properties.automata",
    "hybrid.backends": "hybrid.matrix.backends",
    "hybrid.certificates": "hybrid.checking.certificates",
    "hybrid.cpu": "hybrid.matrix.cpu",
    "hybrid.errors": "hybrid.base.errors",
    "hybrid.exact": "hybrid.analysis.exact",
    "hybrid.explicit": "hybrid.matrix.explicit",
    "hybrid.exploration": "hybrid.models.exploration",
    "hybrid.explorer": "hybrid.app.explorer",
    "hybrid.gpu": "hybrid.matrix.gpu",
    "hybrid.graphs": "hybrid.analysis.graphs",
    "hybrid.injection": "hybrid.matrix.injection",
    "hybrid.interchange": "hybrid.models.interchange",
    "hybrid.levels": "hybrid.matrix.levels",
    "hybrid.linear": "hybrid.analysis.linear",
    "hybrid.lumping": "hybrid.models.lumping",
    "hybrid.modelling": "hybrid.models.modelling",
    "hybrid.operators": "hybrid.matrix.operators",
    "hybrid.simulation": "hybrid.checking.simulation",
    "hybrid.properties.automata.hoa_reading": "hybrid.properties.automata.hoa",
    "hybrid.properties.automata.hoa_writing": "hybrid.properties.automata.hoa",
    "hybrid.properties.automata.reading_formulas": "hybrid.properties.automata.choosing",
    "mtbdd.package": "mtbdd.diagrams.manager",
}

sys.meta_path.insert(0, MovedModules(_MOVED))

if not TYPE_CHECKING:  # type checkers have the imports above, and report a name that is not among them
    _named = lazy_names(__name__, _HOMES, _PARTS, _GONE)

    def __getattr__(name: str) -> Any:
        """Import a public name or a part on first use."""
        if name == "__version__":
            from hybrid.base.installing import installed_version

            return installed_version()
        return _named(name)


def __dir__() -> list[str]:
    """Return the public names and parts."""
    return sorted([*__all__, *_PARTS, "__version__"])
