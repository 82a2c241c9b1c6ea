"""What is compiled ahead for a decision process, once its level is known, is what its solution launches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hybrid
from gpu_kernels import Device

OF_CHAINS_TOO = {"iteration.cu"}

QUESTIONS = {
    "heads": 'Pmin=? [ F "all_heads" ]',
    "disagree": 'Pmax=? [ F "decided" & !"all_heads" & !"all_tails" ]',
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_solution_launches_what_was_likely(
    device: Device, name: str, examples_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    likely: list[Any] = []
    monkeypatch.setattr("hybrid.matrix.levels.probe.compile_as_well", likely.extend)
    launched: set[tuple[str, Any]] = set()
    own = type(device).kernel

    def recorded(self: Any, source: str, kernel: str, macros: Any) -> Any:
        launched.add((source, macros))
        return own(self, source, kernel, macros)

    monkeypatch.setattr(type(device), "kernel", recorded)
    model = hybrid.load(examples_folder / "coin.prism", constants={"K": 4})
    hybrid.check(model, QUESTIONS[name], engine="hybrid", backend="gpu")
    found = {(source, tuple(sorted(special.items()))) for source, _, special in likely}
    met = {module for module in launched if module[0] not in OF_CHAINS_TOO}
    assert len(met) > 5
    assert met <= found
    assert len(found - met) <= 3
