"""Random models of one module, by family: what is hard about them is told by the family's name."""

from __future__ import annotations

import math
from random import Random

from tests.attack.disguise import CONSTANTS, disguised
from tests.attack.modules import module_spec
from tests.attack.numerals import rate, reward, tiny_decimals, weights
from tests.attack.spec import Command, Guard, Module, RewardItem, Spec

__all__ = ["FAMILIES", "KINDS", "random_spec"]

KINDS = ("dtmc", "ctmc", "mdp")
FAMILIES = (
    "flat", "walk", "blocks", "bottoms", "cycle", "loops", "line", "deadlocks", "ends", "modules",
)  # fmt: skip
_STYLES = ("dyadic", "decimal", "fraction", "tiny", "tiny", "tiny", "long", "rounded", "doubles")
_NEARLY = ("rounded", "doubles")  # rows that need not add up to 1
_MOST_SCHEDULERS = 32

# Successors of every choice of every state; rare ones first.
Structure = list[list[list[int]]]


def random_spec(rng: Random, kind: str | None = None, family: str | None = None) -> Spec:
    """Return a random model."""
    kind = rng.choice(KINDS) if kind is None else kind
    family = rng.choice(FAMILIES) if family is None else family
    if family == "ends" and kind != "mdp":
        family = "bottoms"
    if family == "modules":
        return module_spec(rng, kind)
    structure = _structure(rng, kind, family)
    low = rng.choice((0, 0, 0, 1, -3))
    style = "tiny" if family == "walk" and rng.random() < 0.5 else rng.choice(_STYLES)
    rates = rng.choice(("plain", "plain", "stiff", "stiff", "extreme"))
    tiny = tiny_decimals(rng)
    disguise = rng.random() < 0.25
    commands = []
    for s, choices in enumerate(structure):
        several = len(choices) > 1 and kind == "dtmc"
        for successors in choices:
            row_style = style if rng.random() < 0.8 else rng.choice(_STYLES)
            if several and row_style in _NEARLY:
                row_style = "dyadic"
            if kind == "ctmc":
                numbers = [rate(rng, rates if rng.random() < 0.8 else "plain") for _ in successors]
            else:
                numbers = weights(
                    rng, len(successors), row_style, tiny, rare_first=family == "walk" or rng.random() < 0.7
                )
            if disguise:
                numbers = [disguised(rng, p, s + low) if rng.random() < 0.5 else p for p in numbers]
            updates = tuple(
                (p, () if t == s and rng.random() < 0.3 else (("s", t + low),))
                for p, t in zip(numbers, successors, strict=True)
            )
            commands.append(Command(rng.choice(("", "", "a", "b")), (("s", "=", s + low),), updates))
    size = len(structure)
    start = 0 if family in ("walk", "line") and rng.random() < 0.8 else rng.randrange(size)
    module = Module("m", (("s", low, low + size - 1, start + low),), tuple(commands))
    guards: list[Guard] = [(), *((("s", "=", s + low),) for s in range(size)), (("s", ">", low + size // 2),)]
    structures = tuple(_rewards(rng, kind, guards, disguise) for _ in range(rng.choice((1, 1, 2))))
    return Spec(kind, family, (module,), structures, rng.random() < 0.3, CONSTANTS if disguise else ())


def _rewards(rng: Random, kind: str, guards: list[Guard], disguise: bool) -> tuple[RewardItem, ...]:
    """Return the items of a reward structure; an MDP takes none below zero."""
    signed = () if kind == "mdp" else ("signed", "mixed")
    style = rng.choice(("whole", "whole", "fraction", "huge", "tiny", *signed))
    items = []
    for _ in range(rng.randint(1, 4)):
        action = rng.choice((None, None, None, "", "a", "b"))
        value = reward(rng, style)
        if disguise and rng.random() < 0.5:
            value = disguised(rng, value)
        items.append(RewardItem(action, rng.choice(guards), value))
    return tuple(items)


# ------------------------------------------------------------------ structures


def _structure(rng: Random, kind: str, family: str) -> Structure:
    """Return who follows whom."""
    if family == "walk":
        found = _walk(rng, kind)
    elif family == "line":
        found = _line(rng, kind)
    elif family == "blocks":
        found = _blocks(rng)
    elif family == "bottoms":
        found = _bottoms(rng)
    elif family == "cycle":
        found = _cycle(rng)
    else:
        found = [[_some(rng, size, rng.randint(1, 3))] for size in [rng.randint(2, 7)] for _ in range(size)]
    if family == "loops":
        found = [[[*(t for t in row[0] if t != s), s]] for s, row in enumerate(found)]
    if family == "deadlocks":
        found = [[] if rng.random() < 0.3 else row for row in found]
    if family not in ("walk", "line") or kind == "mdp":
        _add_choices(rng, kind, family, found)
    return found


def _some(rng: Random, size: int, count: int) -> list[int]:
    return rng.sample(range(size), min(count, size))


def _add_choices(rng: Random, kind: str, family: str, structure: Structure) -> None:
    """Give some states more than one choice: an MDP's, or commands of a chain that are enabled together."""
    size = len(structure)
    for s in rng.sample(range(size), size):
        if not structure[s] or rng.random() > (0.7 if kind == "mdp" else 0.1):
            continue
        if kind == "mdp" and math.prod(len(c) or 1 for c in structure) * 2 > _MOST_SCHEDULERS:
            return
        if family == "ends" and rng.random() < 0.6:
            # A way back, alone: it closes an end component that other choices leave.
            structure[s].append([rng.randrange(s + 1)])
        else:
            structure[s].append(_some(rng, size, rng.randint(1, 2)))


def _walk(rng: Random, kind: str) -> Structure:
    """Return a walk, to one side or to both, whose failures lead back to its start."""
    steps = rng.randint(2, 5 if kind == "mdp" else 12 if kind == "ctmc" else 20)
    ends = rng.random() < 0.8
    if rng.random() < 0.35:
        found = [[[s + 1, 0]] for s in range(steps)]
        return [*found, [[steps] if ends else [0]]]
    # State 0 is the middle; odd states lie on one side, even ones on the other.
    half = max(1, steps // 2)
    last = 2 * half
    found = [[[1, 2]] if rng.random() < 0.5 else [[1, 2, 0]]]
    for s in range(1, last + 1):
        onward = s + 2
        found.append([[s] if ends else [0]] if onward > last else [[onward, 0]])
    return found


def _line(rng: Random, kind: str) -> Structure:
    """Return a long line with a sink beside it."""
    steps = rng.randint(3, 6 if kind == "mdp" else 10 if kind == "ctmc" else 24)
    sink = steps + 1
    found = [[[sink, s + 1] if rng.random() < 0.7 else [s + 1]] for s in range(steps)]
    return [*found, [[steps]], [[sink]]]


def _blocks(rng: Random) -> Structure:
    """Return two or three strongly connected blocks, each with a rare link to the next."""
    sizes = [rng.randint(1, 3) for _ in range(rng.randint(2, 3))]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    found: Structure = []
    for block, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        for i in range(size):
            row = {start + (i + 1) % size, start + rng.randrange(size)}
            linked = i == 0 and (block + 1 < len(sizes) or rng.random() < 0.7)
            link = [starts[(block + 1) % len(sizes)]] if linked else []
            found.append([[*link, *sorted(row - set(link))]])
    return found


def _bottoms(rng: Random) -> Structure:
    """Return a few transient states and several bottom components, cycles some of them."""
    transient, sizes = rng.randint(1, 3), [rng.randint(1, 3) for _ in range(rng.randint(2, 4))]
    starts = [transient + sum(sizes[:i]) for i in range(len(sizes))]
    found: Structure = []
    for _ in range(transient):
        inner = rng.sample(range(transient), 1)
        found.append([[*rng.sample(starts, rng.randint(1, 2)), *(inner if rng.random() < 0.7 else [])]])
    for start, size in zip(starts, sizes, strict=True):
        for i in range(size):
            onward = start + (i + 1) % size
            row = [onward] if rng.random() < 0.6 else sorted({onward, start + rng.randrange(size)})
            found.append([row])
    return found


def _cycle(rng: Random) -> Structure:
    """Return a cycle, with a rare exit to a sink or a shortcut in places."""
    size = rng.randint(2, 7)
    sink = rng.random() < 0.5
    found: Structure = []
    for s in range(size):
        row = [(s + 1) % size]
        if rng.random() < 0.3:
            other = size if sink else rng.randrange(size)
            if other not in row:
                row.insert(0, other)
        found.append([row])
    return [*found, [[size]]] if sink else found
