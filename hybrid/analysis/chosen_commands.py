"""Which commands of a text a scheduler takes: where they stand, and their guards."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtbdd.build.choices import ChoicePart
from mtbdd.build.given import TakenCommands
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import for_users
from mtbdd.language.model_syntax import Command
from mtbdd.language.text import short_text


def chosen_commands(
    model: SymbolicModel, layers: NDArray[np.uint16]
) -> tuple[tuple[str | None, ...], NDArray[np.int64]]:
    """Return the commands whose choices are taken, and the place of each state's among them.

    Parameters
    ----------
    model : SymbolicModel
        An MDP.
    layers : ndarray, shape (n_states,), uint16
        The layer of the choice that each state takes, by number of the state.

    Returns
    -------
    texts : tuple of (str or None)
        Line, column and guard of a command, as in ``"12:3 x < 4"``, of one written in Python file and line;
        of an action that several modules take together one command a module, joined by "; ".  None where the
        model does not know: it was read from a file, or the choice is the loop of a deadlock.
    numbers : ndarray, shape (n_states,), int64

    Notes
    -----
    Time: O(states) for every part of every layer, and for every command of parts with several of one module.
    """
    if model.given is not None and model.given.taken is not None:
        return _of_listed(model.given.taken, layers)
    texts: dict[str | None, int] = {}
    numbers = np.zeros(model.n_states, np.int64)
    for layer in np.unique(layers).tolist():
        taken = layers == layer
        for part in model.layers[layer].parts:
            inside = np.flatnonzero(taken & for_users(model, model.indicator(part.states)))
            if not inside.size:
                continue
            enabled = _enabled(model, part, inside)
            for way in np.unique(enabled).tolist():
                text = _text(_commands(part, way))
                numbers[inside[enabled == way]] = texts.setdefault(text, len(texts))
    return tuple(texts), numbers


def _of_listed(
    taken: TakenCommands, layers: NDArray[np.uint16]
) -> tuple[tuple[str | None, ...], NDArray[np.int64]]:
    """Do as `chosen_commands` does, of states that were listed with the commands of their choices."""
    places = np.full(layers.size, -1, np.int64)
    for layer in np.unique(layers).tolist():
        here = layers == layer
        places[here] = taken.layers[layer][here]
    texts: dict[str | None, int] = {}
    met, numbers = np.unique(places, return_inverse=True)
    own = [_text(list(taken.commands[place])) if place >= 0 else None for place in met.tolist()]
    names = np.array([texts.setdefault(text, len(texts)) for text in own], np.int64)
    return tuple(texts), names[numbers.reshape(-1)]


def _enabled(model: SymbolicModel, part: ChoicePart, inside: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which commands of the modules are enabled, as one number a state; see `_commands`."""
    found = np.zeros(inside.size, np.int64)
    for commands in part.commands:
        found *= len(commands)
        for number, command in enumerate(commands[1:], start=1):
            where = model.indicator(model.translator.states(command.guard) & part.states)
            found[for_users(model, where)[inside]] += number
    return found


def _commands(part: ChoicePart, way: int) -> list[Command]:
    """Return the commands that a number stands for, one a module: its digits are their places."""
    found = []
    for commands in reversed(part.commands):
        way, place = divmod(way, len(commands))
        found.append(commands[place])
    return found[::-1]


def _text(commands: list[Command]) -> str | None:
    """Return where commands stand, and their guards."""
    return "; ".join(_told(command) for command in commands) or None


def _told(command: Command) -> str:
    place = command.position
    try:
        return f"{place.line}:{place.column} {short_text(command.guard)}"
    except TypeError:
        return f"{place.file}:{place.line}"  # written in Python, in a file of its own
