"""Memoryless schedulers that attain optimal values: one choice for every state.

In unknown states the choice is a best one at the safe bound. That is the lower bound for a maximum, the
upper for a minimum. With ``x <= f(x)``, taking best choices at x earns at least x, and likewise from above.
Inside an end component that was made one state, choices lead surely to the member with the best way out.
Where the graph alone decided, they follow the sets that it decided by.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.csr import CsrArrays
from hybrid.analysis.precomputation import prob0e
from hybrid.analysis.run.state_files import check_suffix
from hybrid.base.arrays import concatenated_ranges
from hybrid.base.notebook import block, paragraph, rows_table
from hybrid.base.state_values import StateValues
from hybrid.matrix.explicit.extract import LayerRows, explicit_matrix, merge_layers, renumbered
from hybrid.matrix.space.choice_operator import ChoiceOperator
from mtbdd.build.choices import ChoicePart
from mtbdd.build.diagram_parts import TakenCommands
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import for_diagram, for_users
from mtbdd.diagrams.manager import Node
from mtbdd.graph.components import EndComponents
from mtbdd.language.expression_parser import short_text
from mtbdd.language.syntax import Command
from mtbdd.offset.states import StateIndex, states_from

# Tables of schedulers: files in CSV and JSON, and the first rows for a notebook.

SUFFIXES = (".csv", ".json")
"""Suffixes of files of schedulers."""

MOST_TOLD = 1_000_000
"""Rows beyond which a preview of the table shows their number alone."""

_SHOWN = 10  # rows in a notebook


# Commands of the text that a scheduler takes: their places and guards.


def chosen_commands(
    model: SymbolicModel, layers: NDArray[np.uint16]
) -> tuple[tuple[str | None, ...], NDArray[np.int64]]:
    """Return the commands whose choices are taken, and the place of each state's among them.

    Both `layers`, uint16, and the places have the shape (n_states,). `layers` has the layer of the choice
    that each state takes, by number of the state. A text has line, column and guard of a command, as in
    ``"12:3 x < 4"``, of one written in Python file and line; of an action that several modules take together
    one command a module, joined by "; ". None where the model does not know: it was read from a file, or the
    choice is the loop of a deadlock.

    Time: O(states) for every part of every layer, and for every command of parts with several of one module.
    """
    if model.given is not None and model.given.taken is not None:
        return _of_listed(model.given.taken, layers)
    texts: dict[str | None, int] = {}
    numbers = np.zeros(model.n_states, np.int64)
    for part, inside in _parts_taken(model, layers):
        enabled = _enabled(model, part, inside)
        for way in np.unique(enabled).tolist():
            text = _text(_commands(part, way))
            numbers[inside[enabled == way]] = texts.setdefault(text, len(texts))
    return tuple(texts), numbers


def _parts_taken(
    model: SymbolicModel, layers: NDArray[np.uint16]
) -> Iterator[tuple[ChoicePart, NDArray[np.int64]]]:
    """Yield the parts of layers whose choices are taken, with the numbers of the states that take them."""
    for layer in np.unique(layers).tolist():
        taken = layers == layer
        for part in model.layers[layer].parts:
            inside = np.flatnonzero(taken & for_users(model, model.indicator(part.states)))
            if inside.size:
                yield part, inside


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


_PART = 1 << 14  # states written together
_ACTIONS = 6  # that are reported of many


@dataclass(frozen=True, eq=False)
class Scheduler:
    """One choice for every reachable state of an MDP.

    Attributes
    ----------
    model : SymbolicModel
    layers : ndarray, shape (n_states,), uint16
        The layer of the model whose choice each state takes, by number of the state.

    Notes
    -----
    As a table: the state's variables, its action (None if unlabelled), the layer, and the command in the
    text, with line, column and guard (None where the model does not know).
    """

    model: SymbolicModel
    layers: NDArray[np.uint16]
    columns: ClassVar[tuple[str, ...]] = ("action", "layer", "command")

    def actions(self) -> tuple[tuple[str | None, ...], NDArray[np.int64]]:
        """Return the actions that occur, and the place of each state's among them, shape (n_states,).

        None stands for unlabelled choices.  Time: O(states) for every part of every layer.
        """
        names: dict[str | None, int] = {}
        numbers = np.zeros(self.model.n_states, np.int64)
        for part, inside in _parts_taken(self.model, self.layers):
            numbers[inside] = names.setdefault(part.action, len(names))
        return tuple(names), numbers

    def commands(self) -> tuple[tuple[str | None, ...], NDArray[np.int64]]:
        """Return the commands of the text that are taken, and the place of each state's among them.

        As `hybrid.analysis.scheduler.chosen_commands` does: None stands for what is not known.
        """
        return chosen_commands(self.model, self.layers)

    def chosen(self) -> list[Node]:
        """Return for every layer of the model the states that take its choice, as sets.

        Raises
        ------
        ValueError
            There is not one layer for every state, or no layer has the number.
        """
        model = self.model
        layers = np.asarray(self.layers)
        if layers.shape != (model.n_states,) or layers.dtype.kind not in "iu":
            raise ValueError(
                f"layers: expected {model.n_states} integers, one a state, got {layers.dtype} of shape "
                f"{layers.shape}"
            )
        if layers.size and not 0 <= int(layers.min()) <= int(layers.max()) < len(model.layers):
            raise ValueError(f"layers: expected numbers from 0 to {len(model.layers) - 1}, got others")
        by_index = for_diagram(model, layers)
        return [states_from(model.manager, model.index, by_index == k) for k in range(len(model.layers))]

    def chain(self) -> CsrArrays:
        """Return the transition matrix of the chain that the scheduler leaves, shape (n_states, n_states).

        Rows and columns are the states' numbers; `hybrid.models.model.Model.with_scheduler` gives the chain
        as a model.

        Raises
        ------
        MemoryError
            If there is no room to write a layer out.
        """
        n, layers = self.model.n_states, []
        by_index = for_diagram(self.model, self.layers)
        for k in np.unique(by_index).tolist():
            matrix = explicit_matrix(self.model.layer_transitions(k))
            chosen = np.flatnonzero(by_index == k)
            lengths = np.diff(matrix.row_starts)[chosen]
            source = concatenated_ranges(matrix.row_starts[chosen], lengths)
            layers.append(LayerRows(k, chosen, lengths, matrix.columns[source], matrix.values[source]))
        rows = merge_layers(layers, n)
        found = CsrArrays((n, n), rows.offsets, rows.columns, rows.values)
        return found if self.model.numbering is None else renumbered(found, self.model.numbering)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield a record a state: `state`, `action` and `command`, None where there is none, and `layer`."""
        model, (texts, commands), (names, actions) = self.model, self.commands(), self.actions()
        for begin in range(0, model.n_states, _PART):
            numbers = np.arange(begin, min(begin + _PART, model.n_states))
            places = numbers if model.numbering is None else model.numbering[numbers]
            columns = (column[numbers].tolist() for column in (actions, self.layers, commands))
            for state, action, layer, command in zip(model.describe(places), *columns, strict=True):
                yield {"state": state, "action": names[action], "layer": layer, "command": texts[command]}

    def variables(self) -> list[str]:
        """Return the names of the state's variables."""
        return [v.name for v in self.model.encoding.shown]

    @property
    def size(self) -> int:
        """Number of states, of one with memory of pairs."""
        return self.model.n_states

    def write(self, path: str | Path) -> None:
        """Write the scheduler as a table.

        Parameters
        ----------
        path : str or Path
            ``.csv``: a column a variable, then `columns`, empty for None.  ``.json``: an array of records.

        Raises
        ------
        OptionError
            The name has another suffix.
        OSError
            The file cannot be written.
        """
        check_suffix(path, "path", SUFFIXES)
        with Path(path).open("w", newline="", encoding="utf-8") as lines:
            if Path(path).suffix == ".json":
                lines.write("[")
                for place, record in enumerate(self.records()):
                    lines.write(("," if place else "") + "\n" + json.dumps(record))
                lines.write("\n]\n")
                return
            writer = csv.writer(lines)
            writer.writerow([*self.variables(), *self.columns])
            writer.writerows(self.cells())

    def cells(self) -> Iterator[list[Any]]:
        """Yield the cells of every row of the table."""
        for record in self.records():
            values = [str(value).lower() for value in record["state"].values()]
            rest = (record[name] for name in self.columns)
            yield [*values, *("" if cell is None else cell for cell in rest)]

    def _repr_html_(self) -> str:
        title = paragraph(repr(self).strip("<>"))
        if self.size > MOST_TOLD:
            return block("scheduler", title)
        rows = list(islice(self.cells(), _SHOWN))
        header = [*self.variables(), *self.columns]
        return block("scheduler", title, rows_table(header, rows, self.size - len(rows)))

    def __repr__(self) -> str:
        return f"<Scheduler of {self.size:,} states{self._taken()}>"

    def _taken(self) -> str:
        """Return how many states take which action, unless that takes long."""
        if self.size > MOST_TOLD:
            return ""
        names, numbers = self.actions()
        counts = np.bincount(numbers, minlength=len(names)).tolist()
        most = sorted(zip(counts, names, strict=True), key=lambda pair: -pair[0])[:_ACTIONS]
        told = [f"{'no action' if name is None else name} in {count:,}" for count, name in most]
        taken = (self.model.layers[layer] for layer in np.unique(self.layers).tolist())
        knows = any(part.commands for layer in taken for part in layer.parts)
        more = ", ..." if len(names) > _ACTIONS else ""
        unknown = "" if knows else "; the model does not know its commands"
        return f": {', '.join(told)}{more}{unknown}"


class SchedulerBuilder:
    """Collects choices as sets, layer by layer; what is chosen first stays."""

    def __init__(self, model: SymbolicModel) -> None:
        self._model = model
        self._chosen = [model.manager.false for _ in model.layers]
        self._open = model.reachable
        self._remembered: Scheduler | None = None

    def remember(self, scheduler: Scheduler) -> None:
        """Take a scheduler with memory, made elsewhere, for the one to return."""
        self._remembered = scheduler

    def finish(self) -> Scheduler:
        """Return the scheduler; states without a choice so far take their first one."""
        if self._remembered is not None:
            return self._remembered
        for layer, own in enumerate(self._model.layers):
            self._choose(layer, own.enabled)
        layers = np.zeros(self._model.n_states, np.uint16)
        for layer, states in enumerate(self._chosen):
            if states != self._model.manager.false:
                layers[self._model.indicator(states)] = layer
        return Scheduler(self._model, for_users(self._model, layers))

    @property
    def chosen(self) -> list[Node]:
        """For every layer the states that take its choice so far."""
        return list(self._chosen)

    def choose(self, layer: int, states: Node) -> None:
        """Choose a layer in those of some states that have it and no choice yet."""
        self._choose(layer, states)

    # ------------------------------------------------------------------ what decided

    def until(self, safe: Node, target: Node, zero: Node, one: Node, maximise: bool) -> None:
        """Choose where the graph decided an unbounded until."""
        if maximise:
            outside = self._model.reachable & ~one
            self.route(target, safe & one & ~target, self._surely_avoiding(outside))
        else:
            self._stay(zero)

    def missing(self, target: Node, finite: Node) -> None:
        """Choose where a greatest reward is infinite: miss the target with positive probability."""
        model = self._model
        never = prob0e(model, model.reachable, target)
        self._stay(never)
        every = [layer.enabled for layer in model.layers]
        self.route(never, model.reachable & ~finite & ~never, every)

    def policy(
        self,
        unknown: StateIndex,
        operator: ChoiceOperator,
        found: StateValues,
        components: EndComponents | None,
    ) -> None:
        """Choose in the unknown states of a system, from the bound on the safe side."""
        model = self._model
        bound = found.lower if operator.maximise else found.upper
        if bool(np.isnan(bound).any()):
            bound = found.values
        x = operator.space.vector(np.ascontiguousarray(bound))
        layers = operator.space.to_host(operator.choose(x))
        for layer in np.unique(layers).tolist():
            # The layer after the last one, if it is chosen, is that of stopping.
            if layer < len(model.layers):
                self._choose(layer, states_from(model.manager, unknown, layers == layer))
        if components is None:
            return
        # Members without a choice of their own go to the one that has it, by choices that stay inside.
        for_members = [
            model.manager.disjunction(c.choices[layer] for c in components.components)
            for layer in range(len(model.layers))
        ]
        members = model.manager.disjunction(c.states for c in components.components)
        self.route(members & ~self._open, members, for_members)

    # ------------------------------------------------------------------ sets

    def take(self, choices: Sequence[Node]) -> None:
        """Choose for every layer the states of a set."""
        for layer, states in enumerate(choices):
            self._choose(layer, states)

    def route(self, goal: Node, within: Node, allowed: Sequence[Node]) -> None:
        """Choose, in a set, allowed choices that lead nearer to a goal with positive probability.

        Time: one relational product a layer and step of the distance.
        """
        manager, reached = self._model.manager, goal
        while True:
            found = manager.false
            for layer, states in enumerate(allowed):
                new = self._before(layer, reached) & states & within & ~reached & ~found
                self._choose(layer, new)
                found = found | new
            if found == manager.false:
                return
            reached = reached | found

    def _stay(self, states: Node) -> None:
        """Choose, in a set, choices that surely stay in it."""
        for layer, staying in enumerate(self._surely_avoiding(self._model.reachable & ~states)):
            self._choose(layer, staying & states)

    def _surely_avoiding(self, states: Node) -> list[Node]:
        """Return for every layer the states whose choice has no successor in a set."""
        return [own.enabled & ~self._before(layer, states) for layer, own in enumerate(self._model.layers)]

    def _before(self, layer: int, states: Node) -> Node:
        """Return the states whose choice in a layer has a successor in a set."""
        manager = self._model.manager
        columns = manager.to_columns(states)
        return manager.and_exists(columns, self._model.layer_relation(layer), manager.columns)

    def _choose(self, layer: int, states: Node) -> None:
        new = states & self._open & self._model.layers[layer].enabled
        self._chosen[layer] = self._chosen[layer] | new
        self._open = self._open & ~new
