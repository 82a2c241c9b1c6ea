"""The answers worked out by hand, on the device: steps, windows, nesting and filters, on both engines.

Launches of the emulator are slow, so that it has one case of every kind; a real device has them all.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import hybrid
from gpu_kernels import Device
from hybrid.matrix.operators.hybrid_choices import NOTHING_TO_MULTIPLY
from tests.builders.known_answers import OF_MDPS
from tests.builders.mdp_texts import COINS, ROOMS, SLOW_WAY, WAITING_ROOM
from tests.builders.models import build

ENGINES = ["hybrid", "explicit"]
ON_HOST = "single products over the layers of an MDP are made on the host"

# Words of a property that tell its kind; the emulator takes the first of each.
KINDS = {
    "within steps": "F<=",
    "strictly within steps": "F<3",
    "window from the second step": "F[2,3]",
    "window of an until": "U[2,3]",
    "from a step on": "F>=2",
    "next": "[ X ",
    "gathered in steps": "C<=",
    "at a step": "I=",
    "gathered for ever": "max=? [ C ]",
    "again and again": "G F",
    "filter": "filter(",
}
NESTED = [
    ("Pmax=? [ F P>=1 [ X x=0 ] ]", Fraction(1, 2)),
    ("Pmin=? [ F<=2 (Pmax>=0.5 [ F x=2 ] & x>0) ]", Fraction(1, 4)),
    ('filter(avg, R{"tries"}max=? [ F x>=2 ], x<2)', Fraction(2)),
    ("filter(min, Pmax=? [ F<=2 x=2 ], x<=1)", Fraction(3, 10)),
    ('filter(sum, R{"tries"}max=? [ C<=2 ], x<2)', Fraction(2)),
    ("filter(count, P>=0.25 [ X x=2 ])", Fraction(2)),
    ("Pmax=? [ F x=2 ] - Pmin=? [ F x=2 ]", Fraction(7, 20)),
]
TRUTH = [
    ("P<0.5 [ F<=3 x=2 ]", True),
    ("P<0.4 [ F<=3 x=2 ]", False),
    ('R{"tries"}<=1.5 [ C<=3 ]', True),
    ("filter(exists, Pmax<1 [ F<=2 x=2 ], x=1)", True),
]


def chosen(name: str, engine: str) -> list[tuple[str, str, Fraction | float]]:
    """Return the cases that a device takes; an engine on the emulator takes every other one."""
    if name != "host":
        return OF_MDPS
    first = [next(case for case in OF_MDPS if word in case[1]) for word in KINDS.values()]
    unbounded = [(ROOMS, "Pmin=? [ F G x<=2 ]"), (COINS, "Rmin=? [ F x>0 ]"), (WAITING_ROOM, "Rmax=? [ C ]")]
    return (first + [case for case in OF_MDPS if case[:2] in unbounded])[ENGINES.index(engine) :: 2]


def holds(prop: str, exact: Fraction | float, slack: Fraction, answer: hybrid.Answer) -> None:
    """Assert that an answer's bounds are narrow and contain the exact value."""
    assert answer.error is None, (prop, answer.error)
    if exact == math.inf:
        assert answer.value == answer.lower == answer.upper == math.inf, prop
        return
    assert Fraction(answer.lower) - slack <= exact <= Fraction(answer.upper) + slack, prop
    assert answer.upper - answer.lower <= 1e-7, prop
    assert answer.lower <= answer.value <= answer.upper, prop


def told(answer: hybrid.Answer, engine: str) -> str | None:
    """Return where an answer was computed; assert that it is the device, or that the answer says why not."""
    work = answer.statistics
    if work.backend == "cpu":
        reasons = (ON_HOST, NOTHING_TO_MULTIPLY) if engine == "hybrid" else (ON_HOST,)
        assert work.backend_reason in reasons, answer.property
    elif work.backend is not None:
        own, _, others = str(work.backend_reason).partition("; other parts on cpu: ")
        assert (work.backend, own) == ("gpu", "asked for"), answer.property
        assert others in ("", ON_HOST, NOTHING_TO_MULTIPLY), answer.property
    else:
        assert answer.lower == answer.upper, answer.property
    return work.backend


@pytest.mark.parametrize("engine", ENGINES)
def test_values_known_by_hand_lie_within_the_bounds(device: Device, engine: str) -> None:
    cases = chosen(device.name, engine)
    models = {text: build(text) for text in {text for text, _, _ in cases}}
    places = []
    for text, prop, exact in cases:
        answer = hybrid.check(models[text], prop, engine=engine, backend="gpu")
        # Thirds and their like are not doubles: the bounds hold the answer for the doubles of the text.
        holds(prop, exact, Fraction(0 if text != COINS else 1, 10**15), answer)
        places.append(told(answer, engine))
    assert places.count("gpu") > len(places) // 2


@pytest.mark.parametrize("engine", ENGINES)
def test_nested_operators_and_filters(device: Device, engine: str) -> None:
    model, places = build(SLOW_WAY), []
    for prop, exact in NESTED:
        answer = hybrid.check(model, prop, engine=engine, backend="gpu")
        if "count" in prop:
            assert answer.value == exact
        else:
            holds(prop, exact, Fraction(0), answer)
        places.append(told(answer, engine))
    assert places.count("gpu") > len(places) // 2
    for prop, expected in TRUTH:
        assert hybrid.check(model, prop, engine=engine, backend="gpu").value is expected, prop


@pytest.mark.parametrize("engine", ENGINES)
def test_long_windows_are_the_cpus(device: Device, engine: str) -> None:
    model = build(SLOW_WAY)
    for prop in ("Pmax=? [ F<=45 x=2 ]", 'R{"tries"}max=? [ C<=45 ]', 'R{"places"}max=? [ I=45 ]'):
        here, there = (
            hybrid.check(model, prop, engine=engine, backend=b, throw=False) for b in ("gpu", "cpu")
        )
        assert here.error is None, here.error
        assert here.statistics.backend == "gpu"
        assert here.value == pytest.approx(float(there.value), rel=1e-13)
        assert max(here.lower, there.lower) <= min(here.upper, there.upper)
