"""The worked examples of [Tealdi13] chapter 4, figures 4.1 to 4.6, from the text of a model to its tasks.

Figure 4.6 shows paths, named but without numbers, that are cut into instances and gathered by task. What its
caption and section 4.4.1.2 say of it is tested on the matrix of figures 4.4 and 4.5.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hybrid
from hybrid.matrix.injection.injected import TASK_ROWS, InjectedMatrix, TaskList, cut_tasks, inject_level
from hybrid.matrix.levels.curve import level_curve
from hybrid.matrix.reference import multiply_by_paths, multiply_by_tasks
from mtbdd.build.build import build_model
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import Partition
from mtbdd.language import parse_model, resolve
from mtbdd.offset.convert import offset_label
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import index_states
from tests.builders.matrices import from_dense, to_dense
from tests.pages import blocks_of
from tests.source_tree import ROOT

LEAVES = (0, 3, 9, 0, 9, 0, 4, 4)
"""Figure 4.2 (a): f(x1, x2, x3) of 000, 001, ... 111."""

FIGURE_4_3 = np.array([[0, 8, 0, 5], [2, 0, 0, 5], [0, 0, 0, 5], [0, 0, 2, 0]], dtype=np.float64)

TABLE_4_3 = (
    *(((0, 0, 0, 1), 8, (0, 1)), ((0, 0, 1, 0), 2, (1, 0)), ((0, 1, 0, 1), 5, (0, 3))),
    *(((0, 1, 1, 1), 5, (1, 3)), ((1, 1, 1, 0), 2, (3, 2)), ((1, 1, 0, 1), 5, (2, 3))),
)
"""Figure 4.3: bits x1 y1 x2 y2, value, entry."""

FIGURE_4_4 = np.array([[0, 3, 6], [0, 3, 4], [5, 0, 4]], dtype=np.float64)
"""Row and column 2 of four, those of a state that is not reached, are x there and left out here."""

MODEL = """
ctmc

module figure
  a : [0..1];
  b : [0..1];
  [] a = 0 & b = 0 -> 3 : (b' = 1) + 6 : (a' = 1) & (b' = 1);
  [] a = 0 & b = 1 -> 3 : true + 4 : (a' = 1);
  [] a = 1 & b = 1 -> 5 : (a' = 0) & (b' = 0) + 4 : true;
endmodule
"""
"""A chain whose rates are those of figure 4.4: x1 and y1 are the bit of a, x2 and y2 that of b."""


def function_of(manager: Manager, values: dict[int, float], names: tuple[str, ...]) -> SymbolicMatrix:
    """The function that maps codes of some bits to values, and all others to zero."""
    pieces: dict[float, list[Node]] = {}
    for code, value in values.items():
        pieces.setdefault(float(value), []).append(manager.cube(names, code))
    return SymbolicMatrix.from_partition(
        Partition(manager, {value: manager.disjunction(sets) for value, sets in pieces.items()})
    )


def inner_nodes(matrix: SymbolicMatrix) -> list[int]:
    """Nodes of the reduced MTBDD that test each bit, from the top; negated edges make two nodes of one."""
    table, counts, met = matrix.table(), dict[int, int](), set[int]()
    stack = [table.root]
    while stack:
        reference = stack.pop()
        level = int(table.level[reference >> 1])
        if reference in met or level >= matrix.manager.index_level:
            continue
        met.add(reference)
        counts[level] = counts.get(level, 0) + 1
        stack += [
            int(child) ^ (reference & 1) for child in (table.low[reference >> 1], table.high[reference >> 1])
        ]
    return [counts[level] for level in sorted(counts)]


def test_figure_4_1_and_4_2_the_reduced_diagram() -> None:
    manager = Manager(3)
    f = function_of(manager, dict(enumerate(LEAVES)), manager.rows)
    # Figures 4.1 and 4.2 (c): both rules. The node of x3 with 4 on both sides is gone.
    assert inner_nodes(f) == [1, 2, 2]
    assert f.terminals.tolist() == [3, 4, 9]
    # The nodes of figure 4.1, its three terminals, and the zero that it leaves out.
    assert f.mtbdd_nodes() == (5 + 3 + 1, 3 + 1)
    values = {tuple(int(b) for b in f"{code:03b}"): value for code, value in enumerate(LEAVES)}
    assert values[0, 1, 0] == 9


def test_figure_4_2_b_an_offset_labelled_diagram_skips_no_level() -> None:
    manager = Manager(3)
    only_column = manager.cube(manager.rows, 0)
    f = function_of(manager, dict(enumerate(LEAVES)), manager.rows).only(manager.to_columns(only_column))
    matrix = offset_label(f, index_states(manager, manager.true), index_states(manager, only_column))
    matrix.validate()
    np.testing.assert_array_equal(to_dense(matrix)[:, 0], LEAVES)
    # Rule 1 alone, and no node for zero: three nodes of x3, the one with 4 on both sides among them.
    assert [matrix.nodes[k] for k in (0, 2, 4)] == [1, 2, 3]
    assert sorted(matrix.terminals.tolist()) == [3, 4, 9]


def test_figure_4_3_a_matrix_over_interleaved_bits() -> None:
    manager = Manager(2)
    names = tuple(name for pair in zip(manager.rows, manager.columns, strict=True) for name in pair)
    values = {int("".join(map(str, bits)), 2): value for bits, value, _ in TABLE_4_3}
    f = function_of(manager, values, names)
    assert f.terminals.tolist() == [2, 5, 8]
    # x1; y1; x2; y2. Rows 0 and 1 of the upper right quarter are the same, so that no node there tests x2.
    assert inner_nodes(f) == [1, 2, 2, 3]
    every = index_states(manager, manager.true)
    matrix = offset_label(f, every, every)
    np.testing.assert_array_equal(to_dense(matrix), FIGURE_4_3)
    for (x1, y1, x2, y2), value, entry in TABLE_4_3:
        assert (2 * x1 + x2, 2 * y1 + y2) == entry
        assert FIGURE_4_3[entry] == value


@pytest.fixture(scope="module")
def matrix() -> OffsetMTBDD:
    """Figure 4.4: text, reachable states, diagram, offsets."""
    model = build_model(resolve(parse_model(MODEL), {}))
    assert model.index.size == 3
    return model.transitions


def nodes_by_offset(matrix: OffsetMTBDD, level: int) -> list[int]:
    return sorted(matrix.levels[level].offset.tolist(), reverse=True)


def test_figure_4_4_offsets(matrix: OffsetMTBDD) -> None:
    matrix.validate()
    np.testing.assert_array_equal(to_dense(matrix), FIGURE_4_4)
    # The numbers in the nodes of the figure: x1, y1, x2, y2.
    assert [nodes_by_offset(matrix, k) for k in range(4)] == [[2], [2, 2], [1, 1, 0, 0], [1, 1, 0, 0]]
    assert sorted(matrix.terminals.tolist()) == [3, 4, 5, 6]
    assert matrix.nodes == (1, 2, 4, 4, 4)


def parts_of(injected: InjectedMatrix) -> list[tuple[int, int, list[list[float]]]]:
    return [(i.row, i.column, injected.submatrix(i.submatrix).toarray().tolist()) for i in injected]


def test_figure_4_5_submatrices_below_x1_and_y1(matrix: OffsetMTBDD) -> None:
    # The thesis counts levels from 1: its level 3 has two bits above, x1 and y1.
    assert parts_of(inject_level(matrix, 2)) == [
        (0, 0, [[0, 3], [0, 3]]),
        (0, 2, [[6], [4]]),
        (2, 0, [[5, 0]]),
        (2, 2, [[4]]),
    ]


def test_section_4_4_1_1_the_two_ends(matrix: OffsetMTBDD) -> None:
    # At the root one submatrix, the whole matrix, and one path; at the terminals a path for every entry.
    assert parts_of(inject_level(matrix, 0)) == [(0, 0, FIGURE_4_4.tolist())]
    ends = parts_of(inject_level(matrix, 4))
    assert ends == [(r, c, [[FIGURE_4_4[r, c]]]) for r, c in np.argwhere(FIGURE_4_4).tolist()]


COUNTED = {
    # level: nodes, paths, entries of the submatrices
    0: (1, 1, 6),
    1: (2, 2, 6),
    2: (4, 4, 6),
    3: (4, 6, 4),
    4: (4, 6, 4),
}


def test_section_4_4_1_memory_is_counted_on_the_diagram(matrix: OffsetMTBDD) -> None:
    curve = level_curve(matrix)
    for k, (nodes, paths, entries) in COUNTED.items():
        candidate, injected = curve[k], inject_level(matrix, k)
        assert (candidate.nodes, candidate.paths, candidate.submatrix_nonzeros) == (nodes, paths, entries)
        # An entry takes 16 bytes, a pointer 8, a path (row, column, submatrix) 12.
        assert candidate.bytes_first == injected.nbytes == 16 * entries + 8 * (nodes + 1) + 12 * paths
        # Second form: floor(n / 256) + 2 instances of 20 bytes a path, and the tasks' pointers.
        assert candidate.instances_worst_case == 2 * paths
        assert candidate.bytes_worst_case == 16 * entries + 8 * (nodes + 1) + 20 * 2 * paths + 8 * 2
    assert curve.min_memory == 0


def tuples(tasks: TaskList) -> list[list[tuple[int, ...]]]:
    return [task.instances.tolist() for task in tasks]


def test_figure_4_6_paths_are_cut_into_the_instances_of_tasks(matrix: OffsetMTBDD) -> None:
    injected = inject_level(matrix, 2)
    whole, right, low, last = injected.instances["submatrix"].tolist()
    # Tasks of one row: the two paths over rows 0 and 1 are cut in two.
    tasks = cut_tasks(injected, 1)
    assert tuples(tasks) == [
        [(0, 0, whole, 0, 1), (0, 2, right, 0, 1)],
        [(0, 0, whole, 1, 2), (0, 2, right, 1, 2)],
        [(2, 0, low, 0, 1), (2, 2, last, 0, 1)],
    ]
    # Tasks of two rows: no path crosses a border.
    assert tuples(cut_tasks(injected, 2)) == [
        [(0, 0, whole, 0, 2), (0, 2, right, 0, 2)],
        [(2, 0, low, 0, 1), (2, 2, last, 0, 1)],
    ]
    assert [(t.first_row, t.n_rows) for t in cut_tasks(injected)] == [(0, 3)]


def test_figure_4_6_products_by_paths_and_by_tasks(matrix: OffsetMTBDD) -> None:
    x = np.array([1.0, 10.0, 100.0])
    for level in range(5):
        injected = inject_level(matrix, level)
        for rows in (1, 2, TASK_ROWS):
            assert multiply_by_tasks(cut_tasks(injected, rows), x).tolist() == [630, 430, 405]
        assert multiply_by_paths(injected, x).tolist() == [630, 430, 405]


@pytest.mark.parametrize(("rows", "met", "bound"), [(1000, 5, 5), (1024, 5, 6)])
def test_section_4_4_1_2_a_submatrix_of_some_1000_rows_is_cut_in_six_at_most(
    rows: int, met: int, bound: int
) -> None:
    # Below 100 other rows, so that it begins within a task.
    states = np.concatenate((np.arange(100), 1024 + np.arange(rows)))
    matrix = from_dense(np.eye(len(states)), states, states, 11)
    injected = inject_level(matrix, 2)
    large = injected.blocks.n_rows.tolist().index(rows)
    assert int((cut_tasks(injected).instances["submatrix"] == large).sum()) == met
    assert level_curve(matrix)[2].instances_worst_case == bound + (100 // 256 + 2)


def test_the_page_of_concepts_shows_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/concepts.md").read_text(encoding="utf-8")
    (model,) = (block.text for block in blocks_of("docs/concepts.md") if "file figure.prism" in block.info)
    (tmp_path / "figure.prism").write_text(model, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(to_dense(hybrid.load("figure.prism").transitions), FIGURE_4_4)
    for k, counted in COUNTED.items():
        assert f"| {k} | " + " | ".join(map(str, counted)) + " |" in page
