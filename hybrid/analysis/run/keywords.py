"""Keywords of functions that hand them on, as types; `hybrid.check_all` and `hybrid.load` explain each."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from hybrid.base.option_types import (
    BackendName,
    CheckEngine,
    LevelOption,
    MethodName,
    ModelTypeName,
    OrderName,
    PackageName,
    Representation,
    StorageName,
)
from mtbdd.language.limits import Limits

FileName = str | os.PathLike[str]


class SolutionKeywords(TypedDict, total=False):
    """Keywords of `hybrid.CheckOptions`: how values are found."""

    engine: CheckEngine
    backend: BackendName
    level: LevelOption
    method: MethodName
    omega: float | None
    epsilon: float
    absolute: bool
    max_iterations: int
    storage: StorageName
    representation: Representation
    automaton_tool: str
    exact: bool
    pareto_epsilon: float


class AnswerKeywords(SolutionKeywords, total=False):
    """Keywords of all answers: how they are found, and from what."""

    scheduler: bool
    bisimulation: bool


class KeptKeywords(AnswerKeywords, total=False):
    """Keywords of an experiment's answers."""

    values: bool


class CheckKeywords(AnswerKeywords, total=False):
    """Keywords of `hybrid.check_all` that `hybrid.check` hands on."""

    values: bool | FileName
    progress: Callable[[int, float], None] | None
    witness: bool
    ranks: Any
    checkpoint: FileName | None
    checkpoint_minutes: float
    spill: FileName | None


class LoadKeywords(TypedDict, total=False):
    """Keywords of `hybrid.load` that `hybrid.experiment` hands on."""

    fix_deadlocks: bool
    package: PackageName
    order: OrderName
    timeout: float | None
    memory: int | None
    limits: Limits | None
    type: ModelTypeName | None
    states: FileName | None
    labels: FileName | None
    state_rewards: Sequence[FileName]
    transition_rewards: Sequence[FileName]


class ExperimentKeywords(LoadKeywords, KeptKeywords, total=False):
    """Keywords of `hybrid.experiment`."""
