"""Every public name is documented: its docstring says what goes in and comes out, and a page lists it."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.source_tree import PACKAGES, ROOT, source_files


def public_names() -> Iterator[tuple[str, str]]:
    """Packages with the names of their `__all__`."""
    for package in PACKAGES:
        for path in source_files(package):
            if path.name == "__init__.py" and "\n__all__" in path.read_text(encoding="utf-8"):
                module = ".".join(path.relative_to(ROOT).parts[:-1])
                for name in importlib.import_module(module).__all__:
                    yield module, name


NAMES = sorted(public_names())
OBJECTS = {f"{module}.{name}": getattr(importlib.import_module(module), name) for module, name in NAMES}
CLASSES = {name: found for name, found in OBJECTS.items() if inspect.isclass(found)}
FUNCTIONS = {name: found for name, found in OBJECTS.items() if callable(found) and not inspect.isclass(found)}
CONSTANTS = OBJECTS.keys() - CLASSES.keys() - FUNCTIONS.keys()


# What a user writes, as a type checker must read it.
TYPICAL = """
from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

model = hybrid.load(Path("kanban.prism"), constants={"t": 3})
assert_type(model, hybrid.Model)
assert_type(hybrid.parse("dtmc module m s: [0..1]; endmodule"), hybrid.Model)
assert_type(model.labels["full"], NDArray[np.bool_])
assert_type(model.steady_state(), NDArray[np.float64])

answer = hybrid.check(model, "P=? [ F s=1 ]", epsilon=1e-6, backend="cpu")
assert_type(answer, hybrid.Answer)
assert_type(answer.lower, float | int | bool | None)
assert_type(answer.values, NDArray[Any])
assert_type(hybrid.check_all(model, "model.props"), list[hybrid.Answer])
assert_type(hybrid.experiment(model, "P=? [ F<=T s=1 ]", constants={"T": [1, 2]}), hybrid.ExperimentTable)

matrix = hybrid.inject(model.transitions, level="min-time")
assert_type(matrix, hybrid.HybridMatrix)
assert_type(matrix.nbytes, int)
found = hybrid.transient(matrix, np.ones(4), 0.5, exit_rates="row sums")
assert_type(found, hybrid.analysis.linear.Transient)
assert_type(found.error, float)

assert_type(hybrid.distribution(model, 'R{"x"}=? [ F s=1 ]', epsilon=1e-6), hybrid.Distribution)
assert_type(hybrid.simulate(model, paths=10, steps=5, seed=1), hybrid.SamplePaths)
assert_type(hybrid.quotient(model, "P=? [ F s=1 ]").lift([1.0]), NDArray[Any])
assert_type(hybrid.solve(matrix, [1.0, 2.0]), hybrid.Solution)
assert_type(answer.statistics, hybrid.SolveStatistics)
assert_type(answer.scheduler, hybrid.Scheduler | None)
graph = hybrid.analysis.graphs.model_graph(model)
assert_type(hybrid.analysis.graphs.decompose(graph), hybrid.analysis.graphs.Decomposition)
assert_type(hybrid.app.explorer.report_levels(model.transitions), hybrid.app.explorer.LevelReport)

try:
    hybrid.verify("kanban.prism", "kanban.cert")
except hybrid.HybridError as error:
    print(error)
"""


# Every line but those that end with `refused` is right.
OPTIONS = """
from pathlib import Path

import hybrid

model = hybrid.load("m.prism", constants={"N": 3}, order="force", package="autoref", timeout=3.0)
model = hybrid.load(Path("m.tra"), type="ctmc", labels="m.lab")
hybrid.load("m.prism", ordr="force")  # refused
hybrid.load("m.prism", order="sifting")  # refused
hybrid.load("m.prism", package="buddy")  # refused
hybrid.load("m.tra", type="pta")  # refused
hybrid.parse("dtmc", package="cudd")
hybrid.parse("dtmc", package=3)  # refused

answer = hybrid.check(model, "P=? [ F x=1 ]", method="jor", omega=0.8, engine="explicit", storage="csr")
bounds: float | None = answer.lower
hybrid.check(model, "P=? [ F x=1 ]", metod="x")  # refused
hybrid.check(model, "P=? [ F x=1 ]", method="x")  # refused
hybrid.check(model, "P=? [ F x=1 ]", epsilon="1e-8")  # refused
hybrid.check(model, "P=? [ F x=1 ]", backend="tpu")  # refused
hybrid.check(model, "P=? [ F x=1 ]", engine="diagrams")  # refused
hybrid.check(model, "P=? [ F x=1 ]", level=3, throw=False, progress=lambda count, difference: None)
hybrid.check(model, "P=? [ F x=1 ]", level="fast")  # refused
hybrid.check_all(model, Path("m.props"), representation="tasks", values=True, scheduler=True)
hybrid.check_all(model, Path("m.props"), representation="coo")  # refused

hybrid.experiment("m.prism", "P=? [ F x=1 ]", {"N": range(3)}, order="model", method="interval").to_pandas()
hybrid.experiment("m.prism", "P=? [ F x=1 ]", {"N": range(3)}, methods="interval")  # refused
hybrid.experiment("m.prism", "P=? [ F x=1 ]", {"N": range(3)}, order="random")  # refused

hybrid.inject(model.transitions, "min-time", "cpu", representation="tasks")
hybrid.inject(model.transitions, "least-time")  # refused
hybrid.inject(model.transitions, backend="cuda")  # refused

hybrid.export(model, "m.drn", Path("m.umb"), force=True)
hybrid.export(model, "m.drn", forced=True)  # refused
hybrid.transient(model.transitions, [1.0], 2.0, epsilon=1e-9, transposed=True)
hybrid.transient(model.transitions, [1.0], 2.0, precision=1e-9)  # refused
model.steady_state(method="jor", epsilon=1e-9)
model.steady_state(methd="jor")  # refused
model.transient(3.0, engine="explicit")
model.transient(3.0, engine="explict")  # refused

hybrid.from_scipy([[1.0]], "ctmc", 0)
hybrid.from_scipy([[1.0]], "chain", 0)  # refused
hybrid.ModelBuilder("dtmc").build(package="autoref", discount=0.9)
hybrid.ModelBuilder("dtmcs")  # refused
hybrid.CheckOptions(method="power")
hybrid.CheckOptions.of(method="powr")  # refused
"""


def section(text: str, title: str) -> str:
    """The lines of a section of a numpydoc docstring, the empty text where there is none."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def described(text: str) -> set[str]:
    """The names that a section describes."""
    heads = re.findall(r"^([\w*][^:\n]*)", text, re.MULTILINE)
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def missing(call: Any, text: str) -> list[str]:
    """What a docstring leaves out of a signature."""
    signature = inspect.signature(call)
    names = signature.parameters.keys() - {"self", "cls"}
    left = sorted(
        names - described(section(text, "Parameters")) - described(section(text, "Other Parameters"))
    )
    result = signature.return_annotation
    silent = (None, "None", "NoReturn", inspect.Signature.empty)
    if result not in silent and not (section(text, "Returns") or section(text, "Yields")):
        left.append("Returns")
    return left


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_say_what_goes_in_and_what_comes_out(name: str) -> None:
    text = inspect.getdoc(FUNCTIONS[name]) or ""
    assert text.split("\n")[0].rstrip().endswith("."), "the first line is no sentence"
    assert missing(FUNCTIONS[name], text) == []


@pytest.mark.parametrize("name", CLASSES)
def test_classes_say_what_they_hold_and_what_their_methods_do(name: str) -> None:
    found = CLASSES[name]
    assert found.__doc__, name
    # Of a class without a docstring dataclasses write the signature in its place.
    assert not found.__doc__.startswith(f"{found.__name__}("), name
    text = inspect.getdoc(found) or ""
    # Fields of small classes may be told in the sentence that the docstring begins with.
    told = described(section(text, "Attributes")) | described(section(text, "Parameters"))
    told |= set(re.findall(r"`(\w+)`", text)) | inherited(found)
    if dataclasses.is_dataclass(found):
        fields = {field.name for field in dataclasses.fields(found) if not field.name.startswith("_")}
        assert fields - told == set()
    for own, value in vars(found).items():
        if own.startswith("_") or not (
            callable(value) or isinstance(value, property | classmethod | staticmethod)
        ):
            continue
        assert inspect.getdoc(getattr(found, own)), f"{name}.{own} has no docstring"


def inherited(found: type) -> set[str]:
    """The fields of the dataclasses that a class is built on."""
    return {
        field.name
        for base in found.__mro__[1:]
        if dataclasses.is_dataclass(base)
        for field in dataclasses.fields(base)
    }


def test_every_name_is_on_a_page_of_the_reference() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/api").glob("*.md"))
    listed = set()
    for module, block in re.findall(r"currentmodule:: (\S+)\n(.*?)```", text, re.DOTALL):
        listed |= {f"{module}.{name}" for name in re.findall(r"^   ([\w.]+)$", block, re.MULTILINE)}
    for name in sorted(OBJECTS):
        assert name in listed or f"`{name}`" in text, f"docs/api does not list {name}"
    assert listed <= OBJECTS.keys()
    # One object has one page: with two, links could not tell them apart.
    objects = [id(OBJECTS[name]) for name in listed]
    assert len(objects) == len(set(objects))
    assert not CONSTANTS & listed


def test_what_is_missing_is_noticed() -> None:
    def half(a: int, b: int) -> int:
        """Add.

        Parameters
        ----------
        a : int
            One of them.
        """
        return a + b

    assert missing(half, inspect.getdoc(half) or "") == ["b", "Returns"]
    assert len(FUNCTIONS) > 80
    assert len(CLASSES) > 100


PARTS = sorted({module for module, _ in NAMES if module.count(".") == 1})


def test_parts_are_attributes_of_their_packages_without_an_import() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/api").glob("*.md"))
    documented = set(re.findall(r"currentmodule:: (\w+(?:\.\w+)+)$", pages, re.MULTILINE))
    assert {
        "hybrid.analysis.linear",
        "hybrid.analysis.graphs",
        "mtbdd.language",
        "gpu_kernels.explicit",
    } <= documented
    for package in ("hybrid", "mtbdd", "gpu_kernels"):
        # What another part imports would be an attribute already.
        code = f"import {package}; print([getattr({package}, name) for name in {package}._PARTS])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        module = importlib.import_module(package)
        parts = module._PARTS
        within = parts.values() if isinstance(parts, dict) else parts
        places = {f"{package}.{name}" for name in within}
        assert {name for name in documented if name.startswith(f"{package}.")} <= places
        for name in module._PARTS:
            vars(module).pop(name, None)
            assert isinstance(getattr(module, name), ModuleType)


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_attribute_is_told_by_its_name(package: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module '{package}' has no attribute 'solve_all'$"):
        importlib.import_module(package).solve_all  # noqa: B018


def checked(folder: Path, **texts: str) -> str:
    """What mypy says to a user's files, with the packages found as installed ones are.

    What it found out about them is kept from run to run.
    """
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / "build" / "mypy-users")]
    command += [f"{name}.py" for name in texts]
    path = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=path, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.mark.slow
def test_every_name_has_its_type_for_users(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed (extra 'test')")
    imports = "".join(f"import {module}\n" for module in sorted({module for module, _ in NAMES}))
    names = "".join(f"reveal_type({module}.{name})\n" for module, name in NAMES)
    told = checked(tmp_path, user=imports + TYPICAL + names, options=OPTIONS)
    refused = {int(line) for line in re.findall(r"^options\.py:(\d+): error", told, re.MULTILINE)}
    assert refused == {k for k, line in enumerate(OPTIONS.splitlines(), 1) if line.endswith("# refused")}
    assert re.findall(r"^user\.py:\d+: error: .*", told, re.MULTILINE) == []
    found = re.findall(r'Revealed type is "(.*)"$', told, re.MULTILINE)
    assert len(found) == len(NAMES)
    assert [name for name, kind in zip(NAMES, found, strict=True) if kind == "Any"] == []
    # A name that no package has is an error, not Any.
    told = checked(tmp_path, user="import hybrid\nimport mtbdd\n\nhybrid.chek\nmtbdd.indexed\n")
    assert told.count('Module has no attribute "') == 2
