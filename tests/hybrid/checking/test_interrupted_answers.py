"""Answers whose iterations are ended at any moment: bounds that hold, a certain answer, or nothing."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest

from hybrid.analysis.run.options import CheckOptions
from hybrid.checking.answer import Answer
from hybrid.checking.checker import Checker
from hybrid.matrix.space.base import ProgressMonitor
from hybrid.properties import parse_properties, resolve_properties
from mtbdd.base.budget import BudgetError
from mtbdd.build.model import SymbolicModel
from tests.builders.chain_texts import GAMBLER, QUEUE
from tests.builders.known_answers import OF_CHAINS, OF_MDPS
from tests.builders.mdp_texts import PAIRS, ROUND
from tests.builders.models import build
from tests.builders.stopping import Stop, StopAfter
from tests.exploring import each

WINDOWS = [
    (ROUND, 'Pmax=? [ F{"r"}<=5 s=2 ]', Fraction(63, 64)),
    (ROUND, 'Pmin=? [ G{"r"}<=5 s!=2 ]', Fraction(1, 64)),
    (ROUND, 'quantile(B, Pmax>=0.98 [ F{"r"}<=B s=2 ])', Fraction(5)),
    (PAIRS, 'Smax=? [ "up" ]', Fraction(28, 39)),
    (PAIRS, 'R{"r"}max=? [ LRA ]', Fraction(293, 195)),
    (PAIRS, 'R{"r"}min=? [ LRA ]', Fraction(7, 20)),
    (QUEUE, "P=? [ F<=4 n=4 ]", None),
    (QUEUE, "P=? [ F[1,4] n=4 ]", None),
    (QUEUE, 'R{"length"}=? [ C<=30 ]', None),
    (QUEUE, 'R{"length"}=? [ I=30 ]', None),
    (GAMBLER, "P=? [ F<=300 x=goal ]", None),
    (GAMBLER, "P=? [ F<=300 x=goal ] * 2 - 1", None),
    (GAMBLER, "P=? [ F x=goal ] * 2 - P=? [ F x=0 ]", Fraction(76, 211) * 3 - 1),
    (GAMBLER, "P>0.3 [ F x=goal ]", True),
    (GAMBLER, "P=? [ F P>0.5 [ F x=0 ] ]", Fraction(1)),
]


def answered(
    model: SymbolicModel | str, prop: str, method: str, monitor: ProgressMonitor | None
) -> Answer | None:
    """Return the answer, None if nothing is known of it."""
    model = build(model) if isinstance(model, str) else model
    properties = resolve_properties(parse_properties(prop), model.source, {})
    options = CheckOptions.of(backend="reference", method=method)
    try:
        return Checker(model, options, monitor).answer(properties.properties[0])
    except Stop:
        return None


@pytest.mark.parametrize(
    ("text", "prop", "exact", "method", "count"),
    each([*OF_CHAINS, *OF_MDPS, *WINDOWS], ["optimistic", "interval"], [1, 5, 2, 20, 3]),
)
def test_what_is_told_holds(
    text: str, prop: str, exact: Fraction | float | None, method: str, count: int
) -> None:
    model = build(text)
    if method == "optimistic" and re.search(r"\bS\b", prop):
        method = "auto"  # averages in the long run have no other iteration
    whole = answered(model, prop, method, None)
    assert whole is not None and whole.error is None
    monitor = StopAfter(count)
    found = answered(model, prop, method, monitor)
    if found is None:
        assert monitor.left <= 0
        return
    assert found.interrupted == (found.error is not None)
    if found.interrupted:
        assert (found.value, found.error, found.kind) == (None, "stopped", "certified")
    assert found.lower is not None and found.upper is not None
    if exact is None:
        assert found.lower <= whole.upper and whole.lower <= found.upper
        return
    for bound, sign in ((found.lower, 1), (found.upper, -1)):
        known = bound if isinstance(bound, bool) or math.isinf(bound) else Fraction(bound)
        assert sign * known <= sign * exact


def test_bounds_come_closer_with_the_steps_made() -> None:
    widths = []
    for count in (5, 20, 60):
        found = answered(GAMBLER, "P=? [ F x=goal ]", "interval", StopAfter(count))
        assert found is not None and found.interrupted
        widths.append(found.upper - found.lower)
    assert widths[0] > widths[1] > widths[2] > 0.0


def test_windows_of_time_have_both_bounds() -> None:
    found = answered(QUEUE, "P=? [ F<=400 n=4 ]", "auto", StopAfter(1))
    assert found is not None and found.interrupted
    assert 0.0 < found.upper <= 1.0
    record = found.record()
    assert (record["interrupted"], record["kind"], record["value"]) == (True, "certified", None)


def test_sets_that_are_not_known_define_nothing() -> None:
    """The inner probability is ended while its comparison is open."""
    assert answered(GAMBLER, "P=? [ F P>0.6 [ F x=0 ] ]", "interval", StopAfter(1)) is None


def test_an_answer_that_the_bounds_decide_already_is_one() -> None:
    found = answered(GAMBLER, "P>0.01 [ F x=goal ]", "interval", StopAfter(20))
    assert found is not None
    assert (found.value, found.interrupted, found.error) == (True, False, None)


def test_bounds_stay_where_time_is_up_in_exact_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loose bounds of a small model have exact numbers tried; these may take all the time that is left."""

    def spent(*_: object) -> None:
        raise BudgetError("the time limit is reached")

    monkeypatch.setattr(Checker, "_is_loose", lambda checker, found: True)
    monkeypatch.setattr(Checker, "_exactly", spent)
    found = answered(GAMBLER, "P=? [ F x=goal ]", "auto", StopAfter(100_000))
    assert found is not None and found.interrupted and found.error == "the time limit is reached"
    assert 0.0 < found.lower <= 76 / 211 <= found.upper < 1.0
    with pytest.raises(BudgetError):
        answered(GAMBLER, "P=? [ F x=goal ]", "auto", None)


def test_least_sums_of_rewards_are_rounded_down() -> None:
    """A quantile whose search is ended is told from below, by a double up to a sum of tenths."""
    text, seen = ROUND.replace(": 1;", ": 0.1;"), set()
    for count in range(46, 94, 8):
        found = answered(text, 'quantile(B, Pmax>=0.99999 [ F{"r"}<=B s=2 ])', "optimistic", StopAfter(count))
        if found is not None and found.interrupted:
            assert Fraction(found.lower) <= Fraction(round(10 * found.lower), 10)
            seen.add(found.lower)
    assert len(seen) > 3
