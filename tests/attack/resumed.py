"""Cases of the attack whose checks are ended at random moments, and gone on with; the same judge."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from random import Random
from typing import Any
from unittest.mock import patch

import hybrid
import hybrid.analysis.checkpoints.checkpoint as solution_record
from mtbdd.build.model import SymbolicModel
from tests.attack.cases import Case, Record, run_case
from tests.attack.in_block_rows import small_block_rows
from tests.builders.killing import Killed, Killer

_RUNS = 3
"""Runs that are ended, at most."""


def run_resumed(case: Case) -> Record:
    """Check the properties of a case, ended at some looks, and judge what comes out in the end.

    Every other run takes block rows of a few states, of sizes of its own: what another run kept of its own
    block rows is not gone on with.
    """
    rng = Random(f"{case.seed}/{case.number}/resumed")
    sizes = Random(f"{case.seed}/{case.number}/strips")

    def ask(model: SymbolicModel, text: str, **options: Any) -> hybrid.Answer:
        with (
            tempfile.TemporaryDirectory() as folder,
            patch.object(solution_record, "_LEAST_SECONDS", 0.0),
            patch.object(solution_record, "_BYTES_PER_SECOND", float("inf")),
        ):
            for _ in range(_RUNS):
                own = options | ({"engine": "hybrid"} if rng.random() < 0.5 else {})
                killer = Killer(rng.choice((1, 2, 3, 5, 10, 20, 50)))
                try:
                    with small_block_rows(sizes) if sizes.random() < 0.5 else nullcontext():
                        return hybrid.check(
                            model, text, progress=killer, checkpoint=folder,
                            checkpoint_minutes=rng.choice((0.0, 1e6)), **own,
                        )  # fmt: skip
                except Killed:
                    continue
            with small_block_rows(sizes) if sizes.random() < 0.5 else nullcontext():
                return hybrid.check(model, text, checkpoint=folder, **options)

    return run_case(case, ask)
