"""Mutations made mechanically: operators, comparisons, constants, directions, terms left out.

    python -m tests.mutants.generate FILE ... [--count 50] [--seed 1] [--tests TEST ...] [-j 2] [--show]

FILE is a path or a pattern of paths from the root.  Of all mutations of the files some are drawn, each is run
against the tests of its room (`TESTS`, or those that are given), and those that survive are printed with
their line.  Survivors for which ``explained.txt`` has a reason are counted apart: such a mutant does the
same, or differs in nothing that is promised.  Exit status 0 if at least 95 % of the others are killed.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutations import FOLDER, ROOT, Mutation
from tests.mutants.run import LEAST_KILLED, Verdict, run

EXPLAINED = FOLDER / "explained.txt"

_MULTI = (
    "tests/hybrid/analysis/test_lemmas_of_multi.py",
    "tests/hybrid/analysis/test_multi_by_hand.py",
)
TESTS = {
    "hybrid/analysis/multi/": _MULTI,
    "hybrid/checking/certificates/": tuple(
        f"tests/hybrid/checking/certificates/test_{name}.py"
        for name in ("sweep", "conditions", "transitions", "archive")
    ),
    "hybrid/solvers/": tuple(
        f"tests/hybrid/solvers/test_{name}.py"
        for name in (
            "lemmas",
            "poisson_weights",
            "enclosures",
            "block_row_bounds",
            "krylov_bounds",
            "topological",
            "solvers",
            "single_precision",
            "interrupted",
            "policy_bounds",
        )
    ),
    "hybrid/matrix/operators/": (
        "tests/hybrid/matrix/operators/test_rounding.py",
        "tests/hybrid/matrix/operators/test_group_units.py",
        "tests/hybrid/matrix/operators/test_choice_operators.py",
        "tests/hybrid/matrix/operators/test_choice_block_rows.py",
        "tests/hybrid/matrix/operators/test_matrix_block_rows.py",
        "tests/hybrid/matrix/operators/test_hybrid_matrix.py",
    ),
    "hybrid/models/lumping/": tuple(
        f"tests/hybrid/models/lumping/test_{name}.py"
        for name in ("proof", "partition", "residues", "answers")
    ),
    "hybrid/analysis/": (
        "tests/hybrid/analysis/test_transient_errors.py",
        "tests/hybrid/analysis/test_row_sums.py",
        "tests/hybrid/analysis/test_uncertain_numbers.py",
        "tests/hybrid/analysis/test_lemmas_of_mdps.py",
        "tests/hybrid/analysis/test_optima_by_hand.py",
        "tests/hybrid/analysis/test_discounted_rewards.py",
        "tests/hybrid/analysis/test_precomputation.py",
        "tests/hybrid/analysis/test_reward_bounded.py",
        "tests/hybrid/analysis/test_transient.py",
    ),
    "mtbdd/language/": tuple(
        f"tests/mtbdd/language/test_{name}.py"
        for name in ("running_errors", "enclosing", "reals", "evaluate")
    ),
    "mtbdd/graph/": ("tests/mtbdd/graph",),
    "mtbdd/": tuple(
        f"tests/mtbdd/test_{name}.py"
        for name in (
            "amounts",
            "units",
            "partition",
            "arithmetic",
            "rewards",
            "symbolic_rewards",
            "matrix",
            "divided",
            "model",
            "events",
        )
    ),
}
"""What notices a mutation of a file, by how its path begins."""

_COMPARED = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_TURNED = {ast.Lt: ">", ast.LtE: ">=", ast.Gt: "<", ast.GtE: "<="}
_OTHER = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.BitAnd: "|", ast.BitOr: "&",
    ast.FloorDiv: "*", ast.Mod: "*", ast.LShift: ">>", ast.RShift: "<<",
}  # fmt: skip
_PARTNERS = (
    ("min", "max"), ("minimum", "maximum"), ("least", "greatest"), ("any", "all"), ("lower", "upper"),
    ("rounded_up", "rounded_down"), ("logical_and", "logical_or"), ("some", "every"), ("floor", "ceil"),
    ("argmin", "argmax"), ("union", "intersection"), ("zeros", "ones"),
)  # fmt: skip
_PARTNER = {a: b for pair in _PARTNERS for a, b in (pair, pair[::-1])}


@dataclass(frozen=True)
class Edit:
    """A part of a text, by its places, and what stands there instead."""

    begin: int
    end: int
    new: str
    kind: str


class _Finder(ast.NodeVisitor):
    """Collects the edits of a file; messages, annotations and names are left alone."""

    def __init__(self, text: str) -> None:
        self._text, self.found = text, list[Edit]()
        lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))
        self._lines = lines

    def _place(self, line: int, column: int) -> int:
        # Columns count bytes of UTF-8.
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._place(node.lineno, node.col_offset), self._place(node.end_lineno, node.end_col_offset)

    def _source(self, node: ast.expr) -> str:
        begin, end = self._span(node)
        return self._text[begin:end]

    def _put(self, node: ast.expr | ast.stmt, new: str, kind: str) -> None:
        begin, end = self._span(node)
        if self._text[begin:end] != new:
            self.found.append(Edit(begin, end, new, kind))

    def _between(self, left: ast.expr, right: ast.expr, new: str, kind: str) -> None:
        """Replace the operator between two operands; brackets around them are kept."""
        begin, end = self._span(left)[1], self._span(right)[0]
        gap = self._text[begin:end]
        core = gap.strip("() \n")
        if core and "#" not in core and gap.count(core) == 1:
            place = begin + gap.index(core)
            self.found.append(Edit(place, place + len(core), new, kind))

    # ------------------------------------------------------------------ what is left alone

    def visit_Raise(self, node: ast.Raise) -> None:
        """Messages."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """For type checkers."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """The value alone."""
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """The body alone."""
        for statement in node.body:
            self.visit(statement)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """The body alone."""
        for statement in node.body:
            self.visit(statement)

    # ------------------------------------------------------------------ what is changed

    def visit_If(self, node: ast.If) -> None:
        """Take one way always."""
        if not (isinstance(node.body[0], ast.Raise) and isinstance(node.test, ast.Compare)):
            self._put(node.test, "True", "condition")
        self._put(node.test, "False", "condition")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Take one way always."""
        self._put(node, f"({self._source(node.body)})", "condition")
        self._put(node, f"({self._source(node.orelse)})", "condition")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Leave it out."""
        self._put(node, "pass", "statement left out")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Leave out what is written into an array."""
        if all(isinstance(target, ast.Subscript) for target in node.targets):
            self._put(node, "pass", "statement left out")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave out calls for their effect; docstrings are none."""
        if isinstance(node.value, ast.Call):
            self._put(node, "pass", "statement left out")
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Move a border, or turn it round."""
        for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            self._between(left, right, _COMPARED[type(op)], "border")
            if type(op) in _TURNED:
                self._between(left, right, _TURNED[type(op)], "direction")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Take another operator, or leave out a term."""
        if type(node.op) in _OTHER and not isinstance(node.left, (ast.JoinedStr, ast.List)):
            self._between(node.left, node.right, _OTHER[type(node.op)], "operator")
            self._put(node, f"({self._source(node.left)})", "term left out")
            if not isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)):
                self._put(node, f"({self._source(node.right)})", "term left out")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Take the other operator, or leave out a condition."""
        other = "or" if isinstance(node.op, ast.And) else "and"
        self._put(node, f"({f' {other} '.join(f'({self._source(v)})' for v in node.values)})", "operator")
        for i in range(len(node.values)):
            rest = [f"({self._source(v)})" for k, v in enumerate(node.values) if k != i]
            self._put(node, f"({(' and ' if other == 'or' else ' or ').join(rest)})", "term left out")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Leave it out."""
        self._put(node, f"({self._source(node.operand)})", "operator left out")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Leave out a rounding."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in {"nextafter", "rounded_up", "rounded_down", "scaled_bounds", "widened", "_rounded"}:
            self._put(node, f"({self._source(node.args[0])})", "rounding left out")
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """Take the partner of a function."""
        if node.id in _PARTNER and isinstance(node.ctx, ast.Load):
            self._put(node, _PARTNER[node.id], "direction")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Take the partner of a function or an attribute."""
        if node.attr in _PARTNER and isinstance(node.ctx, ast.Load):
            self._put(node, f"{self._source(node.value)}.{_PARTNER[node.attr]}", "direction")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Take another number."""
        value = node.value
        if isinstance(value, bool):
            self._put(node, str(not value), "constant")
        elif isinstance(value, int):
            self._put(node, str(value + 1), "constant")
        elif isinstance(value, float):
            self._put(node, repr(value * 0.5 if value else 1.0), "constant")


def mutations_of_file(file: str, root: Path = ROOT) -> Iterator[Mutation]:
    """Yield all mutations of a file."""
    text = (root / file).read_text(encoding="utf-8")
    tree = ast.parse(text)
    finder = _Finder(text)
    finder.visit(tree)
    seen = set()
    for number, edit in enumerate(finder.found):
        changed = text[: edit.begin] + edit.new + text[edit.end :]
        if changed in seen:
            continue
        seen.add(changed)
        begin = text.rfind("\n", 0, edit.begin) + 1
        end = text.find("\n", edit.end) + 1 or len(text)
        while text.count(text[begin:end]) > 1:  # lines above, until it stands once
            begin = text.rfind("\n", 0, begin - 1) + 1
        old = text[begin:end]
        new = text[begin : edit.begin] + edit.new + text[edit.end : end]
        yield Mutation(f"{Path(file).stem}-{number:03d}", file, old, new, edit.kind, "", ())


def shown(mutation: Mutation) -> str:
    """Return what a mutation changes on one line: the line as it is, an arrow, the line mutated."""
    old, new = ([x.strip() for x in text.splitlines()] for text in (mutation.old, mutation.new))
    while old and new and old[0] == new[0]:
        old, new = old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return f"{mutation.file}: {' '.join(old)} -> {' '.join(new)}"


def explained() -> dict[str, str]:
    """Return the reasons of survivors, by what `shown` makes of them; `# reason` stands above its lines."""
    found: dict[str, str] = {}
    reason = ""
    for line in EXPLAINED.read_text(encoding="utf-8").splitlines() if EXPLAINED.is_file() else []:
        if line.startswith("# "):
            reason = line.removeprefix("# ")
        elif line:
            found[line] = reason
    return found


def draw(files: Sequence[str], count: int, seed: int, tests: Sequence[str]) -> list[Mutation]:
    """Return some mutations of files, each with the tests that should notice it."""
    every = []
    for file in files:
        own = tuple(tests) or next((t for start, t in TESTS.items() if file.startswith(start)), ())
        every += [
            Mutation(m.name, file, m.old, m.new, m.breaks, m.lemma, own) for m in mutations_of_file(file)
        ]
    random.Random(seed).shuffle(every)
    chosen: list[Mutation] = []
    while every and len(chosen) < count:
        mutation = every.pop()
        if _is_python(mutation):
            chosen.append(mutation)
    return chosen


def _is_python(mutation: Mutation) -> bool:
    text = (ROOT / mutation.file).read_text(encoding="utf-8")
    try:
        ast.parse(text.replace(mutation.old, mutation.new))
    except SyntaxError:
        return False
    return True


def report(mutations: Sequence[Mutation], verdicts: Sequence[Verdict]) -> dict[str, object]:
    """Return the figures; survivors with a reason are counted apart."""
    reasons = explained()
    survived = [m for m, v in zip(mutations, verdicts, strict=True) if v.verdict == "survived"]
    known = [m for m in survived if shown(m) in reasons]
    killed = sum(v.verdict == "killed" for v in verdicts)
    counted = len(verdicts) - len(known)
    return {
        "mutants": len(verdicts),
        "killed": killed,
        "explained": len(known),
        "errors": [v.name for v in verdicts if v.verdict == "error"],
        "share": round(killed / counted, 4) if counted else 1.0,
        "survived": [shown(m) for m in survived if shown(m) not in reasons],
    }


def main() -> int:
    """Read the arguments, run, print, and return the exit status."""
    parser = argparse.ArgumentParser(description="run mutations that are made mechanically")
    parser.add_argument("files", nargs="+", metavar="FILE", help="paths or patterns, from the root")
    parser.add_argument("--count", type=int, default=50, help="how many are drawn of all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", nargs="*", default=[], metavar="TEST", help="in place of the room's")
    parser.add_argument("--seconds", type=float, default=300.0, help="after which a mutant counts as killed")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="mutants side by side")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument("--show", action="store_true", help="list the mutations and run none")
    options = parser.parse_args()
    files = [
        path.relative_to(ROOT).as_posix() for pattern in options.files for path in sorted(ROOT.glob(pattern))
    ]
    mutations = draw(files, options.count, options.seed, options.tests)
    if options.show:
        print("\n".join(f"{m.breaks}: {shown(m)}" for m in mutations))
        return 0
    missing = sorted({m.file for m in mutations if not m.tests})
    if missing or not mutations:
        print(f"no tests are named for {', '.join(missing) or 'nothing'}; give --tests", file=sys.stderr)
        return 2
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="hybrid-mutants-") as folder:
        verdicts = run(mutations, options.jobs, Path(folder), check=False, seconds=options.seconds)
    figures = report(mutations, verdicts)
    figures["seconds"] = round(time.perf_counter() - begin)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    for key, value in figures.items():
        print(f"{key}:", *([f"\n  {line}" for line in value] if isinstance(value, list) else [value]))
    return 0 if float(str(figures["share"])) >= LEAST_KILLED and not figures["errors"] else 1


if __name__ == "__main__":
    sys.exit(main())
