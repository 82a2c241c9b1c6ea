"""The layers run one way, the light packages stay light to import, and tests do not lean on tests."""

from __future__ import annotations

import ast
import re

import pytest

from tests.builders.processes import run_python
from tests.source_tree import (
    PACKAGES,
    ROOT,
    import_statements,
    imported_names,
    imports_of_modules,
    names_imported_by,
    source_files,
)

# What a package must never import, not even inside a function.
FORBIDDEN = {
    "mtbdd": {"gpu_kernels", "hybrid"},
    "gpu_kernels": {"mtbdd", "hybrid"},
    "hybrid": set(),
}

# Too slow, or not installed, for the moment of `import hybrid`.
HEAVY = ("cupy", "numba", "matplotlib", "pygments", "rich", "scipy")


@pytest.mark.parametrize("package", PACKAGES)
def test_layers_no_forbidden_import(package: str) -> None:
    faults = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in source_files(package)
        for name, line in names_imported_by(path)
        if name.split(".")[0] in FORBIDDEN[package]
    ]
    assert not faults, "\n".join(faults)


def test_layers_no_module_imports_itself_by_way_of_others() -> None:
    left = imports_of_modules()
    assert len(left) > 200
    # Modules that import none of those left go; what stays is in circles or leads into one.
    while free := {name for name, needed in left.items() if not needed & left.keys()}:
        left = {name: needed for name, needed in left.items() if name not in free}
    assert not left, f"circles among {sorted(left)}"


# Rooms of each package, each of which imports those before it alone.
FLOORS = {
    "mtbdd": ("base", "language", "diagrams", "offset", "build", "graph", "__init__"),
    "gpu_kernels": ("runtime", "explicit", "compressed", "krylov", "graph", "__init__"),
    "hybrid": (
        "base",
        "properties",
        "matrix",
        "solvers",
        "analysis",
        "checking",
        "models",
        "app",
        "__init__",
        "__main__",
    ),
}


def room_of(module: str) -> str:
    """The folder or the file at the top of its package that a module belongs to."""
    package, _, rest = module.partition(".")
    return rest.split(".")[0] if rest else "__init__"


def room_arrows(package: str) -> dict[tuple[str, str], list[str]]:
    """Which rooms of a package import which others, with the modules that do; importing a module of a folder
    runs the folder's `__init__`, whose imports are the folder's own."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for name, needed in imports_of_modules().items():
        for other in needed:
            ends = room_of(name), room_of(other)
            if name.split(".")[0] == other.split(".")[0] == package and ends[0] != ends[1]:
                arrows.setdefault(ends, []).append(f"{name} imports {other}")
    return arrows


@pytest.mark.parametrize("package", PACKAGES)
def test_layers_every_room_has_its_floor(package: str) -> None:
    rooms = {p.stem for p in (ROOT / package).iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert rooms == set(FLOORS[package])
    assert len(rooms) == len(FLOORS[package])
    assert len([p for p in (ROOT / package).iterdir() if (p / "__init__.py").exists()]) <= 8


@pytest.mark.parametrize("package", PACKAGES)
def test_layers_the_page_on_architecture_names_every_room_in_order(package: str) -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = page[page.index(f"## The rooms of `{package}`") :]
    table = table[: table.index("\n## ", 4)]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = [name.strip(" `") for row in rows for name in row.split(",")]
    assert named == [room for room in FLOORS[package] if not room.startswith("__")]


@pytest.mark.parametrize("package", PACKAGES)
def test_layers_imports_run_down(package: str) -> None:
    floors = FLOORS[package]
    faults = [
        fault
        for (above, below), found in room_arrows(package).items()
        if floors.index(above) < floors.index(below)
        for fault in found
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("package", PACKAGES)
def test_layers_rooms_import_each_other_one_way(package: str) -> None:
    left: dict[str, set[str]] = {}
    for above, below in room_arrows(package):
        left.setdefault(above, set()).add(below)
        left.setdefault(below, set())
    assert left
    while free := {room for room, needed in left.items() if not needed & left.keys()}:
        left = {room: needed for room, needed in left.items() if room not in free}
    assert not left, f"circles among {sorted(left)}"


@pytest.mark.parametrize("package", PACKAGES)
def test_layers_imports_are_absolute_and_explicit(package: str) -> None:
    faults = []
    for path in source_files(package):
        for node in import_statements(path):
            if isinstance(node, ast.ImportFrom) and (
                node.level > 0 or any(alias.name == "*" for alias in node.names)
            ):
                faults.append(f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("package", PACKAGES)
def test_layers_packages_have_files(package: str) -> None:
    assert ROOT / package / "__init__.py" in source_files(package)


def test_layers_walk_sees_every_form_of_import() -> None:
    source = (
        "import hybrid.solvers as s\n"
        "def f():\n"
        "    from mtbdd.offset.offset import Level\n"
        "    importlib.import_module('gpu_kernels.scc')\n"
        "from . import sibling\n"
    )
    assert {name for name, _ in imported_names(source)} == {
        "hybrid.solvers",
        "mtbdd.offset.offset",
        "gpu_kernels.scc",
        ".",
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_import_loads_nothing_heavy(package: str) -> None:
    code = f"import {package}, sys; print(*(name for name in {HEAVY} if name in sys.modules))"
    result = run_python("-W", "error", "-c", code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [], f"import {package} also imports {result.stdout.strip()}"


@pytest.mark.parametrize("package", PACKAGES)
def test_import_works_without_heavy_packages(package: str) -> None:
    code = f"import sys; sys.modules.update(dict.fromkeys({HEAVY})); import {package}"
    result = run_python("-W", "error", "-c", code)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("package", PACKAGES)
def test_import_leaves_other_layers_alone(package: str) -> None:
    code = f"import {package}, sys; print(*(name for name in {PACKAGES} if name in sys.modules))"
    result = run_python("-W", "error", "-c", code)
    assert result.returncode == 0, result.stderr
    assert not FORBIDDEN[package] & set(result.stdout.split())


def test_layers_a_public_name_of_hybrid_has_one_home() -> None:
    homes: dict[str, list[str]] = {}
    for path in source_files("hybrid"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    # Every command of the command line has a `run`.
    twice = {name: found for name, found in homes.items() if len(found) > 1 and name != "run"}
    assert not twice, twice


_LONGEST = 600


@pytest.mark.parametrize("package", PACKAGES)
def test_layers_files_are_short(package: str) -> None:
    """A file that holds one concept is short."""
    lines = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in source_files(package)
    }
    assert not {name: count for name, count in lines.items() if count > _LONGEST}


# A whole import, also over several lines: to parse all tests takes seconds.
_IMPORT_OF_TESTS = re.compile(
    r"^\s*(?:from +(tests[\w.]*) +import +(\([^)]*\)|.*)|import +(tests.*))", re.MULTILINE
)


def test_no_test_module_is_imported_by_another_module() -> None:
    """What several need stands in `tests/builders`, `tests/oracles` or a module of helpers."""
    faults = []
    for path in (*source_files("tests"), *source_files("benchmarks")):
        for package, names, whole in _IMPORT_OF_TESTS.findall(path.read_text(encoding="utf-8")):
            modules = re.findall(r"[\w.]+", whole) or [f"{package}.{n}" for n in re.findall(r"\w+", names)]
            faults += [f"{path.relative_to(ROOT)} imports {name}" for name in modules if is_of_tests(name)]
    assert not faults, "\n".join(faults)


def is_of_tests(name: str) -> bool:
    """Whether a name is that of a test module or of something in one."""
    package, *parts = name.split(".")
    return package == "tests" and any(part.startswith("test_") or part == "conftest" for part in parts)


@pytest.mark.parametrize("package", PACKAGES)
def test_layers_only_packages_list_their_public_names(package: str) -> None:
    faults = [
        str(path.relative_to(ROOT))
        for path in source_files(package)
        if path.name != "__init__.py" and "\n__all__ = " in path.read_text(encoding="utf-8")
    ]
    assert not faults, "\n".join(faults)
