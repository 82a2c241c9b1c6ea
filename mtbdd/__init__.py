"""Symbolic matrices: BDD and MTBDD encodings of transition relations, built on `dd`."""

from __future__ import annotations

from mtbdd.lazy_loading import lazy_names

# What `typing` has by this name takes a while to import.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from mtbdd import language as language
    from mtbdd.arithmetic import (
        add,
        divide,
        maximum,
        maximum_over,
        minimum,
        minimum_over,
        multiply,
        restricted,
        scaled,
        sum_over,
        united,
    )
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
    from mtbdd.products import matrix_matrix, matrix_vector, vector_matrix
    from mtbdd.states import StateIndex, index_states
    from mtbdd.transfer import to_dd, transferred

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
    "add": "arithmetic",
    "build_model": "build",
    "divide": "arithmetic",
    "index_states": "states",
    "matrix_matrix": "products",
    "matrix_vector": "products",
    "maximum": "arithmetic",
    "maximum_over": "arithmetic",
    "minimum": "arithmetic",
    "minimum_over": "arithmetic",
    "multiply": "arithmetic",
    "offset_label": "convert",
    "restricted": "arithmetic",
    "scaled": "arithmetic",
    "sum_over": "arithmetic",
    "to_dd": "transfer",
    "transferred": "transfer",
    "united": "arithmetic",
    "vector_matrix": "products",
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
    "add",
    "build_model",
    "divide",
    "index_states",
    "matrix_matrix",
    "matrix_vector",
    "maximum",
    "maximum_over",
    "minimum",
    "minimum_over",
    "multiply",
    "offset_label",
    "restricted",
    "scaled",
    "sum_over",
    "to_dd",
    "transferred",
    "united",
    "vector_matrix",
]

_PARTS = ("language",)

if not TYPE_CHECKING:  # type checkers have the imports above
    # On first use: the language alone does not load `dd`.
    __getattr__ = lazy_names(__name__, _HOMES, _PARTS)
