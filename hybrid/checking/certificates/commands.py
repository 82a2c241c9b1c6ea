"""The commands of a text over a set of states, composed module by module, all states at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import CertificateError
from hybrid.checking.certificates.states import States
from hybrid.checking.certificates.table import Places
from mtbdd.language.model_syntax import Command, ModelSyntax, Update
from mtbdd.language.syntax import ModelType

Ints = NDArray[np.int64]

STRAY = -(1 << 61)  # a change that leads out of a variable's range
_NEAR_ONE = Fraction(1, 10**5)  # how far the probabilities of a command may be from adding up to 1


@dataclass
class Entries:
    """Partly composed transitions: source, change of the state's number, weight, weight of the choice."""

    row: Places
    change: Ints
    weight: Places
    total: Places
    path: Ints

    def of(self, chosen: Ints) -> Entries:
        """Return some of them."""
        return Entries(
            self.row[chosen], self.change[chosen], self.weight[chosen], self.total[chosen], self.path[chosen]
        )


def joined(parts: Sequence[Entries]) -> Entries:
    """Return several parts as one."""
    if len(parts) == 1:
        return parts[0]
    names = ("row", "change", "weight", "total", "path")
    return Entries(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))


class Commands:
    """The commands of a text over a set of states, each worked out once for all states it is enabled in."""

    def __init__(self, syntax: ModelSyntax, states: States) -> None:
        self.syntax, self.states, self.table = syntax, states, states.table
        self.is_chain = syntax.type is not ModelType.MDP

    def update(self, command: Command, update: Update, rows: Ints) -> tuple[Places, Ints]:
        """Return weights and changes of the states' numbers, over rows in which the guard holds."""
        states = self.states
        if update.weight is None:
            weight = self.table.full(rows.size, 1)
        else:
            weight = states.places(update.weight, rows)
        signs = self.table.signs()[weight]
        if bool((signs < 0).any()):
            place = states.describe(int(rows[np.flatnonzero(signs < 0)[0]]))
            raise CertificateError(f"{update.position}: the weight of an update is negative in {place}")
        change = np.zeros(rows.size, np.int64)
        live = np.flatnonzero(signs)
        for assignment in update.assignments:
            v = next(v for v in states.variables if v.name == assignment.variable)
            digit = states.whole(assignment.expression, rows[live]) - v.low
            outside = (digit < 0) | (digit > v.high - v.low)
            moved = (digit - states.digits(v.name)[rows[live]]) * states.weights[v.name]
            change[live] += np.where(outside, 0, moved)
            change[live[outside]] = STRAY
        return weight, change

    def extended(self, entries: Entries, commands: Sequence[Command]) -> tuple[Entries, Places]:
        """Return entries with one module's commands taken too, and the module's weight by state."""
        size, table = self.states.size, self.table
        found: list[Entries] = []
        exits = table.full(size, 0)
        for number, command in enumerate(commands):
            holds = self.states.truth(command.guard)
            rows = np.flatnonzero(holds)
            if rows.size == 0:
                continue
            place = np.zeros(size, np.int64)
            place[rows] = np.arange(rows.size)
            worked = [self.update(command, update, rows) for update in command.updates]
            total = table.full(rows.size, 0)
            for weight, _ in worked:
                total = table.add(total, weight)
            if self.syntax.type is not ModelType.CTMC:
                self._check_total(command, total, rows)
            exits[rows] = table.add(exits[rows], total)
            taken = entries.of(np.flatnonzero(holds[entries.row]))
            where = place[taken.row]
            totals = taken.total if self.is_chain else table.multiply(taken.total, total[where])
            path = taken.path if self.is_chain else taken.path * len(commands) + number
            for weight, change in worked:
                weights = table.multiply(taken.weight, weight[where])
                live = np.flatnonzero(weights != table.zero)
                new = Entries(taken.row, taken.change + change[where], weights, totals, path)
                found.append(new.of(live) if live.size < weights.size else new)
        if not found:
            return entries.of(np.zeros(0, np.int64)), exits
        return joined(found), exits

    def _check_total(self, command: Command, total: Places, rows: Ints) -> None:
        """Refuse probabilities that do not add up to 1, give or take 1e-5."""
        for place in np.unique(total).tolist():
            value = self.table.values[place]
            if abs(value - 1) > _NEAR_ONE:  # lemma: text
                state = self.states.describe(int(rows[np.flatnonzero(total == place)[0]]))
                raise CertificateError(
                    f"{command.position}: the probabilities of a command add up to {float(value)} in {state}"
                )

    def synchronised(self, parts: Sequence[Sequence[Command]]) -> tuple[Entries, Places]:
        """Return what modules do together, and the total weight by state."""
        size, table = self.states.size, self.table
        one = table.full(size, 1)
        entries = Entries(
            np.arange(size, dtype=np.int32), np.zeros(size, np.int64), one, one, np.zeros(size, np.int64)
        )
        exits = one
        for commands in parts:
            entries, own = self.extended(entries, commands)
            exits = table.multiply(exits, own)
        return entries, exits


def together_of(syntax: ModelSyntax) -> list[tuple[str | None, list[list[Command]]]]:
    """Return who acts together: unlabelled commands alone, and for every action the modules that have it."""
    found: list[tuple[str | None, list[list[Command]]]] = []
    actions: dict[str, None] = {}
    for module in syntax.modules:
        for command in module.commands:
            if command.action is None:
                found.append((None, [[command]]))
            else:
                actions.setdefault(command.action)
    for action in actions:
        own = [[c for c in module.commands if c.action == action] for module in syntax.modules]
        found.append((action, [commands for commands in own if commands]))
    return found
