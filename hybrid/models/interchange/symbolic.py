"""Symbolic files (`.dd`): a model as its diagrams, written and read; no state is listed."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.container import written
from hybrid.models.interchange.explicit_model import MOST_UNITS, StateVariable, row_sums
from hybrid.models.interchange.symbolic_header import (
    FunctionEntry,
    Header,
    LayerEntry,
    RewardEntry,
    file_bytes,
    file_parts,
)
from mtbdd.build.choices import ChoiceLayer, ChoicePart
from mtbdd.build.diagram_parts import DiagramReward
from mtbdd.build.model import SymbolicModel
from mtbdd.build.model_from_diagrams import model_from_diagrams, variable_of_range
from mtbdd.build.rewards import symbolic_reward
from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.value_diagrams import MOST_NODES, Forest, ValueDiagrams
from mtbdd.language.errors import BuildError, Fault, LanguageError, format_state
from mtbdd.language.syntax import ModelType, Position
from mtbdd.offset.states import index_states


def _bits(manager: Manager) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the levels of all row and column bits, from the top of the order."""
    pairs = [(manager.row_level(i), manager.column_level(i)) for i in range(manager.n_bits)]
    return np.array(pairs, dtype=np.int64).reshape(-1)


class FunctionWriter:
    """Gathers functions of one manager; equal ones are written once."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._work = ValueDiagrams(manager.index_level)
        self._roots: dict[int, int] = {}

    def states(self, states: Node) -> int:
        """Return the number of a set."""
        return self._add(SymbolicMatrix(self._manager, states, np.ones(1)))

    def function(self, function: SymbolicMatrix) -> FunctionEntry:
        """Return the number of a function, with its units.

        Raises BuildError: nothing is known of the error of its values, or more than a file may declare.
        """
        if not math.isfinite(function.units):
            message = "expected numbers with a known error, got sums of both signs that may cancel"
            raise BuildError([Fault(Position("model", 1, 1), message)])
        if function.units > MOST_UNITS:
            message = (
                f"expected numbers that are known to eight digits, got errors of {function.units:g} units"
            )
            raise BuildError([Fault(Position("model", 1, 1), message)])
        return FunctionEntry(self._add(function), function.units)

    def _add(self, function: SymbolicMatrix) -> int:
        return self._roots.setdefault(self._work.load(function), len(self._roots))

    def forest(self) -> Forest:
        """Return all functions."""
        return Forest.of(self._work, np.array(list(self._roots), dtype=np.int64), _bits(self._manager))


class FunctionReader:
    """Makes the functions of a forest in a manager.

    `forest`: checked. Raises ValueError: the forest has other bits than the manager.
    """

    def __init__(self, manager: Manager, forest: Forest) -> None:
        if forest.levels.size != 2 * manager.n_bits:
            raise ValueError(
                f"expected {2 * manager.n_bits} bits, as the variables have, got {forest.levels.size}"
            )
        self._manager = manager
        self._work = ValueDiagrams(manager.index_level)
        self._ids = forest.into(self._work, _bits(manager))

    def sets(self, numbers: Sequence[int]) -> dict[int, Node]:
        """Return functions as sets of states.

        Raises ValueError: one depends on column bits or has other values than 0 and 1.
        """
        distinct = sorted(set(numbers))
        ids = self._ids[distinct]
        self._check_rows(ids, "a set of states")
        if not np.isin(self._work.values(ids), (0.0, 1.0)).all():
            raise ValueError("expected a set of states, got a function with other values than 0 and 1")
        return dict(zip(distinct, self._work.store_sets(self._manager, ids), strict=True))

    def matrix(self, entry: FunctionEntry) -> SymbolicMatrix:
        """Return a function of row and column bits."""
        return self._work.store(self._manager, int(self._ids[entry.root]), entry.units)

    def vector(self, entry: FunctionEntry, states: Node) -> SymbolicMatrix:
        """Return a function of row bits.

        Raises ValueError: it depends on column bits, or is not 0 outside the given states.
        """
        self._check_rows(self._ids[[entry.root]], "a reward")
        found = self.matrix(entry)
        if found.support() & ~states != self._manager.false:
            raise ValueError("expected rewards of the states alone, got one elsewhere")
        return found

    def _check_rows(self, ids: np.ndarray[tuple[int], np.dtype[np.int64]], what: str) -> None:
        levels = [level for level, _ in self._work.below(ids) if level < self._work.bottom]
        if any(level % 3 for level in levels):
            raise ValueError(f"expected {what}, got a function of columns")


def write_symbolic(model: SymbolicModel, path: str | os.PathLike[str]) -> None:
    """Write a model as a symbolic file.

    `path`: replaced once the new file is whole. Raises InterchangeError: the model is too large, a reward is
    no number that doubles hold, or the states of a CTMC have millions of different exit rates. Matrices,
    sets, labels and rewards share their nodes, some bytes a node are written.  Time: reading every function
    out of the package, and packing its nodes.
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
    with written(path) as sink:
        sink.write(file_bytes(header.written(), forest, numbering))


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
        tuple(StateVariable(v.name, v.low, v.high, v.is_bool) for v in model.encoding.variables),
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

    `path`: written by `write_symbolic`. `package` ({"auto", "cudd", "autoref"}): back end of the diagrams.
    Returns SymbolicModel: states are numbered as those of the model that was written. All sizes are compared
    with what is there before anything of them is made, and every child of a node stands on a lower level: a
    hostile file gives a message. Time: one call of the package a node, and what
    `mtbdd.build.model_from_diagrams.model_from_diagrams` takes.

    Raises InterchangeError: the file is of another version, damaged, or says what makes no model. Raises
    MemoryError: its arrays do not fit into memory. Raises OSError: it cannot be read.
    """
    started = time.perf_counter()
    content = Path(path).read_bytes()
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
        v.name: variable_of_range(v.name, v.low, v.high, v.is_bool, header.source) for v in header.variables
    }
    # States keep the numbers of the text, also if the diagrams have another order.
    encoding = Encoding(list(declared.values()), package, header.order)
    reader = FunctionReader(encoding.manager, forest)
    entries = [part for layer in header.layers for _, part in layer.parts] + list(header.labels.values())
    entries += [header.initial, header.reachable, header.deadlocks, *(x.enabled for x in header.layers)]
    sets = reader.sets(entries)
    initial, states, loops = (sets[k] for k in (header.initial, header.reachable, header.deadlocks))
    _check_states(encoding, sets, header)
    layers, exits = _layers(encoding, header, reader, sets)
    rewards = [
        DiagramReward(
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
    model = model_from_diagrams(
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
