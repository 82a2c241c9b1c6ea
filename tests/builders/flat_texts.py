"""Texts of models without structure, by size: hundreds of distinct numbers, counters, long formulas.

Diagrams of such models share little.  The oscillators are those of Gainer, Linker, Dixon, Hustadt and Fisher
(2017, 2018), as a population of clocks whose flashes may be lost; the gate stands for genetic circuits, CTMCs
of levels of proteins; opinions and epidemic are protocols of populations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

State = tuple[int, ...]


def oscillators(clocks: int, phases: int, coupling: float = 0.1, refractory: int = 1) -> str:
    """Return a DTMC of clocks that pull one another, a command for every state in which one flashes.

    It has ``binomial(clocks + phases - 1, clocks) + 1`` states, and leaves the chance ``mu`` that a flash is
    lost and the order ``level`` to be reached open.
    """
    names = [f"k{i}" for i in range(1, phases + 1)]
    lines = ["dtmc", "const double mu;", "const double level;"]
    for sent in range(clocks + 1):
        for lost in range(sent + 1):
            ways = math.comb(sent, lost)
            lines.append(
                f"formula lost_{sent}_{lost} = {ways} * pow(mu, {lost}) * pow(1 - mu, {sent - lost});"
            )
    for name, function in (("along", math.cos), ("across", math.sin)):
        shares = (function(2 * math.pi * i / phases) for i in range(phases))
        total = " + ".join(f"{share:.12f} * {k}" for share, k in zip(shares, names, strict=True))
        lines.append(f"formula {name} = pow(({total}) / {clocks}, 2);")
    lines += [
        "formula order = pow(along + across, 0.5);",
        f"formula placed = {' + '.join(names)} = {clocks};",
    ]
    lines += ["module population", *(f"  {k} : [0..{clocks}];" for k in names), "  [] !placed ->"]
    starts = [
        f"{_ways(state)} / {phases**clocks} : {_assigned(names, state)}" for state in _counts(clocks, phases)
    ]
    lines.append("    " + "\n    + ".join(starts) + ";")
    for last in range(1, phases):
        shift = phases - last
        empty = "".join(f" & {k}=0" for k in names[last:])
        moved = [f"({k}'={names[i - shift] if i >= shift else 0})" for i, k in enumerate(names)]
        lines.append(f"  [] placed & {names[last - 1]}>0{empty} -> {' & '.join(moved)};")
    for state in _counts(clocks, phases):
        if state[-1]:
            guard = " & ".join(f"{k}={count}" for k, count in zip(names, state, strict=True))
            found = _after_flashes(state, coupling, refractory)
            updates = [f"{' + '.join(terms)} : {_assigned(names, to)}" for to, terms in found.items()]
            lines.append(f"  [] placed & {guard} -> {' + '.join(updates)};")
    lines += ["endmodule", 'label "synchronised" = placed & order >= level;', 'rewards "energy"']
    for last in range(phases, 0, -1):
        empty = "".join(f" & {k}=0" for k in names[last:])
        shift = max(1, phases - last)
        idle = " + ".join(
            f"{min(max(refractory + 1 - i, 0), shift)} * {k}" for i, k in enumerate(names[:last], 1)
        )
        heard = " + ".join(
            f"{shift - min(max(refractory + 1 - i, 0), shift)} * {k}" for i, k in enumerate(names[:last], 1)
        )
        guard = f"placed & {names[last - 1]}>0{empty}"
        lines.append(f"  {guard} : {names[0]} * 0.0000417 + ({idle}) * 0.0000021 + ({heard}) * 0.0000387;")
    return "\n".join([*lines, "endrewards", ""])


def gate(levels: int, proteins: int = 6) -> str:
    """Return a CTMC of proteins that repress one another by Hill's formula, a command for every level.

    It has ``(levels + 1) ** proteins`` states; levels are steps of molecules, so that ranges are far
    wider than what is reached of them.
    """
    names = [f"p{i}" for i in range(proteins)]
    steps = [50, 20, 20, 25, 20, 15, 30, 10][:proteins]
    lines = ["ctmc"]
    for i, name in enumerate(names):
        held = [names[(i + place) % proteins] for place in (1, 2, 3)]
        terms = " + ".join(f"0.{99 + 7 * i} / (1.99 + pow(0.{5 + i} * {other}, 2)) * 10" for other in held)
        lines.append(f"formula made_{name} = 10 * ({terms}) / {50 + i};")
    for i, (name, step) in enumerate(zip(names, steps, strict=True)):
        lines.append(f"module {name}_def")
        lines.append(f"  {name} : [0..{levels * step + i}] init {levels * step * (i % 2)};")
        for level in range(0, levels * step + 1, step):
            ways = [f"made_{name} : ({name}'={level + step})"] * (level < levels * step)
            ways += [f"0.0075 * {name} / {3 + i} : ({name}'={level - step})"] * (level > 0)
            lines.append(f"  [] {name} = {level} -> {' + '.join(ways)};")
        lines.append("endmodule")
    most = f"{names[0]} > {levels * steps[0] // 2} & {names[1]} < {levels * steps[1] // 2}"
    lines += [f'label "high" = {most};', 'rewards "protein"']
    return "\n".join([*lines, f"  true : {' + '.join(names)};", "endrewards", ""])


def opinions(people: int) -> str:
    """Return a CTMC of people who meet: two that differ get undecided, those who are undecided follow.

    It has about ``people ** 2 / 2`` states, and as many rates.
    """
    return f"""ctmc
const int n = {people};
formula u = n - x - y;
module meetings
  x : [0..n] init ceil(0.6 * n) - 1;
  y : [0..n] init n - ceil(0.6 * n);
  [] x > 0 & y > 0 -> 2 * x * y / (n - 1) : (x'=x-1);
  [] x > 0 & y > 0 -> 2 * x * y / (n + 1) : (y'=y-1);
  [] u > 0 & x > 0 -> x * u / n : (x'=x+1);
  [] u > 0 & y > 0 -> y * u / n : (y'=y+1);
endmodule
label "agreed" = x = n | y = n;
rewards "doubt"
  u > 0 : u * (0.5 + pow(u / n, 2)) + min(x, y) / n;
endrewards
"""


def epidemic(people: int) -> str:
    """Return an MDP of people who fall ill by chance, each day by a binomial law; they may be kept apart.

    It has about ``people ** 2 / 2`` states and as many updates a choice as there are people at risk.
    """
    lines = ["mdp", f"const int n = {people};"]
    for name, base in (("meet", 0.97), ("apart", 0.992)):
        lines.append(f"formula {name} = pow({base}, ill);")
    lines += ["module epidemic", "  safe : [0..n] init n - 1;", "  ill : [0..n] init 1;"]
    for name in ("meet", "apart"):
        for safe in range(people):
            updates = " + ".join(
                f"{math.comb(safe, k)}.0 * pow(1 - {name}, {k}) * pow({name}, {safe - k})"
                f" : (safe'={safe - k}) & (ill'={k})"
                for k in range(safe + 1)
            )
            lines.append(f"  [{name}] ill > 0 & safe = {safe} -> {updates};")
    lines += ["endmodule", 'label "over" = ill = 0;', f'label "most" = safe < {people // 2};']
    lines += ['rewards "cost"', "  true : ill * (1 + ill / n);", "  [apart] true : 0.3 * safe;"]
    return "\n".join([*lines, "endrewards", ""])


def _counts(total: int, places: int) -> Iterator[State]:
    """Yield the ways to share a number among places."""
    if places == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _counts(total - first, places - 1):
            yield (first, *rest)


def _ways(state: State) -> int:
    """Return how many ways there are to give members numbers: a multinomial coefficient."""
    found, left = 1, sum(state)
    for count in state:
        found *= math.comb(left, count)
        left -= count
    return found


def _assigned(names: list[str], state: State) -> str:
    return " & ".join(f"({k}'={count})" for k, count in zip(names, state, strict=True))


def _after_flashes(state: State, coupling: float, refractory: int) -> dict[State, list[str]]:
    """Return the states that follow, and the products whose sum is the chance of each.

    The clocks of the last phase flash; those of lower ones hear the flashes that were not lost, are pushed
    ahead by them, and flash as well if that takes them beyond the last phase.
    """
    phases = len(state)
    found: dict[State, list[str]] = {}

    def fall(phase: int, heard: int, chance: tuple[str, ...], after: State, flashing: bool) -> None:
        if phase == 0:
            found.setdefault(after, []).append(" * ".join(chance) or "1")
            return
        count, reached = state[phase - 1], phase + 1
        if phase > refractory:
            reached += math.floor(coupling * phase * heard + 0.5)
        flashes = flashing and (phase == phases or reached > phases)
        to = 0 if phase == phases or reached > phases else reached - 1
        moved = tuple(own + count * (place == to) for place, own in enumerate(after))
        for lost in range(count + 1) if flashes and count else (count,):
            own = (*chance, f"lost_{count}_{lost}") if flashes and count else chance
            fall(phase - 1, heard + count - lost, own, moved, flashes)

    fall(phases, 0, (), (0,) * phases, True)
    return found
