"""Properties of the small models with answers worked out by hand: cases of text, property and exact value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from tests.builders.chain_texts import DIE, GAMBLER, MANY_STARTS, QUEUE, SPLIT, STAIRS
from tests.builders.mdp_texts import COINS, ROOMS, SLOW_WAY, WAITING_ROOM
from tests.exploring import each

__all__ = ["OF_CHAINS", "OF_MDPS", "ON_THE_HOST", "in_every_way"]

Case = tuple[str, str, Fraction | float]

ON_THE_HOST: list[dict[str, object]] = [
    {"backend": "cpu"},
    {"backend": "reference", "level": 0},
    {"backend": "cpu", "engine": "explicit"},
    {"backend": "cpu", "method": "interval"},
]


def in_every_way(cases: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Each case with options of one of the ways on the host, each way with some case; all on a device."""
    on_device = [pytest.param(*case, {"backend": "gpu"}, marks=pytest.mark.gpu) for case in cases]
    return [*each(cases, ON_THE_HOST), *on_device]


def _stairs() -> dict[str, Fraction]:
    """Solve the stairs by hand: from the top down, the pairs two equations at a time."""
    win, time = {8: Fraction(1), 9: Fraction(0)}, {8: Fraction(0), 9: Fraction(0)}
    for values, gain in ((win, Fraction(0)), (time, Fraction(1))):
        values[7] = gain + values[8]
        for low in (6, 3, 0):
            if low < 6:
                # a = g + b/2 + up/2 and b = g + a/2 + up/2 with up = the value of low + 3.
                values[low + 1] = values[low + 2] = 2 * gain + values[low + 3]
            values[low] = gain + values[low + 1] / 2 + values[low + 2] / 4 + values[9] / 4
    return {"P=? [ F s=8 ]": win[0], "R=? [ F s>=8 ]": time[0]}


_WEIGHTS = [Fraction(2, 3) ** k for k in range(5)]
OF_CHAINS: list[Case] = [
    (DIE, "P=? [ F d=1 ]", Fraction(1, 6)),
    (DIE, "P=? [ G d!=1 ]", Fraction(5, 6)),
    (DIE, "P=? [ X s=1 ]", Fraction(1, 2)),
    (DIE, "P=? [ F<=3 d=1 ]", Fraction(1, 8)),
    (DIE, "P=? [ s<3 U[2,2] s=3 ]", Fraction(1, 4)),
    (DIE, "P=? [ s<2 W s=3 ]", Fraction(1, 4)),
    (DIE, "P=? [ d=1 R s<7 ]", Fraction(0)),
    (DIE, "S=? [ d=3 ]", Fraction(1, 6)),
    (DIE, 'R{"flips"}=? [ F s=7 ]', Fraction(11, 3)),
    (DIE, 'R{"flips"}=? [ C ]', Fraction(11, 3)),
    (DIE, 'R{"flips"}=? [ C<=4 ]', 3 + Fraction(1, 4)),
    (DIE, 'R{"flips"}=? [ I=3 ]', Fraction(1, 4)),
    (DIE, 'R{"flips"}=? [ F d=1 ]', math.inf),
    (DIE, "P=? [ F P>=1/3 [ F d=1 ] ]", Fraction(1, 2)),
    (GAMBLER, "P=? [ F x=goal ]", Fraction(76, 211)),
    (QUEUE, "S=? [ n=0 ]", 1 / sum(_WEIGHTS)),
    (QUEUE, 'R{"length"}=? [ S ]', sum(k * w for k, w in enumerate(_WEIGHTS)) / sum(_WEIGHTS)),
    (QUEUE, 'R{"length"}=? [ F n=2 ]', Fraction(1, 2)),
    (SPLIT, "S=? [ s=2 ]", Fraction(5, 24)),
    (SPLIT, 'R{"marked"}=? [ S ]', Fraction(2)),
    (MANY_STARTS, 'filter(max, R=? [ F x=0 | x=4 ], "init")', Fraction(4)),
    *((STAIRS, prop, value) for prop, value in _stairs().items()),
]

OF_MDPS: list[Case] = [
    (SLOW_WAY, "Pmax=? [ F x=2 ]", Fraction(3, 5)),
    (SLOW_WAY, "Pmin=? [ F x=2 ]", Fraction(1, 4)),
    (SLOW_WAY, "Pmax=? [ G x!=2 ]", Fraction(3, 4)),
    (SLOW_WAY, "Pmin=? [ G x!=2 ]", Fraction(2, 5)),
    (SLOW_WAY, "Pmax=? [ x!=1 U x=2 ]", Fraction(3, 10)),
    (SLOW_WAY, "Pmax=? [ x<2 W x=3 ]", Fraction(3, 4)),
    (SLOW_WAY, "Pmin=? [ x=3 R x!=2 ]", Fraction(2, 5)),
    (SLOW_WAY, "Pmax=? [ F<=3 x=2 ]", Fraction(9, 20)),
    (SLOW_WAY, "Pmax=? [ F<3 x=2 ]", Fraction(3, 10)),
    (SLOW_WAY, "Pmax=? [ F[2,3] x=2 ]", Fraction(9, 20)),
    (SLOW_WAY, "Pmin=? [ F>=2 x=2 ]", Fraction(1, 4)),
    (SLOW_WAY, "Pmax=? [ x=0 U[2,3] x=2 ]", Fraction(0)),
    (SLOW_WAY, "Pmax=? [ X x=2 ]", Fraction(3, 10)),
    (SLOW_WAY, "Pmin=? [ X x=2 ]", Fraction(1, 4)),
    (SLOW_WAY, "Pmin=? [ F x<0 ]", Fraction(0)),
    (SLOW_WAY, "Pmin=? [ F x>=2 ]", Fraction(1)),
    (SLOW_WAY, 'R{"tries"}max=? [ F x>=2 ]', Fraction(2)),
    (SLOW_WAY, 'R{"tries"}min=? [ F x>=2 ]', Fraction(1)),
    (SLOW_WAY, 'R{"tries"}max=? [ C ]', Fraction(2)),
    (SLOW_WAY, 'R{"tries"}max=? [ C<=3 ]', Fraction(3, 2)),
    (SLOW_WAY, 'R{"places"}max=? [ I=1 ]', Fraction(11, 4)),
    (SLOW_WAY, 'R{"places"}max=? [ C ]', math.inf),
    (SLOW_WAY, 'R{"tries"}min=? [ F x=2 ]', math.inf),
    (WAITING_ROOM, "Rmin=? [ F x=3 ]", Fraction(5)),
    (WAITING_ROOM, "Rmax=? [ F x=3 ]", math.inf),
    (WAITING_ROOM, "Rmin=? [ C ]", Fraction(0)),
    (WAITING_ROOM, "Rmax=? [ C ]", Fraction(7)),
    (WAITING_ROOM, "Pmax=? [ F x=2 ]", Fraction(1, 2)),
    (WAITING_ROOM, "Pmin=? [ F x=3 ]", Fraction(0)),
    (WAITING_ROOM, "Pmax=? [ F x=3 ]", Fraction(1)),
    (ROOMS, "Pmax=? [ G F x=3 ]", Fraction(3, 4)),
    (ROOMS, "Pmin=? [ G F x=3 ]", Fraction(1, 2)),
    (ROOMS, "Pmax=? [ F G x<=2 ]", Fraction(1, 2)),
    (ROOMS, "Pmin=? [ F G x<=2 ]", Fraction(0)),
    (ROOMS, "Pmax=? [ G F x=5 ]", Fraction(1, 4)),
    (ROOMS, "Pmin=? [ !(G F x=3) ]", Fraction(1, 4)),
    (ROOMS, "Rmax=? [ C ]", math.inf),
    (ROOMS, "Rmin=? [ C ]", math.inf),
    (ROOMS, 'R{"door"}max=? [ C ]', Fraction(3, 2)),
    (ROOMS, "filter(max, Rmin=? [ C ], x=1)", Fraction(0)),
    (COINS, "Pmax=? [ F x=1 ]", Fraction(1, 2)),
    (COINS, "Rmax=? [ F x>0 ]", Fraction(2)),
    (COINS, "Rmin=? [ F x>0 ]", Fraction(3, 2)),
    (COINS, "Pmax=? [ F<=2 x=1 ]", Fraction(4, 9)),
    (COINS, "Pmax=? [ X x=1 ]", Fraction(1, 3)),
]
