"""Models without a text, written out or as diagrams: read from files and arrays, and written to them.

Names are imported when first used, so that commands do not load formats that they do not need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.base.errors import InterchangeError
from mtbdd.base.lazy_loading import lazy_names

if TYPE_CHECKING:
    from hybrid.models.interchange.explicit_model import ExplicitModel, ExplicitReward, StateVariable
    from hybrid.models.interchange.formats import read_model, targets_of, write_model
    from hybrid.models.interchange.write_out import written_out

__all__ = [
    "ExplicitModel", "ExplicitReward", "InterchangeError", "StateVariable", "read_model", "targets_of",
    "write_model", "written_out",
]  # fmt: skip

_HOMES = {
    "explicit_model": ("ExplicitModel", "ExplicitReward", "StateVariable"),
    "formats": ("read_model", "targets_of", "write_model"),
    "write_out": ("written_out",),
}

if not TYPE_CHECKING:  # type checkers have the imports above
    __getattr__ = lazy_names(__name__, _HOMES)
