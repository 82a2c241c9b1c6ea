"""The model that a command works on, from the options that every command takes."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from hybrid.cli.console import Console
from hybrid.loading import load
from hybrid.model import Model
from mtbdd.language import parse_constants


def built_model(
    options: argparse.Namespace, console: Console, constants: Mapping[str, Any] | None = None
) -> Model:
    """Build the model and show its warnings.

    Parameters
    ----------
    options : Namespace
    console : Console
    constants : mapping, optional
        In place of those that the options give.

    Raises
    ------
    hybrid.HybridError
        The file is none that a model can be made of.
    """
    console.enter("parse")

    def told(text: str) -> None:
        console.enter("build")
        console.progress(text)

    model = load(
        options.model,
        parse_constants(options.const) if constants is None else constants,
        fix_deadlocks=not options.no_fix_deadlocks,
        package=options.package,
        order=options.order,
        build=options.build,
        progress=told,
        type=options.type,
        states=options.states,
        labels=options.labels,
        state_rewards=options.state_rewards,
        transition_rewards=options.transition_rewards,
    )
    for warning in model.warnings:
        console.warn(warning)
    return model
