"""Models and properties as other programs and their users write them are answered."""

from __future__ import annotations

from pathlib import Path

import pytest

import hybrid

BLANKS = """dtmc
module m
  s:[0..3];
  [] s=0 -> 0.2:(s'=1)+0.8:(s'=2);
  [] s=1 -> 0.25:(s'=0)+0.75:(s'=3);
  [] s>1 -> true;
endmodule
label " out " = s=2;
rewards " steps" s<2 : 1; endrewards
"""

WORDS = """@type: DTMC
@parameters

@reward_models
steps
@nr_states
3
@nr_choices
3
@model
state 0 [1] init
\taction 0 [0]
\t\t1 : 0.25
\t\t2 : 0.75
state 1 [1] "two words"
\taction 0 [0]
\t\t1 : 1
state 2 [0] "x=1 & y"
\taction 0 [0]
\t\t2 : 1
"""


def test_f5_a_comment_in_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "m.prism"
    path.write_bytes(
        b"// caf\xe9\ndtmc\nmodule m s:[0..2]; [] s=0 -> 0.25:(s'=1)+0.75:(s'=2); [] s>0 -> true; endmodule"
    )
    assert hybrid.check(hybrid.load(path), "P=? [ F s=1 ]").value == pytest.approx(0.25)


@pytest.mark.parametrize("asked", ['"out"', '" out"', '"\tout  "'])
def test_f6_blanks_around_names_in_quotes(asked: str) -> None:
    model = hybrid.parse(BLANKS)
    assert hybrid.check(model, f"P=? [ F {asked} ]").value == pytest.approx(16 / 19)
    assert hybrid.check(model, f'"found ": P=? [ F {asked} ]').value == pytest.approx(16 / 19)
    assert hybrid.check(model, 'R{"steps "}=? [ F s>1 ]').value == pytest.approx(24 / 19)


def test_f6_labels_of_files_may_be_any_text(tmp_path: Path) -> None:
    path = tmp_path / "m.drn"
    path.write_text(WORDS)
    model = hybrid.load(path)
    assert hybrid.check(model, 'P=? [ F "two words" ]').value == pytest.approx(0.25)
    assert hybrid.check(model, 'P=? [ F "x=1 & y" & !"two words" ]').value == pytest.approx(0.75)
    with pytest.raises(hybrid.HybridError, match='unknown label "two word"; did you mean'):
        hybrid.check(model, 'P=? [ F "two word" ]')
