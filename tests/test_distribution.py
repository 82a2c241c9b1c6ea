"""What people install: the wheel and the sdist, built from this tree and tried away from it.

Nothing is fetched: hatchling builds as it is installed here, and what the package needs is there already.
"""

from __future__ import annotations

import os
import re
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.builders.processes import run_python
from tests.source_tree import PACKAGES, ROOT

pytest.importorskip("hatchling", reason="hatchling is not installed (extra 'test')")
pytest.importorskip("pip", reason="pip is not installed")

EXAMPLES = {
    f"hybrid/examples/{p.name}" for p in (ROOT / "examples").iterdir() if p.suffix in (".prism", ".props")
}


def run(*command: object, folder: Path, path: Path | None = None) -> str:
    """What a command prints, in a folder without the sources."""
    done = run_python(*command, cwd=folder, env=environment(path), seconds=300)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def environment(path: Path | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return kept if path is None else {**kept, "PYTHONPATH": str(path)}


def build(source: Path, target: Path, kind: str) -> Path:
    run("-m", "hatchling", "build", "-t", kind, "-d", target, folder=source)
    (built,) = target.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel installed in it."""
    folder = tmp_path_factory.mktemp("installed")
    options = ("--quiet", "--no-index", "--no-deps", "--no-compile", "--disable-pip-version-check")
    run("-m", "pip", "install", *options, "--target", folder / "packages", wheel, folder=folder)
    return folder / "packages"


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata(wheel: Path) -> bytes:
    (found,) = [text for name, text in contents(wheel).items() if name.endswith(".dist-info/METADATA")]
    return found


def test_the_wheel_has_the_packages_whole_and_the_examples(wheel: Path) -> None:
    named = {name for name in contents(wheel) if ".dist-info/" not in name}
    sources = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if "__pycache__" not in path.parts and path.suffix != ".so" and path.is_file()
    }
    assert named == sources | EXAMPLES | {"hybrid_model_checker.py"}
    assert {f"{package}/py.typed" for package in PACKAGES} <= named
    assert {Path(name).suffix for name in named} >= {".py", ".cu", ".cuh", ".typed", ".prism", ".props"}


def test_a_wheel_made_from_the_sdist_is_the_same(wheel: Path, tmp_path: Path) -> None:
    sdist = build(ROOT, tmp_path / "sdist", "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    assert contents(build(source, tmp_path / "again", "wheel")) == contents(wheel)
    for name in ("tests/test_distribution.py", "containers/Dockerfile", "docs/install.md", "Makefile"):
        assert (source / name).is_file(), f"{name} is not in the sdist"


def test_an_editable_install_sees_the_source_tree(tmp_path: Path) -> None:
    code = "import sys; from hatchling.build import build_editable; build_editable(sys.argv[1])"
    run("-c", code, tmp_path, folder=ROOT)
    (built,) = tmp_path.glob("*.whl")
    (path,) = [text.decode() for name, text in contents(built).items() if ".dist-info/" not in name]
    assert Path(path.strip()).resolve() == ROOT


def test_the_installed_command_works_without_the_sources(installed: Path, tmp_path: Path) -> None:
    def hybrid(*arguments: str) -> str:
        start = "import sys; from hybrid_model_checker import main; sys.exit(main())"
        return run("-c", start, *arguments, folder=tmp_path, path=installed)

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert declared["version"] in hybrid("--version")
    assert "kanban" in hybrid("examples")
    written = hybrid("examples", "tandem", "--to", "models").split()
    assert written == ["models/tandem.prism", "models/tandem.props"]
    assert "result" in hybrid("check", *written, "--const", "c=3", "--backend", "reference")
    where = run("-c", "import hybrid; print(hybrid.__file__)", folder=tmp_path, path=installed)
    assert Path(where.strip()).is_relative_to(installed)


def test_the_description_has_no_link_that_leads_nowhere(wheel: Path) -> None:
    text = message_from_bytes(metadata(wheel)).get_payload()
    assert isinstance(text, str) and text.startswith("# hybrid")
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    # Code is as it was.
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("```") == readme.count("```")


def test_links_of_the_readme_lead_to_the_source_where_it_has_an_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from hatch_build import readable_elsewhere

    text = "[The limits](docs/limits.md#memory), ![curve](docs/curve.png), [us](https://example.org), [a](#a)"
    assert readable_elsewhere(text, None) == "The limits, , [us](https://example.org), [a](#a)"
    assert readable_elsewhere(text, "https://example.org/h/") == (
        "[The limits](https://example.org/h/blob/main/docs/limits.md#memory), "
        "![curve](https://example.org/h/raw/main/docs/curve.png), [us](https://example.org), [a](#a)"
    )


def test_a_placeholder_is_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from hatch_build import address_of

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(declared["project"]["urls"]) == {"Source", "Documentation", "Changelog", "Issues", "Security"}
    assert address_of({}) is None
    assert address_of({"Source": "https://hybrid-model-checker.invalid/source"}) is None
    assert address_of({"Source": "https://example.org/h"}) == "https://example.org/h"


def test_groups_name_extras_that_are_there() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needs = [need for group in declared["dependency-groups"].values() for need in group]
    extras = [re.findall(r"\[(.*)\]", need)[0].split(",") for need in needs if "hybrid-model" in str(need)]
    assert {name for names in extras for name in names} <= set(declared["project"]["optional-dependencies"])


def test_the_lock_has_every_need_of_the_project_and_its_groups() -> None:
    """`make lock` writes it anew."""
    requirements = pytest.importorskip("packaging.requirements")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    locked = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    versions: dict[str, set[str]] = {}
    for package in locked["package"]:
        versions.setdefault(package["name"], set()).add(package["version"])
        files = [*package.get("wheels", ()), *filter(None, [package.get("sdist")])]
        assert all(file["hash"].startswith("sha256:") for file in files), package["name"]
    project, groups = declared["project"], declared["dependency-groups"]
    extras = project["optional-dependencies"]
    needs = [*project["dependencies"], *(need for extra in extras.values() for need in extra)]
    of_groups = [need for group in groups.values() for need in group if isinstance(need, str)]
    for need in map(requirements.Requirement, [*needs, *of_groups]):
        assert all(version in need.specifier for version in versions[need.name]), need
    (own,) = [package for package in locked["package"] if package["source"] == {"editable": "."}]
    assert own["version"] == project["version"]
    assert own["metadata"]["requires-dev"].keys() == groups.keys()
    assert set(own["metadata"]["provides-extras"]) == set(extras)
    assert len(own["metadata"]["requires-dist"]) == len(needs)


def test_the_version_is_the_same_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_help_names_every_target() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"^([a-z-]+):.*## ", text, flags=re.MULTILINE))
    (phony,) = re.findall(r"^\.PHONY: (.*)$", text, flags=re.MULTILINE)
    assert named == set(phony.split())


def test_extras_and_versions_are_declared(wheel: Path) -> None:
    told = message_from_bytes(metadata(wheel))
    assert set(told.get_all("Provides-Extra", ())) >= {
        "gpu",
        "gpu-cuda12",
        "plot",
        "notebook",
        "docs",
        "networkx",
        "test",
    }
    assert told["Requires-Python"] == ">=3.11"
    cupy = [need for need in told.get_all("Requires-Dist", ()) if need.startswith("cupy")]
    assert len(cupy) == 2 and any("13x" in need and "'gpu'" in need for need in cupy)
    assert any("12x" in need and "'gpu-cuda12'" in need for need in cupy)
