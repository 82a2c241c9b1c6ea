"""Linear systems and exponentials of explicit models, for other libraries and as they are published."""

from hybrid.linear.reachability import ReachabilitySystem, reachability_system
from hybrid.linear.split import solve, split_system
from hybrid.linear.system import LinearSystem
from hybrid.linear.uniformisation import Transient, transient

__all__ = [
    "LinearSystem",
    "ReachabilitySystem",
    "Transient",
    "reachability_system",
    "solve",
    "split_system",
    "transient",
]
