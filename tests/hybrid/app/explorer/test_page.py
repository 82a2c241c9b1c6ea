"""The page as text: whole, with nothing from elsewhere, and whatever names say, they stay names."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest

import hybrid
from gpu_kernels import use_device
from hybrid.__main__ import main
from hybrid.app.explorer import (
    LevelReport,
    matrix_held,
    measure_representations,
    model_sheet,
    page_text,
    report_levels,
)
from hybrid.app.explorer import page as page_write
from hybrid.base.errors import OptionError
from hybrid.matrix.backends import choose_backend
from tests.builders.chain_texts import QUEUE, load_text
from tests.builders.mdp_texts import COINS
from tests.builders.pages import Scripts, sheets_of
from tests.gpu_kernels.host_device import COMPILER, HostDevice

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "</script x=1 /",
    "<img src=x onerror=alert(1)>",
    "@@DATA@@ & \"quotes\" 'and' \u2028 lines \\ ]]>",
    "x\x00y\ud7ffz",
]


def sheet_of(model: hybrid.Model, label: str = "") -> dict[str, object]:
    return model_sheet(model, choose_backend("reference"), label)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_names(tmp_path: Path, name: str) -> None:
    sheet = {**sheet_of(load_text(tmp_path, QUEUE)), "label": name, "file": name, "form": name}
    sheet["constants"] = {name: 1}
    sheet["representations"][0]["min_time"] = {"level": 0, "reason": name}  # type: ignore[index]
    harmless = Scripts(page_text([sheet_of(load_text(tmp_path, QUEUE))]))
    page = page_text([sheet], name)
    found = Scripts(page)
    assert [tag for tag, _ in found.elements] == [tag for tag, _ in harmless.elements]
    assert sheets_of(page) == json.loads(json.dumps([sheet]))
    assert found.scripts[1] == harmless.scripts[1]
    assert not set("<>&") & set(found.scripts[0])


def test_nothing_is_fetched_and_the_policy_names_what_runs(tmp_path: Path) -> None:
    page = page_text([sheet_of(load_text(tmp_path, QUEUE))])
    found = Scripts(page)
    assert not [
        own for _, own in found.elements if own.keys() & {"src", "href", "style", "onclick", "onload"}
    ]
    (policy,) = [own["content"] for tag, own in found.elements if tag == "meta" and "http-equiv" in own]
    assert policy is not None
    digest = base64.b64encode(hashlib.sha256(found.scripts[1].encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ") and policy.endswith(f"script-src 'sha256-{digest}'")
    style = page[page.index("<style>") + 7 : page.index("</style>")]
    assert base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() in policy
    for word in ("innerHTML", "eval(", "document.write", "import(", "fetch(", "http:", "@import", "url("):
        assert word not in (page.replace("http://www.w3.org/2000/svg", "") if word == "http:" else page)


def test_every_part_is_on_the_page() -> None:
    folder = Path(page_write.__file__).parent
    assert {path.name for path in folder.glob("*.js")} == set(page_write.PROGRAMS)
    assert {path.name for path in folder.glob("*.css")} == set(page_write.STYLES)


def test_a_sheet_says_what_the_report_says(tmp_path: Path) -> None:
    model, backend = load_text(tmp_path, QUEUE), choose_backend("cpu")
    sheet = model_sheet(model, backend, "n=3", {"tasks": {2: 0.5, 3: 0.25}})
    json.dumps(sheet, allow_nan=False)
    for own, name in zip(sheet["representations"], ("row-types", "tasks"), strict=True):
        matrix = matrix_held(model, "cpu", name)
        times = {2: 0.5, 3: 0.25} if name == "tasks" else None
        report: LevelReport = report_levels(matrix, "", "auto", "cpu", times, name)
        assert own["name"] == name
        assert (own["min_memory"]["level"], own["min_time"]["level"]) == (report.min_memory, report.min_time)
        assert own["predicted"] == [report.curve.seconds(k, "cpu") for k in range(len(report.curve))]
        # Nothing is built to weigh it where nothing was measured; tasks are counted exactly.
        assert own["held"] == [report.held.get(k) for k in range(len(report.curve))]
        assert any(own["held"]) == (name == "tasks")
        assert [report.reasons[mark] for mark in ("min_memory", "min_time")] == [
            own[mark]["reason"] for mark in ("min_memory", "min_time")
        ]
    assert own["measured"][:4] == [None, None, 0.5, 0.25]
    assert "measured to be the fastest of 2 levels, 250 ms" in own["min_time"]["reason"]
    assert sheet["levels"]["entries"] == [c.submatrix_nonzeros for c in report.curve.levels]
    (picture,) = sheet["pictures"]
    assert sum(picture["entries"]) == model.n_transitions == sheet["transitions"]
    assert all(len(level["kinds"]) == len(picture["cells"]) for level in picture["levels"])


def test_what_cannot_be_drawn_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="at least one model"):
        page_text([])
    sheet = sheet_of(load_text(tmp_path, QUEUE))
    with pytest.raises(OptionError, match="cannot write the page"):
        page_write.write_page([sheet], tmp_path / "missing" / "page.html")
    monkeypatch.setattr("hybrid.app.explorer.blocks._MOST_NODES", 1)
    assert sheet_of(load_text(tmp_path, QUEUE))["pictures"] == []


# ------------------------------------------------------------------ the command


def explore(folder: Path, *arguments: str) -> tuple[int, Path]:
    target = folder / "page.html"
    return main(["explore", *arguments, "--to", str(target), "--backend", "cpu"]), target


def test_one_page_of_several_sizes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, examples_folder: Path
) -> None:
    status, page = explore(tmp_path, str(examples_folder / "kanban.prism"), "--const", "t=1:2", "--json")
    assert status == 0
    told = json.loads(capsys.readouterr().out)
    assert told["page"] == str(page)
    assert [own["model"]["states"] for own in told["models"]] == [160, 4600]
    sheets = sheets_of(page.read_text(encoding="utf-8"))
    assert [sheet["label"] for sheet in sheets] == ["t=1", "t=2"]
    assert [
        {**sheet, "model": own["model"]} for sheet, own in zip(sheets, told["models"], strict=True)
    ] == told["models"]


def test_a_size_that_cannot_be_built_hides_no_other(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model = tmp_path / "few.prism"
    model.write_text("dtmc const int N; module m s:[0..N]; [] s<2 -> (s'=s+1); [] s>=2 -> true; endmodule")
    status, page = explore(tmp_path, str(model), "--const", "N=1:3")
    assert status == 1
    assert "warning: N=1: " in capsys.readouterr().err
    assert [sheet["label"] for sheet in sheets_of(page.read_text(encoding="utf-8"))] == ["N=2", "N=3"]
    page.unlink()
    assert explore(tmp_path, str(model), "--const", "N=1")[0] == 2
    assert not page.exists()


def test_measured_times_are_on_the_page(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.app.explorer.sheet._MEASURED_SECONDS", 0.0)
    model = tmp_path / "queue.prism"
    model.write_text(QUEUE)
    status, page = explore(tmp_path, str(model), "--measure", "--title", "A queue <b>")
    assert status == 0
    text = page.read_text(encoding="utf-8")
    assert '<h1 id="title">A queue &lt;b&gt;</h1>' in text
    (sheet,) = sheets_of(text)
    assert all(any(one["measured"]) for one in sheet["representations"])
    assert "was measured to be the fastest" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--to", "page.png"), "--to: the explorer's page is written as .html, got 'page.png'"),
        (("--to", "page.html", "--const", "N=1:51"), "51 models for one page, expected at most 50"),
        (("--to", "missing/page.html"), "--to: cannot write missing/page.html"),
    ],
)
def test_wrong_usage_of_explore(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["explore", "model.prism", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_the_model_is_not_overwritten(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model = tmp_path / "model.html"
    model.write_text(QUEUE)
    assert main(["explore", str(model), "--to", str(model)]) == 2
    assert "is the model as well" in capsys.readouterr().err
    assert model.read_text() == QUEUE


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with")
@pytest.mark.parametrize("text", [QUEUE, COINS], ids=["chain", "mdp"])
def test_levels_of_a_device_are_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr("hybrid.app.explorer.sheet._MEASURED_SECONDS", 0.0)
    model = load_text(tmp_path, text)
    with use_device(HostDevice()):
        backend = choose_backend("gpu")
        sheet = model_sheet(model, backend, "", measure_representations(model, "gpu"))
    levels = 2 * model.encoding.n_bits + 1
    assert sheet["backend"] == "gpu" and len(sheet["levels"]["nodes"]) == levels
    for own in sheet["representations"]:
        assert all(len(own[name]) == levels for name in ("bytes", "held", "predicted", "measured"))
        times = [seconds for seconds in own["measured"] if seconds is not None]
        assert own["measured"][own["min_time"]["level"]] == min(times)
    assert all(len(picture["levels"]) == levels for picture in sheet["pictures"])
    assert "fused" in sheet["form"] if model.is_mdp else sheet["form"] == ""
    assert sheets_of(page_text([sheet])) == json.loads(json.dumps([sheet]))
