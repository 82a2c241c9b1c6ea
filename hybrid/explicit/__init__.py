"""Explicit matrices: extracted from diagrams, reordered, measured, streamed in parts."""

from hybrid.explicit.csr import CsrArrays
from hybrid.explicit.density import density_of_diagram, density_of_rows
from hybrid.explicit.extract import ExplicitSizes, explicit_matrix, explicit_sizes
from hybrid.explicit.measures import StructureMeasures, measure_structure
from hybrid.explicit.operators import ExplicitOperator, FunctionOperator
from hybrid.explicit.partition import RowPartition
from hybrid.explicit.reorder import Reordering, bfs_order, frontier_order
from hybrid.explicit.streamed import PartTimes, StreamedOperator

__all__ = [
    "CsrArrays",
    "ExplicitOperator",
    "ExplicitSizes",
    "FunctionOperator",
    "PartTimes",
    "Reordering",
    "RowPartition",
    "StreamedOperator",
    "StructureMeasures",
    "bfs_order",
    "density_of_diagram",
    "density_of_rows",
    "explicit_matrix",
    "explicit_sizes",
    "frontier_order",
    "measure_structure",
]
