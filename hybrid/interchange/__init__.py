"""Models without a text, written out or as diagrams: read from files and arrays, and written to them."""

from hybrid.interchange.explicit_model import ExplicitModel, ExplicitReward, StateVariable
from hybrid.interchange.faults import InterchangeError
from hybrid.interchange.from_dd import from_dd
from hybrid.interchange.symbolic_file import read_symbolic, write_symbolic

__all__ = [
    "ExplicitModel",
    "ExplicitReward",
    "InterchangeError",
    "StateVariable",
    "from_dd",
    "read_symbolic",
    "write_symbolic",
]
