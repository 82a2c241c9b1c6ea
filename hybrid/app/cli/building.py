"""The model that a command works on, from the options that every command takes."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from hybrid.app.cli.asked_properties import PROPERTY_SUFFIXES, with_hint
from hybrid.app.cli.console import Console
from hybrid.models.loading import load
from hybrid.models.model import Model
from mtbdd.language import LanguageError, parse_constants
from mtbdd.language.constants import Ignored


def built_model(
    options: argparse.Namespace,
    console: Console,
    constants: Mapping[str, Any] | None = None,
    spare: Ignored = False,
) -> Model:
    """Build the model and show its warnings.

    Parameters
    ----------
    options : Namespace
    console : Console
    constants : mapping, optional
        In place of those that the options give.
    spare : bool or collection of str
        Which constants the model need not declare.

    Raises
    ------
    hybrid.HybridError
        The file is none that a model can be made of.
    """
    console.enter("parse")

    def told(text: str) -> None:
        console.enter("build")
        console.progress(text)

    try:
        model = _loaded(options, constants, spare, told)
    except LanguageError as error:
        if not str(options.model).endswith(PROPERTY_SUFFIXES):
            raise
        command = options.command if hasattr(options, "property") else "check"
        hint = f"files of properties stand behind the model: hybrid {command} MODEL {options.model}"
        raise with_hint(error, f"; {hint}") from None
    for warning in model.warnings:
        console.warn(warning)
    return model


def _loaded(
    options: argparse.Namespace,
    constants: Mapping[str, Any] | None,
    spare: Ignored,
    told: Callable[[str], None],
) -> Model:
    """Read and build the model."""
    return load(
        options.model,
        parse_constants(options.const) if constants is None else constants,
        fix_deadlocks=not options.no_fix_deadlocks,
        package=options.package,
        order=options.order,
        build=options.build,
        ignore_unknown=spare,
        progress=told,
        type=options.type,
        states=options.states,
        labels=options.labels,
        state_rewards=options.state_rewards,
        transition_rewards=options.transition_rewards,
    )
