"""`--bisimulation`: what checks, what does not go with it, and what it saved, as text."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.reduction import Reduction
from hybrid.base.units import seconds_text
from hybrid.checking.checker import Checker

if TYPE_CHECKING:
    from hybrid.models.lumping import LumpingChecker


def refuse_with_bisimulation(options: argparse.Namespace, chosen: CheckOptions, parts: bool) -> None:
    """Refuse options that speak of the model's own states where its blocks are checked; `parts` share them.

    Raises
    ------
    OptionError
    """
    if not options.bisimulation:
        return
    from hybrid.models.lumping.refusing import refuse_with_quotient

    refuse_with_quotient(
        chosen,
        scheduler=options.scheduler is not None,
        witness=options.witness,
        certificate=options.certificate is not None,
        parts=parts,
    )


def checker_class(options: argparse.Namespace) -> type[Checker] | type[LumpingChecker]:
    """Return what checks properties: of the model, or of its quotients."""
    if not options.bisimulation:
        return Checker
    from hybrid.models.lumping import LumpingChecker  # most checks need none

    return LumpingChecker


def reduction_text(found: Reduction) -> str:
    """Return states and blocks, rounds and seconds, as text shows them behind an answer."""
    rounds = "1 round" if found.rounds == 1 else f"{found.rounds:,} rounds"
    text = f"{found.states:,} states in {found.blocks:,} blocks, {rounds} in {seconds_text(found.seconds)}"
    return text if found.block_transitions is not None else f"{text}; the model itself is checked"
