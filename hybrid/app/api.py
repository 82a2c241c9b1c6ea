"""The library's front door for properties: check one, check a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Unpack

from hybrid.analysis.run.options import SOLUTION_KEYWORDS, CheckKeywords, CheckOptions, chosen_options
from hybrid.analysis.run.state_files import check_suffix, publish_state_values
from hybrid.base.check_options import OPTIONS
from hybrid.base.errors import OptionError, PropertyError
from hybrid.checking.answer import Answer
from hybrid.checking.checker import Checker
from hybrid.checking.in_parts import (
    Ranks,
    arrays_on_disk,
    checkpoint_of,
    in_parts,
    options_of_parts,
    options_on_disk,
    take_own_card,
)
from hybrid.properties import Properties, load_properties, parse_properties, resolve_properties
from mtbdd.build.model import SymbolicModel

Constants = Mapping[str, bool | int | float]

_CALL_KEYWORDS = tuple(name for name in CheckKeywords.__annotations__ if name not in SOLUTION_KEYWORDS)


def check(
    model: SymbolicModel,
    prop: str,
    constants: Constants | None = None,
    *,
    options: CheckOptions | None = None,
    throw: bool = True,
    **overrides: Unpack[CheckKeywords],
) -> Answer:
    """Check one property of a model.

    Parameters
    ----------
    model : SymbolicModel
        From `hybrid.load`.
    prop : str
        The property's text.
    constants : mapping, optional
        Values of constants that the property's text declares.
    options : CheckOptions, optional
        How the answer is found.
    throw : bool
        Raise if there is no answer; otherwise ``answer.value`` is None, and ``answer.error`` says why.
    **overrides
        As for `check_all`: what is said here goes before `options`.

    Returns
    -------
    Answer

    Raises
    ------
    hybrid.HybridError
        The text does not parse or speaks of things that the model does not have (`LanguageError`), holds no
        property or several, an option has a wrong value; or, with `throw`, there is no answer.

    Examples
    --------
    >>> import hybrid
    >>> model = hybrid.load("kanban.prism", constants={"t": 1})                  # doctest: +SKIP
    >>> hybrid.check(model, 'R{"throughput"}=? [ S ]').value                     # doctest: +SKIP
    """
    chosen = chosen_options("check", options, overrides, _CALL_KEYWORDS)
    properties = resolve_properties(parse_properties(prop), model.source, constants)
    if len(properties.properties) != 1:
        raise PropertyError(f"expected one property, got {len(properties.properties)}; use hybrid.check_all")
    answer = _answers(model, properties, chosen, **_of_call(overrides))[0]
    if throw and answer.fault is not None:
        raise answer.fault
    return answer


def check_all(
    model: SymbolicModel,
    properties: Properties | str | os.PathLike[str],
    constants: Constants | None = None,
    *,
    options: CheckOptions | None = None,
    **overrides: Unpack[CheckKeywords],
) -> list[Answer]:
    """Check all properties of a file or text, in order.

    Parameters
    ----------
    model : SymbolicModel
    properties : Properties, str or path-like
        Resolved properties, a path object to a properties file, or text.
    constants : mapping, optional
        Values of constants that the properties leave open.
    options : CheckOptions, optional
        How answers are found.
    **overrides
        The attributes of `hybrid.CheckOptions`, which go before `options`, and those below.

    Other Parameters
    ----------------
    progress : callable, optional
        Called with (iteration, difference) about twice a second.
    scheduler : bool
        Give each answer about an MDP a scheduler that attains it, ``answer.scheduler``.
    values : bool, str or path-like
        Hold the values of all states in each answer, ``answer.values``, however many these are.  Or a file,
        .csv or .npz, that those of one property are written to as `Model.write_values` does; with `ranks`
        each process writes its part, and no process has the values of all.
    witness : bool
        Give each answer to A or E a path that shows it, ``answer.witness``, where there is one.
    ranks : int or communicator, optional
        Who shares the states: a communicator of mpi4py, of processes that all make the same call and get the
        same answers; or a number of parts in this process, one after the other, which is slower than one.
    bisimulation : bool
        Answer each property from the quotient of the model by the coarsest strong bisimulation that the
        property respects, ``answer.reduction``.  It is made from the diagrams of a chain of more than 2^22
        states, else from the list of all transitions.
    checkpoint : str or path-like, optional
        A folder in which iterations are kept while they run.  A call with the same model, properties, method
        and precision goes on where the last one was; `ranks` may be others.
    checkpoint_minutes : float
        Between two states that are written there.
    spill : str or path-like, optional
        A folder in whose files vectors and other long arrays lie while the properties are checked, where
        memory is too small for them; with the hybrid engine on the cpu.  Values of states stay there as long
        as the answers do.

    Returns
    -------
    list of Answer
        A property that cannot be answered has an ``error`` and hides no other's answer.
    """
    chosen = chosen_options("check_all", options, overrides, _CALL_KEYWORDS)
    if not isinstance(properties, Properties):
        parsed = (
            load_properties(properties) if isinstance(properties, Path) else parse_properties(str(properties))
        )
        properties = resolve_properties(parsed, model.source, constants, keep_faults=True)
    return _answers(model, properties, chosen, **_of_call(overrides))


def _of_call(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords that are about a call, not about how values are found."""
    return {name: value for name, value in overrides.items() if name in _CALL_KEYWORDS}


def _answers(
    model: SymbolicModel,
    properties: Properties,
    chosen: CheckOptions,
    *,
    progress: Callable[[int, float], None] | None = None,
    scheduler: bool = OPTIONS["scheduler"].default,
    values: bool | str | os.PathLike[str] = OPTIONS["values"].default,
    witness: bool = OPTIONS["witness"].default,
    ranks: Ranks | None = None,
    bisimulation: bool = OPTIONS["bisimulation"].default,
    checkpoint: str | os.PathLike[str] | None = OPTIONS["checkpoint"].default,
    checkpoint_minutes: float = OPTIONS["checkpoint_minutes"].default,
    spill: str | os.PathLike[str] | None = OPTIONS["spill"].default,
) -> list[Answer]:
    """Answer properties as `check_all` says."""
    if spill is not None:
        if ranks is not None or bisimulation:
            raise OptionError("spill: not offered with ranks or bisimulation; leave one of them out")
        chosen = options_on_disk(chosen)
    asked = properties.properties
    holds, file = values is not False, None if isinstance(values, bool) else values
    if file is not None:
        check_suffix(os.fspath(file), "values")
        if len(asked) != 1:
            raise OptionError(f"values: expected one property, whose values a file has, got {len(asked)}")
    if bisimulation:
        from hybrid.models.lumping import LumpingChecker
        from hybrid.models.lumping.checker import refuse_with_quotient

        refuse_with_quotient(chosen, parts=ranks is not None)
        if checkpoint is not None:
            raise OptionError("checkpoint: not offered with bisimulation; leave one of them out")
        lumping = LumpingChecker(model, chosen, progress, scheduler, holds, witness)
        return [_written(lumping.answer(prop), file) for prop in asked]
    if ranks is not None:
        if scheduler or values is True or witness:
            raise OptionError(
                "ranks: schedulers and witnesses are not given in parts, and values of all states only as a "
                "file (values='FILE.npz'); leave one out"
            )
        divided = options_of_parts(chosen)

        def of_part(part: SymbolicModel) -> list[Answer]:
            take_own_card(part.communicator, divided)
            told = progress if part.communicator.rank == 0 else None
            kept = checkpoint_of(part, divided, checkpoint, checkpoint_minutes)
            checker = Checker(part, divided, told, values=holds, checkpoint=kept)
            return [_written(checker.answer(prop), file) for prop in asked]

        return in_parts(model, ranks, of_part)
    kept = checkpoint_of(model, chosen, checkpoint, checkpoint_minutes)
    with arrays_on_disk(spill):
        checker, answers = Checker(model, chosen, progress, scheduler, holds, witness, kept), []
        for prop in asked:
            answers.append(_written(checker.answer(prop), file))
    return answers


def _written(answer: Answer, file: str | os.PathLike[str] | None) -> Answer:
    """Return an answer whose values are in a file, if there is an answer and a file was requested."""
    if file is None or answer.error is not None:
        return answer
    states = answer.every_state
    try:
        publish_state_values(os.fspath(file), states.model, states.found)
    except OSError as error:
        raise OptionError(f"values: cannot write {os.fspath(file)}: {error.strerror or error}") from error
    return answer
