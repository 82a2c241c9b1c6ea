"""Symbolic matrices: BDD and MTBDD encodings of transition relations, built on `dd`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtbdd.build import build_model
    from mtbdd.choices import ChoiceLayer, ChoicePart
    from mtbdd.convert import offset_label
    from mtbdd.encoding import Encoding
    from mtbdd.faults import BuildError
    from mtbdd.level import Level
    from mtbdd.manager import Manager
    from mtbdd.matrix import SymbolicMatrix
    from mtbdd.model import SymbolicModel
    from mtbdd.offset import OffsetMTBDD
    from mtbdd.partition import Partition
    from mtbdd.states import StateIndex, index_states

_HOMES = {
    "BuildError": "faults",
    "ChoiceLayer": "choices",
    "ChoicePart": "choices",
    "Encoding": "encoding",
    "Level": "level",
    "Manager": "manager",
    "OffsetMTBDD": "offset",
    "Partition": "partition",
    "StateIndex": "states",
    "SymbolicMatrix": "matrix",
    "SymbolicModel": "model",
    "build_model": "build",
    "index_states": "states",
    "offset_label": "convert",
}

__all__ = [
    "BuildError",
    "ChoiceLayer",
    "ChoicePart",
    "Encoding",
    "Level",
    "Manager",
    "OffsetMTBDD",
    "Partition",
    "StateIndex",
    "SymbolicMatrix",
    "SymbolicModel",
    "build_model",
    "index_states",
    "offset_label",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that the language alone does not load `dd`."""
    if name not in _HOMES:
        raise AttributeError(f"module 'mtbdd' has no attribute {name!r}")
    value = getattr(import_module(f"mtbdd.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
