"""The checkpoint of a check, made from what its caller asks for."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.analysis.run.options import CheckOptions
from hybrid.base.check_options import MINUTES
from hybrid.base.errors import OptionError
from mtbdd.base.errors import option
from mtbdd.build.model import SymbolicModel

if TYPE_CHECKING:
    from hybrid.analysis.checkpoints.checkpoint import Checkpoint, Teller


"""Between two states that are written, unless others are given."""


def checkpoint_of(
    model: SymbolicModel,
    options: CheckOptions,
    folder: str | os.PathLike[str] | None,
    minutes: float = MINUTES,
    teller: Teller | None = None,
) -> Checkpoint | None:
    """Return what keeps the iterations of a check; None if no folder was given.

    Another engine, backend or level, or more iterations, go on with what is kept.

    Parameters
    ----------
    model : SymbolicModel
        As this process has it; all of them call it.
    minutes : float
        Between two states that are written; 0: every state that a method offers.
    teller : Teller, optional
        Tells the user; by default a log and Python's warnings do.

    Raises
    ------
    OptionError, CheckpointError
    """
    if folder is None:
        if minutes != MINUTES:
            raise OptionError(
                f"{option('every')} says how often a folder of {option('checkpoint')} is written; give one, "
                "or leave it out"
            )
        return None
    if not (math.isfinite(minutes) and minutes >= 0.0):
        raise OptionError(f"expected minutes between checkpoints, not negative, got {minutes}")
    if options.exact:
        raise OptionError(
            f"{option('checkpoint')} keeps iterations, and exact answers have none; leave one of them out"
        )
    from hybrid.analysis.checkpoints.checkpoint import Checkpoint

    criterion = options.criterion
    kept = {
        "method": options.method,
        "omega": options.omega,
        "epsilon": criterion.epsilon,
        "absolute": criterion.absolute,
    }
    return Checkpoint(Path(folder), minutes, model, kept, teller)
