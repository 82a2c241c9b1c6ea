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
    "BuildError": "language.errors",
    "ChoiceLayer": "build.choices",
    "ChoicePart": "build.choices",
    "Encoding": "diagrams.encoding",
    "Level": "offset.offset",
    "Manager": "diagrams.manager",
    "OffsetMTBDD": "offset.offset",
    "Partition": "diagrams.partition",
    "StateIndex": "offset.states",
    "SymbolicMatrix": "diagrams.matrix",
    "SymbolicModel": "build.model",
    "add": "diagrams.arithmetic",
    "build_model": "build.build",
    "divide": "diagrams.arithmetic",
    "index_states": "offset.states",
    "matrix_matrix": "diagrams.arithmetic",
    "matrix_vector": "diagrams.arithmetic",
    "maximum": "diagrams.arithmetic",
    "maximum_over": "diagrams.arithmetic",
    "minimum": "diagrams.arithmetic",
    "minimum_over": "diagrams.arithmetic",
    "multiply": "diagrams.arithmetic",
    "offset_label": "offset.convert",
    "restricted": "diagrams.arithmetic",
    "scaled": "diagrams.arithmetic",
    "sum_over": "diagrams.arithmetic",
    "to_dd": "diagrams.matrix",
    "transferred": "diagrams.matrix",
    "united": "diagrams.arithmetic",
    "vector_matrix": "diagrams.arithmetic",
}

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
