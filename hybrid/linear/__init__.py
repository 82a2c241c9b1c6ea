"""Linear systems of models in explicit form, for other libraries and as they are published."""

from hybrid.linear.reachability import ReachabilitySystem, reachability_system
from hybrid.linear.split import solve, split_system
from hybrid.linear.system import LinearSystem

__all__ = ["LinearSystem", "ReachabilitySystem", "reachability_system", "solve", "split_system"]
