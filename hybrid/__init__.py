"""The hybrid engine: numerical model checking on compressed symbolic matrices.

>>> import hybrid
>>> model = hybrid.load("kanban.prism", constants={"t": 5})     # doctest: +SKIP
>>> matrix = hybrid.inject(model.transitions, level="min-time") # doctest: +SKIP
>>> answer = hybrid.check(model, 'R{"throughput"}=? [ S ]')     # doctest: +SKIP

Names and parts, such as `hybrid.linear`, are imported when first used, so that `import hybrid` costs next to
nothing.
"""

from __future__ import annotations

# What `typing` has by this name takes 30 ms to import, in which an interrupt still shows a traceback.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from hybrid import backends as backends
    from hybrid import explicit as explicit
    from hybrid import exploration as exploration
    from hybrid import explorer as explorer
    from hybrid import graphs as graphs
    from hybrid import interchange as interchange
    from hybrid import linear as linear
    from hybrid import lumping as lumping
    from hybrid import properties as properties
    from hybrid import simulation as simulation
    from hybrid import solvers as solvers
    from hybrid.api import check, check_all
    from hybrid.certificates.verify import verify
    from hybrid.checking.answer import Answer
    from hybrid.experiments import ExperimentTable, experiment
    from hybrid.explicit.extract import explicit_matrix
    from hybrid.interchange.formats import export
    from hybrid.interchange.from_arrays import from_scipy
    from hybrid.interchange.from_dd import from_dd
    from hybrid.linear.uniformisation import transient
    from hybrid.loading import load, parse
    from hybrid.model import Model
    from hybrid.modelling import ModelBuilder
    from hybrid.operators.hybrid_matrix import HybridMatrix
    from hybrid.operators.inject import inject
    from hybrid.run.options import CheckOptions
    from mtbdd.errors import HybridError
    from mtbdd.language import LanguageError
    from mtbdd.model import SymbolicModel

    __version__: str

__all__ = [
    "Answer",
    "CheckOptions",
    "ExperimentTable",
    "HybridError",
    "HybridMatrix",
    "LanguageError",
    "Model",
    "ModelBuilder",
    "SymbolicModel",
    "check",
    "check_all",
    "experiment",
    "explicit_matrix",
    "export",
    "from_dd",
    "from_scipy",
    "inject",
    "load",
    "parse",
    "transient",
    "verify",
]

DISTRIBUTION = "hybrid-model-checker"
"""What installs this package; dwave-hybrid installs another one of the same name."""

_HOMES = {
    "Answer": "hybrid.checking.answer",
    "CheckOptions": "hybrid.run.options",
    "ExperimentTable": "hybrid.experiments",
    "HybridError": "mtbdd.errors",
    "HybridMatrix": "hybrid.operators.hybrid_matrix",
    "LanguageError": "mtbdd.language",
    "Model": "hybrid.model",
    "ModelBuilder": "hybrid.modelling",
    "SymbolicModel": "mtbdd.model",
    "check": "hybrid.api",
    "check_all": "hybrid.api",
    "experiment": "hybrid.experiments",
    "explicit_matrix": "hybrid.explicit.extract",
    "export": "hybrid.interchange.formats",
    "from_dd": "hybrid.interchange.from_dd",
    "from_scipy": "hybrid.interchange.from_arrays",
    "inject": "hybrid.operators.inject",
    "load": "hybrid.loading",
    "parse": "hybrid.loading",
    "transient": "hybrid.linear.uniformisation",
    "verify": "hybrid.certificates.verify",
}


_PARTS = {
    "backends": "hybrid.backends",
    "cpu": "hybrid.cpu",
    "explicit": "hybrid.explicit",
    "exploration": "hybrid.exploration",
    "explorer": "hybrid.explorer",
    "graphs": "hybrid.graphs",
    "injection": "hybrid.injection",
    "interchange": "hybrid.interchange",
    "linear": "hybrid.linear",
    "lumping": "hybrid.lumping",
    "properties": "hybrid.properties",
    "simulation": "hybrid.simulation",
    "solvers": "hybrid.solvers",
}

_GONE = {"ordering": "orders are not searched for any more, order='auto' of hybrid.load looks at three"}
"""What the version before had, and what to use in its place."""

if not TYPE_CHECKING:  # type checkers have the imports above, and report a name that is not among them

    def __getattr__(name: str) -> Any:
        """Import a public name or a part on first use."""
        if name == "__version__":
            from hybrid.core.installing import installed_version

            return installed_version()
        from importlib import import_module

        if name in _PARTS:
            return import_module(_PARTS[name])
        if name not in _HOMES:
            instead = f": {_GONE[name]}" if name in _GONE else ""
            raise AttributeError(f"module 'hybrid' has no attribute {name!r}{instead}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return the public names and parts."""
    return sorted([*__all__, *_PARTS, "__version__"])
