"""Models with every state and transition written out: read from files and arrays, and written to them."""

from hybrid.interchange.explicit_model import ExplicitModel, ExplicitReward, StateVariable
from hybrid.interchange.faults import InterchangeError

__all__ = ["ExplicitModel", "ExplicitReward", "InterchangeError", "StateVariable"]
