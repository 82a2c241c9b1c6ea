"""The quotient of a model by strong bisimulation (lumping): states that no property distinguishes become one.

`checker` answers properties from quotients, and returns the quotient for some properties as a
model. `quotient` makes and proves it, `partition` finds the blocks with the compiled loops of `kernels` and
exact sums, `diagrams` finds them on decision diagrams. `questions` has the sets and rewards of a property.
"""

from __future__ import annotations

from hybrid.models.lumping.checker import LumpingChecker
from hybrid.models.lumping.quotient import ModelQuotient, quotient_by_sets

__all__ = ["LumpingChecker", "ModelQuotient", "quotient_by_sets"]
