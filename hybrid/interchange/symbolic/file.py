"""Symbolic files (`.dd`): a model as its diagrams, written and read; no state is listed."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hybrid.interchange.diagrams.stochastic import row_sums
from hybrid.interchange.faults import InterchangeError
from hybrid.interchange.symbolic.container import file_bytes, file_parts
from hybrid.interchange.symbolic.functions import FunctionReader, FunctionWriter
from hybrid.interchange.symbolic.header import (
    FunctionEntry,
    Header,
    LayerEntry,
    RewardEntry,
    VariableEntry,
)
from mtbdd.choices import ChoiceLayer, ChoicePart
from mtbdd.encoding import Encoding
from mtbdd.faults import BuildError, format_state
from mtbdd.given import GivenReward
from mtbdd.given_model import given_model, given_variable
from mtbdd.language.errors import LanguageError
from mtbdd.language.syntax import ModelType
from mtbdd.manager import Node
from mtbdd.matrix import SymbolicMatrix
from mtbdd.model import SymbolicModel
from mtbdd.states import index_states
from mtbdd.symbolic_rewards import symbolic_reward
from mtbdd.value_nodes import MOST_NODES


def write_symbolic(model: SymbolicModel, path: str | os.PathLike[str]) -> None:
    """Write a model as a symbolic file.

    Parameters
    ----------
    model : SymbolicModel
    path : path-like
        Overwritten if it is there.

    Raises
    ------
    InterchangeError
        The file cannot be written, the model is too large, a reward is no number that doubles hold, or the
        states of a CTMC have millions of different exit rates.

    Notes
    -----
    Matrices, sets, labels and rewards share their nodes, some bytes a node are written.  Time: reading every
    function out of the package, and packing its nodes.
    """
    writer = FunctionWriter(model.manager)
    try:
        header = _header(model, writer)
        if model.type is ModelType.CTMC:
            row_sums(model.matrix)  # reading needs them: a file that could not be read is not written
    except (LanguageError, InterchangeError) as error:
        raise InterchangeError(f"{path}: {error}") from None
    numbering = None if model.given is None else model.given.numbering
    forest = writer.forest()
    if forest.low.size > MOST_NODES or (numbering is not None and numbering.size > MOST_NODES):
        raise InterchangeError(
            f"{path}: expected a model of at most {MOST_NODES} nodes, got {forest.low.size}"
        )
    try:
        Path(path).write_bytes(file_bytes(header.written(), forest, numbering))
    except OSError as error:
        raise InterchangeError(f"{path}: the file cannot be written: {error.strerror}") from None


def _header(model: SymbolicModel, writer: FunctionWriter) -> Header:
    """Return what is to be said of a model, whose functions are handed to the writer."""
    reachable = model.reachable
    layers = tuple(
        LayerEntry(
            writer.function(layer.matrix),
            writer.states(layer.enabled),
            tuple((part.action, writer.states(part.states)) for part in layer.parts),
        )
        for layer in model.layers
    )
    rewards = tuple(
        RewardEntry(r.name, _optional(writer, r.states), tuple(_optional(writer, c) for c in r.choices))
        for r in (symbolic_reward(model, i) for i in range(len(model.source.rewards)))
    )
    return Header(
        model.type,
        Path(model.source.file).name or "model",
        dict(model.source.constants),
        tuple(VariableEntry(v.name, v.low, v.high, v.is_bool) for v in model.encoding.variables),
        tuple(v.name for v in model.source.variables),
        writer.states(model.initial & reachable),
        writer.states(reachable),
        writer.states(model.deadlocks),
        layers,
        {label.name: writer.states(model.states(label.expression)) for label in model.source.labels},
        rewards,
    )


def _optional(writer: FunctionWriter, function: SymbolicMatrix | None) -> FunctionEntry | None:
    return None if function is None else writer.function(function)


def read_symbolic(path: str | os.PathLike[str], *, package: str = "auto") -> SymbolicModel:
    """Read a model out of a symbolic file.

    Parameters
    ----------
    path : path-like
        Written by `write_symbolic`.
    package : {"auto", "cudd", "autoref"}
        Back end of the diagrams.

    Returns
    -------
    SymbolicModel
        States are numbered as those of the model that was written.

    Raises
    ------
    InterchangeError
        The file cannot be read, is of another version, damaged, or says what makes no model.
    MemoryError
        Its arrays do not fit into memory.

    Notes
    -----
    All sizes are compared with what is there before anything of them is made, and every child of a node
    stands on a lower level: a hostile file gives a message. Time: one call of the package a node, and what
    `mtbdd.given_model.given_model` takes.
    """
    started = time.perf_counter()
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InterchangeError(f"{path}: the file cannot be read: {error.strerror}; check the path") from None
    try:
        return _read(content, package, started)
    except (ValueError, ArithmeticError) as error:
        raise InterchangeError(f"{path}: {error}") from None
    except BuildError as error:
        raise InterchangeError(f"{path}: {error}") from None


def _read(content: bytes, package: str, started: float) -> SymbolicModel:
    """Return the model of a file's bytes."""
    given, forest, numbering = file_parts(content)
    forest.check()
    header = Header.read(given, forest.roots.size)
    declared = {
        v.name: given_variable(v.name, v.low, v.high, v.is_bool, header.source) for v in header.variables
    }
    # Where the diagrams have another order than the text, states keep the numbers that the text gives them.
    encoding = Encoding(list(declared.values()), package, header.order)
    reader = FunctionReader(encoding.manager, forest)
    entries = [part for layer in header.layers for _, part in layer.parts] + list(header.labels.values())
    entries += [header.initial, header.reachable, header.deadlocks, *(x.enabled for x in header.layers)]
    sets = reader.sets(entries)
    initial, states, loops = (sets[k] for k in (header.initial, header.reachable, header.deadlocks))
    _check_states(encoding, sets, header)
    layers, exits = _layers(encoding, header, reader, sets)
    rewards = [
        GivenReward(
            r.name,
            None if r.states is None else reader.vector(r.states, states),
            tuple(
                None if own is None else reader.vector(own, layer.enabled)
                for own, layer in zip(r.choices, layers, strict=True)
            ),
        )
        for r in header.rewards
    ]
    size = index_states(encoding.manager, states).size
    if numbering is not None and not np.array_equal(np.sort(numbering), np.arange(size)):
        raise ValueError("numbering: expected every state once")
    model = given_model(
        encoding,
        [declared[name] for name in header.order],
        header.type,
        layers,
        initial,
        states,
        exits=exits,
        labels={name: sets[k] for name, k in header.labels.items()},
        rewards=rewards,
        deadlocks=loops,
        numbering=numbering,
        source=header.source,
        started=started,
    )
    model.source = replace(model.source, constants=dict(header.constants))
    return model


def _check_states(encoding: Encoding, sets: dict[int, Node], header: Header) -> None:
    """Refuse sets that do not belong together."""
    false, states = encoding.manager.false, sets[header.reachable]
    if sets[header.initial] == false:
        raise ValueError("sets: expected an initial state, got none")
    _inside(states, encoding.valid, "the states", "the variables' ranges", false)
    named: dict[str, int] = {"the initial states": header.initial, "the deadlocks": header.deadlocks}
    named |= {f"label {name!r}": k for name, k in header.labels.items()}
    for what, k in named.items():
        _inside(sets[k], states, what, "the states", false)
    enabled = encoding.manager.disjunction(sets[layer.enabled] for layer in header.layers)
    if enabled != states:
        raise ValueError("layers: expected a choice of every state and of no others")


def _inside(inner: Node, outer: Node, what: str, where: str, false: Node) -> None:
    if inner & ~outer != false:
        raise ValueError(f"sets: expected {what} among {where}, got others")


def _layers(
    encoding: Encoding, header: Header, reader: FunctionReader, sets: dict[int, Node]
) -> tuple[list[ChoiceLayer], SymbolicMatrix | None]:
    """Return the layers, and the exit rates of a CTMC."""
    manager, states = encoding.manager, sets[header.reachable]
    false, exits = manager.false, None
    layers = []
    for number, entry in enumerate(header.layers):
        what = f"layer {number}"
        enabled, covered = sets[entry.enabled], false
        matrix = reader.matrix(entry.matrix)
        if (matrix.terminals < 0).any():
            raise ValueError(
                f"{what}: expected probabilities or rates from 0 on, got {matrix.terminals.min()}"
            )
        support = matrix.support()
        if manager.exists(manager.columns, support) != enabled:
            raise ValueError(f"{what}: expected entries in the rows of its states and in no others")
        _inside(
            manager.to_rows(manager.exists(manager.rows, support)), states, "successors", "the states", false
        )
        for _, k in entry.parts:
            if header.type is ModelType.MDP and sets[k] & covered != false:
                raise ValueError(f"{what}: expected one action a choice, got two")
            covered = covered | sets[k]
        if covered != enabled:
            raise ValueError(f"{what}: expected parts that cover its states")
        sums = row_sums(matrix)
        if header.type is ModelType.CTMC:
            exits = sums
        else:
            _check_sums(encoding, sums, what)
        layers.append(ChoiceLayer(matrix, enabled, _parts(entry, sets)))
    return layers, exits


def _parts(entry: LayerEntry, sets: dict[int, Node]) -> tuple[ChoicePart, ...]:
    return tuple(ChoicePart(action, sets[k], None) for action, k in entry.parts)


def _check_sums(encoding: Encoding, sums: SymbolicMatrix, what: str) -> None:
    """Refuse rows that do not add up to 1, but for the errors that their numbers are said to have."""
    off = np.abs(sums.terminals - 1.0)
    for k in np.flatnonzero(~(off <= (sums.units + 2.0) * 2.0**-53)).tolist():
        wrong: Any = sums.node & encoding.manager.cube(sums.index_bits, k)
        state = format_state(encoding.pick(wrong))
        raise ValueError(f"{what}: expected rows that add up to 1, got {sums.terminals[k]} in state {state}")
