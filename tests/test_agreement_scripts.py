"""Records of decision processes and of components: what counts as agreement, and small runs of scripts."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_kernels import use_device
from tests.gpu_kernels.host_device import COMPILER, HostDevice

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"

COIN = """mdp module m x : [0..3]; [a] x=0 -> 0.25:(x'=1) + 0.75:(x'=2); [b] x=0 -> 0.5:(x'=1) + 0.5:(x'=3);
    [] x>0 -> true; endmodule
    rewards "tries" x=0 : 1; endrewards"""
PROPERTIES = """const int k;
    Pmax=? [ F x=1 ]
    Pmin=? [ F<=k x=1 {x=0}{max} ]
    P>=1 [ F x>0 ]
    fiter(forall, x<4)
"""


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import scripts by name, from their own folder."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), str(FOLDER.parent / "examples"), *sys.path])
    before = set(sys.modules)
    yield __import__
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(FOLDER)):
            del sys.modules[name]


def answer(value: Any, width: float = 1e-9, error: str | None = None) -> dict[str, Any]:
    if value is None or isinstance(value, bool):
        return {"value": value, "lower": value, "upper": value, "error": error}
    return {"value": value, "lower": value - width, "upper": value + width, "error": None}


@pytest.mark.parametrize(
    ("runs", "known", "agrees", "inside"),
    [
        ([answer(0.5), answer(0.5 + 1e-9)], Fraction(1, 2), True, True),
        ([answer(0.5), answer(0.5 + 1e-9)], None, True, None),
        # Bounds that do not hold the exact value, however close the value is.
        ([answer(0.5), answer(0.5 + 3e-9)], Fraction(1, 2), False, False),
        # Bounds that do not meet.
        ([answer(0.5), answer(0.5 + 3e-9)], None, False, None),
        # Bounds that hold it, around a value that is off.
        ([answer(0.5), answer(0.51, 0.1)], Fraction(1, 2), False, True),
        ([answer(0.5), answer(0.51, 0.1)], None, False, None),
        ([answer(1e-12, 1e-19), answer(1.01e-12, 1e-13)], Fraction(1, 10**12), False, True),
        ([answer(True), answer(True)], True, True, None),
        ([answer(True), answer(True)], False, False, None),
        ([answer(True), answer(False)], None, False, None),
        ([answer(0.5), answer(None, error="too large")], Fraction(1, 2), False, True),
        ([answer(None, error="no such function")] * 2, None, True, None),
        ([answer(None, error="no such function"), answer(None, error="too large")], None, False, None),
    ],
)
def test_agreement_needs_close_values_and_bounds_that_hold(
    scripts: Any, runs: list[dict[str, Any]], known: Any, agrees: bool, inside: bool | None
) -> None:
    verdict = scripts("mdp_agreement").judge(runs, known)
    assert (verdict["agrees"], verdict["inside"]) == (agrees, inside)


def test_known_values_are_of_the_property_asked(scripts: Any) -> None:
    values = scripts("mdp_values")
    cases = {(case.model, case.constants): case for case in values.CASES}
    consensus = cases["consensus/coin2.nm", "K=2"]
    assert values.known_value(consensus, "c2.pctl", 0) == Fraction(49, 128)
    assert values.known_value(consensus, "c1.pctl", 0) is True
    assert values.known_value(consensus, "else.pctl", 0) is None
    # Three cryptographers of whom one has paid announce an even number of differences.
    assert values.known_value(cases["dining_crypt/dining_crypt3.nm", "k=3"], "anonymity.pctl", 1) == Fraction(
        1, 4
    )
    assert values.known_value(cases["dining_crypt/dining_crypt3.nm", "k=1"], "anonymity.pctl", 1) == 0
    assert values.known_value(cases["phil/phil-nofair3.nm", "K=20"], "phil.pctl", 0) is None
    for case in values.CASES:
        published = [values.known_value(case, file, 0) for file in case.files]
        assert case.family in ("leader_async", "phil") or case.constants == "COL=3" or None not in published


def test_values_and_counts_of_a_small_process(
    scripts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, values = scripts("mdp_agreement"), scripts("mdp_values")
    (tmp_path / "coins").mkdir()
    (tmp_path / "coins" / "coin.nm").write_text(COIN)
    (tmp_path / "coins" / "coin.pctl").write_text(PROPERTIES)
    table = "model,const,status,states,choices,transitions,mecs,mec_states,sccs\n"
    (tmp_path / "counts.csv").write_text(
        table + "other/coins/coin.nm,,ok,4,5,7,3,3,4\nother/coins/gone.nm,,ok,1,1,1,1,1,1\n"
    )
    case = values.Case("coins/coin.nm", "k=1", ("coin.pctl",), ('R{"tries"}max=? [ F x>0 ]',))
    monkeypatch.setattr(script, "CASES", (case,))
    arguments = ["--models", str(tmp_path), "--counts", str(tmp_path / "counts.csv"), "--backends", "cpu"]
    out = tmp_path / "record.json"
    monkeypatch.setattr(sys, "argv", ["mdp_agreement.py", *arguments, "--out", str(out)])
    assert script.main() == 0
    record = json.loads(out.read_text())
    row, counts = record["rows"]
    found = [(p["known"], p["source"], p["answered"], p["agrees"]) for p in row["properties"]]
    assert found == [
        ("1/2", "rational", 2, True),
        ("1/4", "rational", 2, True),
        (None, None, 2, True),
        (None, None, 0, True),
        ("1", "rational", 2, True),
    ]
    assert counts["equal"] == dict.fromkeys(scripts("mdp_counts").COUNTS, True)
    text = scripts("render").SECTIONS["mdp_agreement"](record)
    assert "| coins | 4 | 4 of 4 | 0 | 3 |" in text
    assert "`fiter(forall, x<4)` (coins): unknown function 'fiter'" in text
    assert "| coin.nm | 4 | 5 | 7 | 4 | 3 | 3 | 6 of 6 |" in text
    (tmp_path / "counts.csv").write_text(table + "other/coins/coin.nm,,ok,4,5,7,3,3,5\n")
    assert script.main() == 1


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with")
def test_components_are_measured_and_rendered(scripts: Any, tmp_path: Path) -> None:
    script, out = scripts("scc_mec"), tmp_path / "record.json"
    variants = ["auto", "FBT1,7", "FBT1,1", "FBT3,7", "attractor", "attractor, joins"]
    arguments = argparse.Namespace(
        cases=["walks:1", "tokens:2"], models=None, variants=variants, repeats=1, limit=60.0, seconds=None,
        seed=20261, out=out,
    )  # fmt: skip
    with use_device(HostDevice()) as device:
        script.run(arguments, device)
        record = json.loads(out.read_text())
        walks, tokens = record["cases"]
        assert (walks["sccs"], walks["states"], tokens["sccs"], tokens["largest_scc"]) == (1, 64, 1, 8)
        assert list(walks["scc"]) == variants[:4]
        text = scripts("render").SECTIONS["scc_mec"](record)
        assert "**Figure 7" in text
        assert "faster than one thread of today's CPU on 0 of 2 graphs" in text
        # The first published variant over the limit keeps the others from being begun; the record says so.
        arguments.limit, arguments.cases = 0.0, ["tokens:2"]
        (limited,) = script.run(arguments, device)
        assert "skipped" not in limited["scc"]["FBT1,7"]
        assert limited["scc"]["FBT1,1"]["skipped"].startswith("FBT1,7 took")
        arguments.seconds = -1.0
        assert script.run(arguments, device) == []
    assert json.loads(out.read_text())["left_out"] == ["tokens:2"]


def test_compiled_components_of_the_host(scripts: Any, rng: np.random.Generator) -> None:
    from gpu_kernels.graph import reference_mec, reference_scc
    from tests.gpu_kernels.graph_cases import BORDERS, random_process

    reference = scripts("mec_reference")
    for lists in (*BORDERS.values(), random_process(rng, 80, 3, 2, 3)):
        arrays = [array.astype(np.int32) for array in lists]
        names = reference.compiled_scc(*arrays[:2])
        expected = reference_scc(*arrays[:2])
        pairs = np.unique(np.stack([names, expected]), axis=1).shape[1]
        assert pairs == len(np.unique(expected)) == len(np.unique(names))
        for found, right in zip(reference.compiled_mec(*arrays), reference_mec(*arrays), strict=True):
            np.testing.assert_array_equal(found, right)
