"""Models without a text, written out or as diagrams: read from files and arrays, and written to them.

Names are imported when first used, so that commands do not load formats that they do not need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybrid.errors import InterchangeError
    from hybrid.interchange.explicit_model import ExplicitModel, ExplicitReward, StateVariable
    from hybrid.interchange.formats import read_model, targets_of, write_model
    from hybrid.interchange.write_out import written_out

__all__ = [
    "ExplicitModel",
    "ExplicitReward",
    "InterchangeError",
    "StateVariable",
    "read_model",
    "targets_of",
    "write_model",
    "written_out",
]

_HOMES = {
    "ExplicitModel": "hybrid.interchange.explicit_model",
    "ExplicitReward": "hybrid.interchange.explicit_model",
    "InterchangeError": "hybrid.errors",
    "StateVariable": "hybrid.interchange.explicit_model",
    "read_model": "hybrid.interchange.formats",
    "targets_of": "hybrid.interchange.formats",
    "write_model": "hybrid.interchange.formats",
    "written_out": "hybrid.interchange.write_out",
}

if not TYPE_CHECKING:  # type checkers have the imports above

    def __getattr__(name: str) -> Any:
        """Import a public name on first use."""
        if name not in _HOMES:
            raise AttributeError(f"module 'hybrid.interchange' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
