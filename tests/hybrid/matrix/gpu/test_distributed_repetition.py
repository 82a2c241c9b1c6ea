"""Several steps for a product where processes share the states: the system solved, and who has the anchor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybrid
from gpu_kernels import Device
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.systems import build_operator
from hybrid.base.arrays import to_host
from hybrid.checking.in_parts import in_parts
from hybrid.matrix.operators.hybrid_matrix import DistributedMatrix
from hybrid.matrix.space.host import space_of
from hybrid.matrix.space.repeated import OMEGA, STEPS, RepeatedIDR, RepeatedSystem
from mtbdd.build.model import SymbolicModel
from tests.builders.part_questions import asked
from tests.source_tree import ROOT


def own_space(own: SymbolicModel) -> tuple[Any, Any]:
    """Return the own part of a model's matrix on a device, and its vector space."""
    matrix = build_operator(own.submatrix(own.index, own.index), CheckOptions(backend="gpu"))
    assert isinstance(matrix, DistributedMatrix)
    return matrix, space_of(matrix)


def steps_from(space: Any, diagonal: Any, b: Any, x: Any) -> Any:
    """Return what damped steps make of x, by the vector space's own steps."""
    pair = space.vector(x), space.vector(x)
    space.system(diagonal, b).relaxation(OMEGA).sweep(pair, 0, STEPS)
    return pair[STEPS % 2]


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("anchored_part", [None, 0, 2])
def test_images_are_those_of_several_steps(device: Device, parts: int, anchored_part: int | None) -> None:
    model = hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 1})

    def compare(own: SymbolicModel) -> int:
        matrix, space = own_space(own)
        n, rank, xp = own.index.size, own.communicator.rank, device.xp
        numbers = np.random.default_rng(n).random((3, n))
        x, b = (matrix.place.array(vector) for vector in numbers[:2])
        diagonal = matrix.place.array(numbers[2] + 1.5 * to_host(matrix.row_sums()))
        anchor = None
        if anchored_part is not None:
            anchor = 5 if rank == min(anchored_part, parts - 1) else -1
        system = space.system(diagonal, b)
        found = system.preconditioner()
        assert isinstance(found, RepeatedSystem)
        recurrence = found.idr(None, x, 0.0, anchor)
        recurrence.restart()
        assert recurrence.products == STEPS * (1 + (anchor is not None))
        share: Any = 0.0
        if anchor is not None:
            of_ones = steps_from(space, diagonal, xp.ones(n), xp.zeros(n))
            share = of_ones * float(space.element(x, anchor)[0])
        wanted = steps_from(space, diagonal, b, x) - x - share
        np.testing.assert_allclose(to_host(recurrence.r), to_host(wanted), rtol=1e-11, atol=1e-12)
        image = xp.empty(n)
        recurrence._images.apply(x, image)
        wanted = x - steps_from(space, diagonal, None, x) + share
        np.testing.assert_allclose(to_host(image), to_host(wanted), rtol=1e-11, atol=1e-12)
        # What is measured is the residual of the system itself.
        made, spare = recurrence.products, xp.empty(n)
        measured = to_host(recurrence.plain_residual())
        assert recurrence.products == made + 1
        system._images(n, anchor).residual(x, spare)
        np.testing.assert_allclose(measured, to_host(spare), rtol=1e-11, atol=1e-12)
        return n

    assert in_parts(model, parts, compare) > 0


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("anchored", [False, True])
def test_both_recurrences_arrive_where_the_system_is_solved(
    device: Device, anchored: bool, weighed: bool
) -> None:
    model, _ = asked("walk")

    def solve(own: SymbolicModel) -> None:
        matrix, space = own_space(own)
        n, rank = own.index.size, own.communicator.rank
        numbers = np.random.default_rng(n + rank).random((4, n))
        start, b, other = (matrix.place.array(vector) for vector in numbers[:3])
        diagonal = matrix.place.array(numbers[3] + 1.1 * to_host(matrix.row_sums()))
        anchor = (1 if rank == 1 else -1) if anchored else None
        weights = space.vector(numbers[0] + 0.5) if weighed else None
        system = space.system(diagonal, b)
        for right in (None, other):
            plain = system if right is None else system.sharing(space.vector(right))
            wanted = plain.idr(start, 1e-13, anchor)
            steps = system.preconditioner()
            assert steps is not None
            copied = None if right is None else space.vector(right)
            idr = steps.idr(copied, start, 1e-13, anchor, weights)
            bicgstab = steps.idr(copied, start, 1e-13, anchor, weights, directions=1)
            assert isinstance(idr, RepeatedIDR) and isinstance(bicgstab, RepeatedIDR)
            for recurrence in (wanted, idr, bicgstab):
                recurrence.restart()
                made = recurrence.products
                standing = recurrence.advance(1)
                # Those of a cycle, and of a fresh residual if that has fallen.
                assert standing.ended or 0 <= recurrence.products - made - recurrence.cost <= STEPS
                while not standing.ended:
                    assert recurrence.products < 4000
                    standing = recurrence.advance(1)
            for recurrence in (idr, bicgstab):
                np.testing.assert_allclose(to_host(recurrence.x), to_host(wanted.x), rtol=1e-8, atol=1e-10)

    in_parts(model, 2, solve)


def noted(monkeypatch: pytest.MonkeyPatch) -> list[type]:
    """Return a list to which the kind of every recurrence of several steps is added once it has been made."""
    made: list[type] = []
    own = RepeatedIDR.__init__

    def note(self: Any, *arguments: Any, **named: Any) -> None:
        own(self, *arguments, **named)
        made.append(type(self))

    monkeypatch.setattr(RepeatedIDR, "__init__", note)
    return made


def test_averages_begin_with_it(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    model = hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 1})
    made, text = noted(monkeypatch), 'R{"throughput"}=? [ S ]'
    one = hybrid.check(model, text, backend="cpu")
    many = hybrid.check(model, text, backend="gpu", ranks=2)
    assert made == [RepeatedIDR, RepeatedIDR]
    assert many.lower is not None and one.lower is not None
    assert one.upper is not None and many.upper is not None
    assert max(one.lower, many.lower) <= min(one.upper, many.upper)


def test_where_one_process_has_no_room_none_has(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    model = hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 1})
    made, tried = noted(monkeypatch), []
    own: Any = RepeatedIDR.__init__

    def full(self: Any, *arguments: Any, **named: Any) -> None:
        tried.append(1)
        if len(tried) == 2:
            raise MemoryError("no piece is large enough")
        own(self, *arguments, **named)

    monkeypatch.setattr(RepeatedIDR, "__init__", full)
    found = hybrid.check(model, 'R{"throughput"}=? [ S ]', backend="gpu", ranks=2)
    assert len(tried) == 2 and made == [RepeatedIDR]
    assert found.error is None and found.lower is not None and found.upper is not None
    assert found.upper - found.lower <= 1e-6
