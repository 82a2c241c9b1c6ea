"""What programs compare with: compiled components, known values, levels of the published kernel."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.library.mec_reference import compiled_mec, compiled_scc
from benchmarks.library.product_rivals import baseline_levels, further_levels
from benchmarks.published import decision_processes as values
from tests.gpu_kernels.graph_cases import BORDERS, random_process
from tests.oracles.graphs import reference_mec, reference_scc


@pytest.mark.nightly
def test_compiled_components_of_the_host(rng: np.random.Generator) -> None:
    for lists in (*BORDERS.values(), random_process(rng, 80, 3, 2, 3)):
        arrays = [array.astype(np.int32) for array in lists]
        names, expected = compiled_scc(*arrays[:2]), reference_scc(*arrays[:2])
        pairs = np.unique(np.stack([names, expected]), axis=1).shape[1]
        assert pairs == len(np.unique(expected)) == len(np.unique(names))
        for found, right in zip(compiled_mec(*arrays), reference_mec(*arrays), strict=True):
            np.testing.assert_array_equal(found, right)


def test_known_values_are_of_the_property_asked() -> None:
    cases = {(case.model, case.constants): case for case in values.CASES}
    consensus = cases["consensus/coin2.nm", "K=2"]
    assert values.known_value(consensus, "c2.pctl", 0) == Fraction(49, 128)
    assert values.known_value(consensus, "c1.pctl", 0) is True
    assert values.known_value(consensus, "else.pctl", 0) is None
    # Three cryptographers of whom one has paid announce an even number of differences.
    for outcome, known in (("k=3", Fraction(1, 4)), ("k=1", 0)):
        assert (
            values.known_value(cases["dining_crypt/dining_crypt3.nm", outcome], "anonymity.pctl", 1) == known
        )
    assert values.known_value(cases["phil/phil-nofair3.nm", "K=20"], "phil.pctl", 0) is None
    for case in values.CASES:
        published = [values.known_value(case, file, 0) for file in case.files]
        assert case.family in ("leader_async", "phil") or case.constants == "COL=3" or None not in published


def candidate(level: int, nonzeros: int, instances: int) -> Any:
    return SimpleNamespace(
        level=level, submatrix_nonzeros=nonzeros, instances_worst_case=instances,
        bytes_worst_case=16 * nonzeros + 20 * instances,
    )  # fmt: skip


def test_levels_of_the_published_kernel() -> None:
    levels = [candidate(k, 1 << (26 - k), 1 << k) for k in range(27)]
    assert baseline_levels(levels) == (13, [2, 4, 6, 8, 10, 12, 13])
    assert baseline_levels([candidate(0, 1 << 40, 1)]) == (None, [])
    # The fastest at an end: on, as far as there are levels that fit; beyond 25 there are too many paths.
    assert further_levels({10: 3.0, 13: 1.0}, levels) == [16]
    assert further_levels({2: 1.0, 13: 3.0}, levels) == [1]
    assert further_levels({13: 3.0, 24: 1.0}, levels) == [25]
    assert further_levels({13: 3.0, 25: 1.0}, levels) == []
    assert further_levels({10: 3.0, 11: 1.0, 13: 2.0}, levels) == []
