"""Diagrams read out as arrays, by every way in which the package hands them over."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from io import BytesIO
from typing import Any, BinaryIO

import numpy as np
import pytest

from mtbdd.diagrams import nodes
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.nodes import FALSE, TRUE, read_nodes
from tests.builders.diagram_packages import DIAGRAM_PACKAGES, FASTEST
from tests.builders.models import node_set


@pytest.mark.parametrize("way", ["memory", "folder", "walk", "cut", "cut after a line", "parts"])
def test_nodes_evaluate_like_the_diagram(
    way: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "folder":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    if way.startswith("cut"):
        whole = nodes.dumped_nodes
        end = b".end\n" if way == "cut after a line" else b"\n.end\n"

        def cut(bdd: Any, u: Node) -> AbstractContextManager[BinaryIO]:
            with whole(bdd, u) as file:
                return nullcontext(BytesIO(file.read().rsplit(end, 1)[0]))

        monkeypatch.setattr(nodes, "dumped_nodes", cut)
    if way == "parts":
        monkeypatch.setattr(nodes, "_PART", 7)
        monkeypatch.setattr(nodes, "walk_nodes", None)
    manager = Manager(5, "autoref" if way == "walk" else FASTEST)
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        numbers = np.flatnonzero(rng.random(32) < share).tolist()
        table = read_nodes(manager, node_set(manager, manager.rows, numbers))
        for number in range(32):
            ref = np.array([table.root])
            for bit in range(5):
                ref = table.cofactors(ref, Manager.row_level(bit))[number >> (4 - bit) & 1]
            assert ref[0] == (TRUE if number in numbers else FALSE)


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_simplified_diagrams_agree_where_they_must(package: str, rng: np.random.Generator) -> None:
    manager = Manager(5, package)
    for _ in range(20):
        u, care = (
            node_set(manager, manager.rows, np.flatnonzero(rng.random(32) < 0.4).tolist()) for _ in range(2)
        )
        care = care | manager.cube(manager.rows, 7)
        assert manager.simplify(u, care) & care == u & care
