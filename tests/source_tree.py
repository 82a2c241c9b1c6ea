"""What the source files of the project import."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

__all__ = [
    "PACKAGES",
    "ROOT",
    "import_statements",
    "imported_names",
    "imports_of_modules",
    "names_imported_by",
    "source_files",
]

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("hybrid", "mtbdd", "gpu_kernels")


def imported_names(source: str) -> list[tuple[str, int]]:
    """Every absolute module name that a source imports, with its line; relative ones start with a dot."""
    return list(_named(tuple(_imports(source))))


@functools.cache
def import_statements(path: Path) -> tuple[ast.stmt | ast.Call, ...]:
    """Every statement of a file that imports, also inside functions, and every call that does; read once."""
    return tuple(_imports(path.read_text(encoding="utf-8")))


def _imports(source: str) -> Iterator[ast.stmt | ast.Call]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.Call):
            function = node.func
            last = getattr(function, "attr", getattr(function, "id", None))
            if last in ("import_module", "__import__"):
                yield node


def _named(statements: tuple[ast.stmt | ast.Call, ...]) -> Iterator[tuple[str, int]]:
    for node in statements:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or ""), node.lineno
        elif isinstance(node, ast.Call):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value, node.lineno


def names_imported_by(path: Path) -> list[tuple[str, int]]:
    """As :func:`imported_names`, of a file."""
    return list(_named(import_statements(path)))


def source_files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imports_of_modules() -> dict[str, set[str]]:
    """Every module of the three packages with the modules that it imports, also inside functions."""
    files = {}
    for package in PACKAGES:
        for path in source_files(package):
            parts = path.relative_to(ROOT).with_suffix("").parts
            files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found: dict[str, set[str]] = {name: set() for name in files}
    for name, path in files.items():
        for node in import_statements(path):
            if isinstance(node, ast.ImportFrom) and node.module:
                # What is imported is a module of a package, or a name of a module.
                whole = [f"{node.module}.{alias.name}" for alias in node.names]
                found[name] |= {module if module in files else node.module for module in whole}
            elif isinstance(node, ast.Import):
                found[name] |= {alias.name for alias in node.names}
        found[name] &= files.keys() - {name}
    return found
