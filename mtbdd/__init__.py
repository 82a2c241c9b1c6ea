"""Symbolic matrices: BDD and MTBDD encodings of transition relations, built on `dd`."""

from __future__ import annotations

from mtbdd.base.lazy_loading import lazy_names

# `typing.TYPE_CHECKING` without importing `typing`, which takes long.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from mtbdd import language as language
    from mtbdd.build.build import build_model
    from mtbdd.build.choices import ChoiceLayer, ChoicePart
    from mtbdd.build.model import SymbolicModel
    from mtbdd.diagrams.arithmetic import (
        add,
        divide,
        matrix_matrix,
        matrix_vector,
        maximum,
        maximum_over,
        minimum,
        minimum_over,
        multiply,
        restricted,
        scaled,
        sum_over,
        united,
        vector_matrix,
    )
    from mtbdd.diagrams.encoding import Encoding
    from mtbdd.diagrams.manager import Manager
    from mtbdd.diagrams.matrix import SymbolicMatrix, to_dd, transferred
    from mtbdd.diagrams.partition import Partition
    from mtbdd.language.errors import BuildError
    from mtbdd.offset.convert import offset_label
    from mtbdd.offset.offset import Level, OffsetMTBDD
    from mtbdd.offset.states import StateIndex, index_states

_HOMES = {
    "build.build": ("build_model",),
    "build.choices": ("ChoiceLayer", "ChoicePart"),
    "build.model": ("SymbolicModel",),
    "diagrams.arithmetic": ("add", "divide", "matrix_matrix", "matrix_vector", "maximum", "maximum_over",
        "minimum", "minimum_over", "multiply", "restricted", "scaled", "sum_over", "united", "vector_matrix"),
    "diagrams.encoding": ("Encoding",),
    "diagrams.manager": ("Manager",),
    "diagrams.matrix": ("SymbolicMatrix", "to_dd", "transferred"),
    "diagrams.partition": ("Partition",),
    "language.errors": ("BuildError",),
    "offset.convert": ("offset_label",),
    "offset.offset": ("Level", "OffsetMTBDD"),
    "offset.states": ("StateIndex", "index_states"),
}  # fmt: skip

__all__ = [
    "BuildError", "ChoiceLayer", "ChoicePart", "Encoding", "Level", "Manager", "OffsetMTBDD", "Partition",
    "StateIndex", "SymbolicMatrix", "SymbolicModel", "add", "build_model", "divide", "index_states",
    "matrix_matrix", "matrix_vector", "maximum", "maximum_over", "minimum", "minimum_over", "multiply",
    "offset_label", "restricted", "scaled", "sum_over", "to_dd", "transferred", "united", "vector_matrix",
]  # fmt: skip

_PARTS = ("language",)

if not TYPE_CHECKING:  # type checkers have the imports above
    # On first use: the language alone does not load `dd`.
    __getattr__ = lazy_names(__name__, _HOMES, _PARTS)
