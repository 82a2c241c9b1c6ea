"""Random models written twice: as text and with the builder of Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybrid import ModelBuilder

__all__ = ["TwiceWritten"]

_ACTIONS = (None, "a", "b")
_SPLITS = ((1.0,), (0.5, 0.5), (0.25, 0.75), (0.5, 0.25, 0.25))
_RATES = (0.5, 1.0, 2.0, 1.5)


class TwiceWritten:
    """A model of one to three modules, with numbers that doubles hold, written as text and in Python.

    Parameters
    ----------
    rng : numpy.random.Generator
    kind : {"dtmc", "ctmc", "mdp"}

    Attributes
    ----------
    text : str
    builder : ModelBuilder
    """

    def __init__(self, rng: np.random.Generator, kind: str) -> None:
        self.rng = rng
        self.kind = kind
        self.builder = ModelBuilder(kind)
        self.variables: dict[str, Any] = {}
        modules, started = [], []
        self.many = bool(rng.random() < 0.5)  # initial states
        for number in range(int(rng.integers(1, 4))):
            modules.append(self._declared(number))
        texts = []
        for number, (own, declarations) in enumerate(modules):
            part = self.builder.module(f"m{number}")
            commands = [self._command(part, own) for _ in range(int(rng.integers(1, 5)))]
            texts.append(f"module m{number}\n" + "\n".join(declarations + commands) + "\nendmodule\n")
        if self.many:
            text, condition = self._condition()
            self.builder.initial(condition | (self.variables["x0"] == 1))
            started = [f"init ({text}) | x0=1 endinit\n"]
        text, condition = self._condition()
        self.builder.label("seen", condition)
        self.text = "\n".join([kind, *texts, *started, f'label "seen" = {text};', self._rewards()])

    def _declared(self, number: int) -> tuple[list[str], list[str]]:
        own, lines = [], []
        low, high = int(self.rng.integers(-2, 1)), int(self.rng.integers(1, 4))
        name = f"x{number}"
        start = int(self.rng.integers(low, high + 1))
        self.variables[name] = self.builder.variable(name, low, high, start)
        lines.append(f"{name} : [{low}..{high}]{self._init(start)};")
        own.append(name)
        if self.rng.random() < 0.6:
            name, first = f"up{number}", bool(self.rng.random() < 0.5)
            self.variables[name] = self.builder.boolean(name, first)
            lines.append(f"{name} : bool{self._init(str(first).lower())};")
            own.append(name)
        return own, lines

    def _init(self, value: Any) -> str:
        return "" if self.many else f" init {value}"

    def _integer(self) -> tuple[str, Any]:
        """An integer expression, as text and in Python; sometimes a function."""
        names = [n for n in self.variables if n.startswith("x")]
        first, second = (str(self.rng.choice(names)) for _ in range(2))
        x, y, k = self.variables[first], self.variables[second], int(self.rng.integers(-1, 3))
        forms = [
            (f"{first}+{k}", x + k),
            (f"{first}-{second}", x - y),
            (f"({k}-{first})*{second}", (k - x) * y),
            (f"max({first},{second})", np.maximum(x, y)),
            (f"mod({first},3)", x % 3),
            (f"floor({first}/2)", x // 2),
            (f"({first}>{k} ? {second} : {k})", np.where(x > k, y, k)),
            (f"({first}+{second})", self.builder.function(lambda a, b: a + b, over=[x, y])),
        ]
        return forms[int(self.rng.integers(len(forms)))]

    def _condition(self) -> tuple[str, Any]:
        text, value = self._integer()
        k, kind = int(self.rng.integers(-1, 2)), int(self.rng.integers(5))
        name = str(self.rng.choice(list(self.variables)))
        if name.startswith("up"):
            other, held = name, self.variables[name]
        else:
            other, held = f"{name}<={k + 1}", self.variables[name] <= k + 1
        forms = [
            (f"{text}>={k}", value >= k),
            (f"{text}!={k}", value != k),
            (f"({text}<{k} | {other})", (value < k) | held),
            (f"!({text}={k} & {other})", ~((value == k) & held)),
            (other, held),
        ]
        return forms[kind]

    def _command(self, part: Any, own: list[str]) -> str:
        action = _ACTIONS[int(self.rng.integers(3))]
        guard, condition = self._condition()
        split = _SPLITS[int(self.rng.integers(len(_SPLITS)))]
        texts, updates = [], []
        for weight in split:
            shown, value = f"{weight}", weight
            if self.kind == "ctmc":
                rate = float(self.rng.choice(_RATES))
                low = next(v for v in self.variables if v.startswith("x"))
                shown = f"{rate}*max(0,{low}+1)"
                value = rate * np.maximum(0, self.variables[low] + 1)
            assigned: dict[Any, Any] = {}
            lines = []
            for name in own:
                if self.rng.random() < 0.3:
                    continue
                variable = self.variables[name]
                if name.startswith("up"):
                    text, new = self._condition()
                else:
                    text, new = self._integer()
                    text = f"min(max({text},{variable.low}),{variable.high})"
                    new = np.minimum(np.maximum(new, variable.low), variable.high)
                lines.append(f"({name}'={text})")
                assigned[variable] = new
            texts.append(f"{shown}:" + ("&".join(lines) or "true"))
            updates.append((value, assigned))
        part.command(condition, updates=updates, action=action)
        return f"[{action or ''}] {guard} -> {' + '.join(texts)};"

    def _rewards(self) -> str:
        used = [a for a in ("a", "b") if any(c.action == a for m in self.parts() for c in m)]
        lines = []
        for action in [None, None, "", *used]:
            guard, condition = self._condition()
            worth = int(self.rng.integers(1, 4))
            self.builder.reward("cost", condition, 0.5 * worth, action=action)
            begin = "" if action is None else f"[{action}] "
            lines.append(f"{begin}{guard} : {0.5 * worth};")
        return 'rewards "cost"\n' + "\n".join(lines) + "\nendrewards\n"

    def parts(self) -> list[list[Any]]:
        """The commands of every module of the builder."""
        return [module._commands for module in self.builder._modules.values()]
