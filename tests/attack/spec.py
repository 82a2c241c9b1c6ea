"""Models of the attack: written as text of the model language, and expanded in rational numbers.

The expansion is worked out from the same commands that the text is printed from, and not read from the text,
so that it shares nothing with the parser, the builder and the matrices of the project.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

from tests.attack.numerals import Numeral

__all__ = ["Choice", "Command", "Expanded", "Module", "RewardItem", "Spec", "Valuation", "holds"]

# A guard is a conjunction of (variable, operator, number).
Guard = tuple[tuple[str, str, int], ...]
Valuation = tuple[int, ...]


@dataclass(frozen=True)
class Command:
    """``[action] guard -> weight : (x'=1) & (y'=2) + ...;``."""

    action: str
    guard: Guard
    updates: tuple[tuple[Numeral, tuple[tuple[str, int], ...]], ...]


@dataclass(frozen=True)
class Module:
    """A module: its variables as (name, low, high, init) and its commands."""

    name: str
    variables: tuple[tuple[str, int, int, int], ...]
    commands: tuple[Command, ...]


@dataclass(frozen=True)
class RewardItem:
    """``guard : value;``, or ``[action] guard : value;`` where `action` is not None."""

    action: str | None
    guard: Guard
    value: Numeral


@dataclass(frozen=True)
class Spec:
    """A model.

    Attributes
    ----------
    kind : {"dtmc", "ctmc", "mdp"}
    family : str
        What the generator was after.
    modules : tuple of Module
    structures : tuple of tuple of RewardItem
        Reward structures, named r0, r1, ...
    everywhere : bool
        Whether all states are initial.
    constants : tuple of (name, text, value)
        Constants that expressions mention.
    """

    kind: str
    family: str
    modules: tuple[Module, ...]
    structures: tuple[tuple[RewardItem, ...], ...] = ()
    everywhere: bool = False
    constants: tuple[tuple[str, str, Fraction], ...] = ()

    @property
    def variables(self) -> tuple[tuple[str, int, int, int], ...]:
        return tuple(v for m in self.modules for v in m.variables)

    def known(self, items: tuple[RewardItem, ...]) -> list[RewardItem]:
        """Return the items whose action some command has; the language has no others."""
        actions = {c.action for m in self.modules for c in m.commands} | {None, ""}
        return [item for item in items if item.action in actions]

    def text(self) -> str:
        """Return the model in the model language."""
        lines = [self.kind, *(f"const double {name} = {text};" for name, text, _ in self.constants)]
        for module in self.modules:
            lines.append(f"module {module.name}")
            for name, low, high, init in module.variables:
                lines.append(f"  {name} : [{low}..{high}]" + (";" if self.everywhere else f" init {init};"))
            lines += [f"  {_command(c)}" for c in module.commands]
            lines.append("endmodule")
        if self.everywhere:
            lines.append("init true endinit")
        for i, items in enumerate(self.structures):
            lines.append(f'rewards "r{i}"')
            for item in self.known(items):
                action = "" if item.action is None else f"[{item.action}] "
                lines.append(f"  {action}{_guard(item.guard)} : {item.value.text};")
            lines.append("endrewards")
        return "\n".join(lines) + "\n"


def _guard(guard: Guard) -> str:
    return " & ".join(f"{name}{operator}{number}" for name, operator, number in guard) or "true"


def _command(command: Command) -> str:
    parts = []
    for weight, assignments in command.updates:
        target = " & ".join(f"({name}'={number})" for name, number in assignments) or "true"
        parts.append(f"{weight.text}:{target}")
    return f"[{command.action}] {_guard(command.guard)} -> {' + '.join(parts)};"


_TESTS = {
    "=": int.__eq__,
    "!=": int.__ne__,
    "<": int.__lt__,
    "<=": int.__le__,
    ">": int.__gt__,
    ">=": int.__ge__,
}


def holds(guard: Guard, state: Mapping[str, int]) -> bool:
    """Return whether a guard holds."""
    return all(_TESTS[operator](state[name], number) for name, operator, number in guard)


# ------------------------------------------------------------------ expansion


@dataclass
class Choice:
    """One choice of a state: its row, but for a CTMC adding up to 1, and what it earns by structure."""

    row: dict[int, Fraction]
    rewards: list[Fraction]


@dataclass
class Expanded:
    """A model state by state.

    Attributes
    ----------
    kind : str
    states : list of Valuation
        The reachable ones, in lexicographic order.
    names : tuple of str
    initial : list of int
    choices : list of list of Choice
        Of every state; one in a chain.  Rewards of a choice are those of its transitions.
    rewards : list of list of Fraction
        State rewards, by structure and state.
    deadlocks : set of int
    """

    kind: str
    states: list[Valuation]
    names: tuple[str, ...]
    initial: list[int]
    choices: list[list[Choice]]
    rewards: list[list[Fraction]]
    deadlocks: set[int] = field(default_factory=set)

    @property
    def size(self) -> int:
        return len(self.states)

    def valuation(self, state: int) -> dict[str, int]:
        """Return a state by names."""
        return dict(zip(self.names, self.states[state], strict=True))

    @classmethod
    def of(cls, spec: Spec, limit: int = 5000) -> Expanded:
        """Return the reachable part of a model."""
        names = tuple(v[0] for v in spec.variables)
        if spec.everywhere:
            start = list(product(*(range(low, high + 1) for _, low, high, _ in spec.variables)))
        else:
            start = [tuple(init for *_, init in spec.variables)]
        found: dict[Valuation, list[tuple[str, dict[Valuation, Fraction]]]] = {}
        waiting = list(start)
        while waiting:
            state = waiting.pop()
            if state in found:
                continue
            found[state] = _combined(spec, dict(zip(names, state, strict=True)), names)
            waiting += [t for _, row in found[state] for t in row]
            assert len(found) <= limit
        states = sorted(found)
        index = {state: i for i, state in enumerate(states)}
        result = cls(spec.kind, states, names, sorted(index[s] for s in start), [], [])
        for i, state in enumerate(states):
            named = dict(zip(names, state, strict=True))
            if not found[state]:
                result.deadlocks.add(i)
                result.choices.append([Choice({i: Fraction(1)}, [Fraction(0)] * len(spec.structures))])
                continue
            choices = []
            for action, row in found[state]:
                earned = [
                    sum(
                        (t.value.value for t in items if t.action == action and holds(t.guard, named)),
                        Fraction(0),
                    )
                    for items in spec.structures
                ]
                choices.append((Choice({index[t]: p for t, p in row.items()}, earned), sum(row.values())))
            result.choices.append(_joined(spec.kind, choices))
        for items in spec.structures:
            result.rewards.append(
                [
                    sum(
                        (
                            t.value.value
                            for t in items
                            if t.action is None and holds(t.guard, result.valuation(i))
                        ),
                        Fraction(0),
                    )
                    for i in range(len(states))
                ]
            )
        return result


def _combined(
    spec: Spec, state: dict[str, int], names: tuple[str, ...]
) -> list[tuple[str, dict[Valuation, Fraction]]]:
    """Return what the modules can do together: an action and a row for every combination of commands."""
    found = []
    actions = sorted({c.action for m in spec.modules for c in m.commands})
    for action in actions:
        groups = [
            [c for c in m.commands if c.action == action and holds(c.guard, state)]
            for m in spec.modules
            if any(c.action == action for c in m.commands)
        ]
        together = [(c,) for g in groups for c in g] if action == "" else list(product(*groups))
        for commands in together:
            row: dict[Valuation, Fraction] = {}
            for updates in product(*(c.updates for c in commands)):
                after, weight = dict(state), Fraction(1)
                for numeral, assignments in updates:
                    weight *= numeral.value
                    after.update(assignments)
                if weight:
                    key = tuple(after[name] for name in names)
                    row[key] = row.get(key, Fraction(0)) + weight
            if row:
                found.append((action, row))
    return found


def _joined(kind: str, choices: list[tuple[Choice, Fraction]]) -> list[Choice]:
    """Return a state's choices, rows divided by their sums; a chain has one: equal shares, or added rates."""
    if kind == "mdp":
        return [Choice({t: p / total for t, p in c.row.items()}, c.rewards) for c, total in choices]
    row: dict[int, Fraction] = {}
    rewards = [Fraction(0)] * len(choices[0][0].rewards)
    for choice, total in choices:
        for t, p in choice.row.items():
            row[t] = row.get(t, Fraction(0)) + p
        rewards = [a + b * total for a, b in zip(rewards, choice.rewards, strict=True)]
    if kind == "ctmc":
        return [Choice(row, rewards)]
    whole = sum(row.values())
    return [Choice({t: p / whole for t, p in row.items()}, [r / whole for r in rewards])]
