"""The quotient of a model by strong bisimulation (lumping): states that no question tells apart become one.

`checker` is what commands and the library use, `quotient` what makes the smaller model and proves it,
`partition` finds the blocks with the compiled loops of `kernels` and numbers that add up exactly,
`questions` tells what a property asks of the states, and what is not answered from blocks.
"""

from __future__ import annotations

from hybrid.models.lumping.checker import LumpingChecker
from hybrid.models.lumping.quotient import ModelQuotient, quotient

__all__ = ["LumpingChecker", "ModelQuotient", "quotient"]
