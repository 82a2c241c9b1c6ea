"""Linear systems and exponentials of explicit models, for other libraries and as they are published."""

from hybrid.analysis.linear.system import (
    LinearSystem,
    ReachabilitySystem,
    reachability_system,
    solve,
    split_system,
)
from hybrid.analysis.linear.uniformisation import Transient, transient

__all__ = [
    "LinearSystem", "ReachabilitySystem", "Transient", "reachability_system", "solve", "split_system",
    "transient",
]  # fmt: skip
