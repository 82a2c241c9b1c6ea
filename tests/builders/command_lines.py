"""A model, its properties, and command lines about them."""

from __future__ import annotations

import json

import pytest

from hybrid.__main__ import main

WALK = """dtmc
const int N;
const double p;
module walk
  s : [0..N];
  [] s<N -> p : (s'=s+1) + 1-p : (s'=0);
  [] s=N -> true;
endmodule
label "end" = s=N;
"""
PROPERTIES = 'P=? [ F<=2 s=2 ];\n"named": P=? [ F "end" ];\nP=? [ F<=1 s=1 ]\n'
GIVEN = ["--const", "N=3,p=0.5"]

Run = tuple[int, str, str]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Run:
    status = main([arguments[0], "--quiet", *arguments[1:]])
    out, err = capsys.readouterr()
    return status, out, err


def values(found: Run) -> list[float]:
    """The values of a run with --json."""
    assert found[0] == 0, found[2]
    return [result["value"] for result in json.loads(found[1])["results"]]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What is told by a run with wrong usage."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert caught.value.code == 2
    return capsys.readouterr().err
