"""The proof of a quotient: blocks that are none are found out, whoever made them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import hybrid
from hybrid.errors import HybridError
from hybrid.lumping import quotient
from hybrid.lumping.partition import Blocks, WrittenChoices

CHAIN = """dtmc
module m
  x : [0..5];
  [] x=0 -> 0.25:(x'=1) + 0.75:(x'=2);
  [] x=1 -> {}:(x'=3) + {}:(x'=4);
  [] x=2 -> 0.3:(x'=3) + 0.7:(x'={});
  [] x>2 -> true;
endmodule
init true endinit
rewards x=1 : {}; [] x=2 : {}; endrewards
"""
CHOICES = """mdp
module m
  x : [0..3];
  [a] x=0 -> 0.5:(x'=2) + 0.5:(x'=3);
  [b] x=0 -> {};
  [a] x=1 -> 0.5:(x'=2) + 0.5:(x'=3);
  [b] x=1 -> {};
  [] x>1 -> true;
endmodule
init true endinit
rewards [b] x=0 : {}; endrewards
"""


def forged(monkeypatch: pytest.MonkeyPatch, change: Callable[[Blocks], Blocks]) -> None:
    """Let refinement end with other blocks than it found."""
    found = WrittenChoices.stable

    def stable(*arguments: object) -> Blocks:
        return change(found(*arguments))  # type: ignore[arg-type]

    monkeypatch.setattr(WrittenChoices, "stable", stable)


def merged(blocks: Blocks, one: int, other: int, one_choice: bool = False) -> Blocks:
    """Return blocks of which those of two states are one; with `one_choice` all their choices are."""
    own = blocks.of_state.copy()
    own[own == own[other]] = own[one]
    _, own = np.unique(own, return_inverse=True)
    of_choice = np.zeros_like(blocks.of_choice) if one_choice else blocks.of_choice
    return replace(blocks, of_state=own.astype(np.int64), count=int(own.max()) + 1, of_choice=of_choice)


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        (("0.3", "0.7", 4, 0, 0), 3),
        (("0.4", "0.6", 4, 0, 0), None),
        (("0.3", "0.7", 5, 0, 0), None),
        (("0.3", "0.7", 4, 1, 0), None),
        (("0.3", "0.7", 4, 0, 1), None),
    ],
)
def test_proof_of_chains_finds_what_states_do_not_share(
    monkeypatch: pytest.MonkeyPatch, fields: tuple[object, ...], count: int | None
) -> None:
    model = hybrid.parse(CHAIN.format(*fields) + 'label "three" = x=3; label "four" = x=4;')
    where = [label.expression for label in model.source.labels]
    sets = [super(hybrid.Model, model).states(e) for e in where]
    forged(monkeypatch, lambda blocks: merged(blocks, 1, 2))
    if count is None:
        with pytest.raises(HybridError, match="could not be proved"):
            quotient(model, sets, [0])
        return
    assert quotient(model, sets, [0]).model.n_states == 5


@pytest.mark.parametrize(
    ("fields", "is_one"),
    [
        (("(x'=2)", "(x'=2)", 0), True),
        (("(x'=2)", "(x'=3)", 0), False),
        (("(x'=2)", "0.5:(x'=2)+0.5:(x'=3)", 0), False),
        (("(x'=2)", "(x'=2)", 1), False),
    ],
)
def test_proof_of_decision_processes_finds_choices_that_states_do_not_share(
    monkeypatch: pytest.MonkeyPatch, fields: tuple[object, ...], is_one: bool
) -> None:
    model = hybrid.parse(CHOICES.format(*fields) + 'label "two" = x=2;')
    sets = [super(hybrid.Model, model).states(model.source.labels[0].expression)]
    forged(monkeypatch, lambda blocks: merged(blocks, 0, 1))
    if is_one:
        assert quotient(model, sets, [0]).model.n_states == 3
        return
    with pytest.raises(HybridError, match="could not be proved"):
        quotient(model, sets, [0])


def test_proof_of_decision_processes_finds_choices_that_are_not_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hybrid.parse(CHOICES.format("(x'=2)", "(x'=2)", 0) + 'label "two" = x=2;')
    sets = [super(hybrid.Model, model).states(model.source.labels[0].expression)]
    forged(monkeypatch, lambda blocks: merged(blocks, 0, 0, one_choice=True))
    with pytest.raises(HybridError, match="could not be proved"):
        quotient(model, sets, [0])


def test_proof_finds_rates_that_a_state_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hybrid.parse(
        "ctmc module m x:[0..3]; [] x=0 -> 1:(x'=2) + 2:(x'=3); [] x=1 -> 1:(x'=2); [] x>1 -> true; "
        'endmodule init true endinit label "two" = x=2;'
    )
    sets = [super(hybrid.Model, model).states(model.source.labels[0].expression)]
    forged(monkeypatch, lambda blocks: merged(blocks, 0, 1))
    with pytest.raises(HybridError, match="could not be proved"):
        quotient(model, sets)


def test_an_accident_is_mended_with_other_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hybrid.parse(CHAIN.format("0.4", "0.6", 4, 0, 0) + 'label "three" = x=3;')
    sets = [super(hybrid.Model, model).states(model.source.labels[0].expression)]
    asked = []

    def once(blocks: Blocks) -> Blocks:
        asked.append(blocks)
        return merged(blocks, 1, 2) if len(asked) == 1 else blocks

    forged(monkeypatch, once)
    assert quotient(model, sets).model.n_states == asked[-1].count
    assert len(asked) == 2


def test_what_sums_are_apart_is_an_error_of_the_quotient() -> None:
    model = hybrid.parse(
        "ctmc module m x:[0..3]; [] x=0 -> 0.1:(x'=2) + 0.2:(x'=3); [] x=1 -> 0.3:(x'=2); "
        '[] x>1 -> 1:(x\'=0); endmodule init true endinit label "two" = x>1;'
    )
    found = quotient(model, [super(hybrid.Model, model).states(model.source.labels[0].expression)])
    assert found.model.n_states == 2
    apart = (0.1 + 0.2 - 0.3) / 0.3 * 2**53
    assert apart > 1
    # Every number of a sum may be off, the sum is rounded once, and another state's is so far from it.
    assert found.model.matrix.units >= model.entry_units + 1 + apart
