"""The command line: JSON contracts, exit statuses, messages, plots."""

from __future__ import annotations

import json
import re
import sys

import pytest

from gpu_kernels import use_device
from hybrid.__main__ import main
from hybrid.solvers import AverageReward
from tests.builders.chain_texts import DIE, QUEUE
from tests.builders.pages import sheets_of
from tests.builders.processes import run_python
from tests.exploring import each
from tests.gpu_kernels.host_device import COMPILER, HostDevice

RESULT_KEYS = set(
    (
        "name property value lower upper error kind residual engine backend backend_reason method level "
        "storage iterations products seconds seconds_per_iteration base_memory_bytes "
        "representation_memory_bytes"
    ).split()
)
MODEL_KEYS = set(
    (
        "file type constants states transitions choices build built build_seconds mtbdd_nodes terminals "
        "peak_rss_mb"
    ).split()
)
LEVELS_KEYS = set("model base_memory_bytes levels min_memory min_time reason min_memr reasons".split())
LEVEL_KEYS = set(
    (
        "level nodes paths submatrix_nonzeros instances_worst_case bytes_worst_case row_type_bytes "
        "representation_bytes seconds_per_product"
    ).split()
)


@pytest.fixture
def queue(tmp_path):
    path = tmp_path / "queue.sm"
    path.write_text(QUEUE)
    return str(path)


@pytest.fixture
def die(tmp_path):
    path = tmp_path / "die.pm"
    path.write_text(DIE)
    return str(path)


def run(capsys, *arguments):
    status = main(list(arguments))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def run_json(capsys, *arguments):
    status, out, err = run(capsys, *arguments, "--json")
    return status, json.loads(out), err


# ------------------------------------------------------------------ check


def test_check_prints_one_json_object_as_agreed(capsys, queue):
    status, record, err = run_json(capsys, "check", queue, "S=? [ n=0 ]")
    assert status == 0
    assert err == ""
    assert set(record) == {"model", "results"}
    assert set(record["model"]) == MODEL_KEYS
    assert record["model"]["type"] == "ctmc"
    assert record["model"]["states"] == 5
    assert record["model"]["transitions"] == 8
    (result,) = record["results"]
    assert set(result) == RESULT_KEYS
    assert result["value"] == pytest.approx(1 / sum((2 / 3) ** k for k in range(5)), rel=1e-6)
    assert result["method"] == "gain"
    assert result["engine"] == "hybrid"
    assert result["base_memory_bytes"] == 8 * AverageReward.vectors * 5
    assert result["representation_memory_bytes"] > 0
    assert result["lower"] <= result["value"] <= result["upper"]


def test_json_lines_are_an_object_a_property(capsys, queue):
    asked = ["S=? [ n=0 ]", "S=? [ n=1 ]"]
    status, out, err = run(capsys, "check", queue, "; ".join(asked), "--json-lines")
    assert (status, err) == (0, "")
    records = [json.loads(line) for line in out.splitlines()]
    assert [set(r) for r in records] == [RESULT_KEYS | {"model", "constants"}] * 2
    assert [r["property"] for r in records] == asked
    assert all(set(r["model"]) == MODEL_KEYS for r in records)


def test_json_lines_of_an_experiment_have_its_constants(capsys, tmp_path):
    path = tmp_path / "m.pm"
    path.write_text("dtmc const int N; module m s:[0..2]; [] s<N -> (s'=s+1); [] s>=N -> true; endmodule")
    options = ["--const", "N=1:3", "--json-lines", "--build-full"]
    status, out, err = run(capsys, "check", str(path), "P=? [ F s=2 ]", *options)
    records = [json.loads(line) for line in out.splitlines()]
    assert [r["constants"] for r in records] == [{"N": 1}, {"N": 2}, {"N": 3}]
    assert [r["value"] for r in records] == [0.0, 1.0, None]
    assert [r["model"] is None for r in records] == [False, False, True]
    assert (status, records[2]["error"] is not None, err != "") == (1, True, True)


def test_json_lines_without_a_property_are_the_model(capsys, queue):
    status, out, _ = run(capsys, "check", queue, "--json-lines")
    assert (status, set(json.loads(out))) == (0, {"constants", "model"})
    assert run(capsys, "check", queue, "--json-lines", "--json")[0] == 2


def test_check_of_a_file_with_names_constants_and_choice(capsys, die, tmp_path):
    props = tmp_path / "die.props"
    props.write_text('const int k; "first": P=? [ F d=k ]; "never": P=? [ F d=1 & d=2 ]; R=? [ F s=7 ]\n')
    status, record, _ = run_json(capsys, "check", die, str(props), "--const", "k=2")
    assert status == 0
    assert [r["name"] for r in record["results"]] == ["first", "never", None]
    assert record["results"][1]["value"] == 0.0
    assert record["results"][1]["upper"] == 0.0
    status, record, _ = run_json(
        capsys, "check", die, str(props), "--const", "k=2", "--property", "never", "--property", "2"
    )
    assert [r["property"] for r in record["results"]] == ["P=? [ F d=1 & d=2 ]", "R=? [ F s=7 ]"]


def test_infinity_is_a_string_in_json(capsys, die):
    status, record, _ = run_json(capsys, "check", die, "R=? [ F d=1 ]")
    assert status == 0
    assert record["results"][0]["value"] == "Infinity"
    assert record["results"][0]["lower"] == "Infinity"


def test_an_unanswered_property_exits_with_1_and_keeps_the_others(capsys, die):
    status, record, _ = run_json(capsys, "check", die, "R=? [ G d=1 ]; P=? [ F d=1 ]")
    assert status == 1
    assert record["results"][0]["value"] is None
    assert "co-safe" in record["results"][0]["error"]
    assert record["results"][1]["value"] == pytest.approx(1 / 6, rel=1e-6)


def test_iteration_limit_exits_with_1(capsys, die):
    status, record, _ = run_json(
        capsys, "check", die, "P=? [ F d=1 ]", "--max-iters", "2", "--method", "interval"
    )
    assert status == 1
    assert record["results"][0]["value"] is None
    assert "iteration limit" in record["results"][0]["error"]


def test_check_without_property_builds(capsys, die):
    status, record, _ = run_json(capsys, "check", die)
    assert status == 0
    assert record["results"] == []


def test_plain_output_names_value_memory_and_method(capsys, queue):
    status, out, err = run(capsys, "check", queue, 'R{"length"}=? [ S ]')
    assert status == 0
    assert "states       5" in out
    assert "(between 1." in out
    _, out, _ = run(capsys, "check", queue, 'R{"length"}=? [ S ]', "--method", "jor")
    assert "estimate, without bounds: jor; one more step changes values by up to" in out
    assert "matrix" in out
    assert err == ""


def test_plain_output_and_record_say_where_and_why(capsys, queue, monkeypatch):
    monkeypatch.setattr("hybrid.matrix.backends.device_problem", lambda: "the card is at home")
    _, out, _ = run(capsys, "check", queue, 'R{"length"}=? [ S ]')
    few = "NumPy solves 5 equations before compiled kernels are loaded"
    assert f"\n  backend      reference: {few}; no GPU: the card is at home\n" in out + "\n"
    monkeypatch.setattr("hybrid.matrix.backends.FEW_EQUATIONS", 0)
    _, out, _ = run(capsys, "check", queue, 'R{"length"}=? [ S ]')
    assert "\n  backend      cpu: compiled kernels on all cores; no GPU: the card is at home\n" in out + "\n"
    _, record, _ = run_json(capsys, "check", queue, 'R{"length"}=? [ S ]')
    assert "no GPU: the card is at home" in record["results"][0]["backend_reason"]
    _, out, _ = run(capsys, "check", queue, 'R{"length"}=? [ S ]', "--engine", "explicit", "--storage", "csr")
    assert "written out as csr" in out
    assert "backend      cpu: auto is the cpu with the engine explicit" in out
    _, out, _ = run(capsys, "check", queue, "P=? [ F n=4 | n<4 ]")
    assert "backend" not in out


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with")
def test_storage_is_chosen_by_name(capsys, queue):
    options = ["--engine", "explicit", "--backend", "gpu"]
    with use_device(HostDevice()):
        _, record, _ = run_json(capsys, "check", queue, "S=? [ n=0 ]", *options, "--storage", "cmsr-wl")
        assert record["results"][0]["storage"] == "cmsr-wl"
        assert record["results"][0]["value"] == pytest.approx(81 / 211, rel=1e-8)
        _, out, _ = run(capsys, "check", queue, "S=? [ n=0 ]", *options, "--storage", "msr")
    assert "written out as msr\n  backend      gpu: asked for" in out
    status, out, err = run(capsys, "check", queue, "S=? [ n=0 ]", "--engine", "explicit", "--storage", "msr")
    assert (status, out) == (2, "")
    assert "does not exist on the cpu, which has csr" in err


def test_deadlock_warning_and_refusal(capsys, tmp_path):
    path = tmp_path / "dead.pm"
    path.write_text("dtmc module m s:[0..1]; [] s=0 -> (s'=1); endmodule")
    status, out, err = run(capsys, "check", str(path), "P=? [ F s=1 ]")
    assert (status, err) == (0, "")  # nothing behind s=1 is asked for
    status, out, err = run(capsys, "check", str(path), "P=? [ F s=1 ]", "--build-full")
    assert status == 0
    assert "warning: 1 state has no outgoing transition and got a self-loop, for example (s=1)" in err
    status, out, err = run(capsys, "check", str(path), "P=? [ F s=1 ]", "--quiet")
    assert err == ""
    status, out, err = run(capsys, "check", str(path), "P=? [ F s=1 ]", "--no-fix-deadlocks")
    assert status == 2
    assert "(s=1)" in err
    assert out == ""


@pytest.mark.parametrize(
    ("level", "backend"), each(["min-memory", "min-time", "4"], ["cpu", "reference", "auto"])
)
def test_backends_and_levels(capsys, queue, backend, level):
    status, record, _ = run_json(
        capsys, "check", queue, "S=? [ n=4 ]", "--backend", backend, "--level", level
    )
    assert status == 0
    result = record["results"][0]
    assert result["backend"] == ("reference" if backend == "auto" else backend)
    if level == "4":
        assert result["level"] == 4


# ------------------------------------------------------------------ levels and info


def test_levels_json_as_agreed(capsys, queue):
    status, record, err = run_json(capsys, "levels", queue)
    assert status == 0
    assert set(record) == LEVELS_KEYS
    assert [row["level"] for row in record["levels"]] == list(range(7))
    assert all(set(row) == LEVEL_KEYS for row in record["levels"])
    assert record["levels"][0]["paths"] == 1
    assert record["levels"][0]["submatrix_nonzeros"] == 8
    assert record["levels"][6]["paths"] == 8
    assert record["base_memory_bytes"] == 3 * 8 * 5
    # Nothing is built: row types are counted.
    assert not any(row["representation_bytes"] for row in record["levels"])
    sizes = [row["row_type_bytes"] for row in record["levels"]]
    assert sizes[record["min_memory"]] == min(sizes)
    worst = [row["bytes_worst_case"] for row in record["levels"]]
    assert worst[record["min_memr"]] == min(worst)
    assert set(record["reasons"]) == {"min_memory", "min_memr", "min_time"}
    assert all(reason.startswith(f"level {record[mark]} ") for mark, reason in record["reasons"].items())


@pytest.mark.parametrize("asked", [("--level", "min-memory"), ("--measure",)])
def test_levels_are_built_to_weigh_them_where_that_is_asked_for(capsys, queue, asked):
    status, record, _ = run_json(capsys, "levels", queue, "--backend", "cpu", *asked)
    assert status == 0
    sizes = {r["level"]: r["representation_bytes"] for r in record["levels"] if r["representation_bytes"]}
    assert sizes[record["min_memory"]] == min(sizes.values())
    assert "built to weigh them" in record["reasons"]["min_memory"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
def test_f23_levels_of_a_billion_states_are_counted_in_seconds_and_little_memory(examples_folder):
    # Whole processes, and seconds of processors: this machine may have others at work.
    code = (
        "import resource, sys; from hybrid.__main__ import main\n"
        f"status = main(['levels', {str(examples_folder / 'kanban.prism')!r}, '--const', 't=10', '--json'])\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "(peak,) = [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM:')]\n"
        "print(used.ru_utime + used.ru_stime, peak, *sys.modules, file=sys.stderr)\n"
    )
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["model"]["states"] == 1_005_927_208
    assert not any(row["representation_bytes"] for row in record["levels"])
    assert record["min_memr"] == 64
    seconds, kilobytes, *modules = done.stderr.splitlines()[-1].split()
    assert float(seconds) < 10  # 1.4 where nothing else is at work, 35 when levels were built
    assert int(kilobytes) < 200_000
    unused = {
        "numba",
        "scipy",
        "hybrid.matrix.levels.probe",
        "hybrid.matrix.gpu.build",
        "hybrid.app.explorer.sheet",
    }
    assert not unused & set(modules)


def test_levels_measured(capsys, queue):
    status, record, _ = run_json(capsys, "levels", queue, "--measure")
    assert status == 0
    seconds = {r["level"]: r["seconds_per_product"] for r in record["levels"] if r["seconds_per_product"]}
    assert record["min_time"] == min(seconds, key=seconds.get)
    assert "measured" in record["reason"]


def test_levels_table_marks_the_choice(capsys, queue):
    status, out, _ = run(capsys, "levels", queue)
    assert status == 0
    marked = [line.partition("  <- ")[2].split(", ") for line in out.splitlines() if "<- " in line]
    assert sorted(mark for marks in marked for mark in marks) == ["least MemR", "least held", "least time"]
    assert "vectors (MemB) 120 B" in out
    # The legend: every mark with its reason, every column.
    for name in ("least held (min-memory)", "least MemR", "least time (min-time)"):
        assert re.search(rf"^{re.escape(name)} +level \d+ ", out, re.MULTILINE)
    for column in ("nodes, paths", "instances ≤", "MemR ≤", "counted"):
        assert re.search(rf"^{column}  ", out, re.MULTILINE)
    assert not re.search(r"^(held|product)  ", out, re.MULTILINE)
    _, out, _ = run(capsys, "levels", queue, "--level", "min-memory")
    assert re.search(r"^held  ", out, re.MULTILINE)
    _, out, _ = run(capsys, "levels", queue, "--level", "3")
    assert out.endswith("level 3 was asked for\n")


@pytest.mark.parametrize(
    ("ending", "start"),
    [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("html", b"<!doctype html>")],
)
def test_levels_plot(capsys, queue, tmp_path, ending, start):
    target = tmp_path / f"curve.{ending}"
    status, _, _ = run(capsys, "levels", queue, "--plot", str(target))
    assert status == 0
    content = target.read_bytes()
    assert content.startswith(start)
    assert len(content) > 5000


def test_info(capsys, queue):
    status, record, _ = run_json(capsys, "info", queue)
    assert status == 0
    assert set(record) == {"model"}
    assert set(record["model"]) >= MODEL_KEYS
    assert record["model"]["choices"] is None
    status, out, _ = run(capsys, "info", queue)
    assert "offset-labelled" in out
    assert "choices" not in out


def test_info_of_more_states_than_numbers(capsys, tmp_path):
    path = tmp_path / "many.prism"
    text = "".join(f"module m{k} b{k}: bool; [] true -> (b{k}'=!b{k}); endmodule " for k in range(63))
    path.write_text(f"mdp {text}")
    status, record, _ = run_json(capsys, "info", str(path))
    assert status == 0
    assert record["model"]["states"] == 2**63 and record["model"]["layers"] == 63
    assert record["model"]["offset_nodes"] is record["model"]["offset_bytes"] is None
    _, out, _ = run(capsys, "info", str(path))
    assert "9,223,372,036,854,775,808" in out and "counted, and not numbered" in out


def test_info_of_an_mdp(capsys, tmp_path):
    path = tmp_path / "choices.prism"
    path.write_text(
        "mdp module m s:[0..1]; [] true -> (s'=1-s); [a] s=0 -> 0.5:(s'=0) + 0.5:(s'=1); endmodule"
    )
    status, record, _ = run_json(capsys, "info", str(path))
    assert status == 0
    sizes = {key: record["model"][key] for key in ("type", "states", "choices", "transitions", "layers")}
    assert sizes == {"type": "mdp", "states": 2, "choices": 3, "transitions": 4, "layers": 2}
    status, out, _ = run(capsys, "info", str(path))
    assert status == 0
    assert "choices      3\n" in out
    assert "layers       2" in out


@pytest.fixture
def walk(tmp_path):
    path = tmp_path / "walk.prism"
    path.write_text(
        "mdp module m x:[0..40]; [] x<40 -> 0.5:(x'=x+1) + 0.5:(x'=max(x-1,0)); [] x=40 -> true;"
        "[leap] x<39 -> (x'=x+2); [home] mod(x,9)=0 -> (x'=0); endmodule rewards [home] true : 1; endrewards"
    )
    return str(path)


def test_levels_of_an_mdp(capsys, walk):
    status, record, err = run_json(capsys, "levels", walk, "--backend", "cpu")
    assert (status, err) == (0, "")
    assert set(record) == LEVELS_KEYS
    assert record["model"]["choices"] > record["model"]["states"] == 41
    assert [row["level"] for row in record["levels"]] == list(range(13))
    assert all(set(row) == LEVEL_KEYS for row in record["levels"])
    root, *_, terminals = record["levels"]
    layers = record["model"].get("layers", 3)
    assert (root["nodes"], root["paths"]) == (layers, layers)
    assert root["submatrix_nonzeros"] == terminals["paths"] == record["model"]["transitions"]
    assert record["base_memory_bytes"] == 3 * 8 * 41
    sizes = [row["row_type_bytes"] for row in record["levels"]]
    assert sizes[record["min_memory"]] == min(sizes) > 0
    assert str(record["min_time"]) in record["reason"]


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("level", ["min-memory", "min-time", "auto", "5"])
def test_checks_of_an_mdp_use_the_level_that_is_marked(capsys, walk, backend, level):
    _, levels, _ = run_json(capsys, "levels", walk, "--backend", backend, "--level", level)
    marked = {"min-memory": levels["min_memory"], "5": 5}.get(level, levels["min_time"])
    assert levels["reason"].startswith(f"level {marked} ")
    status, record, _ = run_json(
        capsys, "check", walk, "Rmax=? [ C<=20 ]", "--backend", backend, "--level", level
    )
    (result,) = record["results"]
    assert (status, result["backend"], result["level"]) == (0, backend, marked)


def test_levels_of_an_mdp_as_a_table(capsys, walk):
    status, out, _ = run(capsys, "levels", walk, "--backend", "cpu")
    assert status == 0
    assert "min-memory" in out and "min-time" in out
    assert "sums over 3 layers of choices, held one by one" in out


def test_levels_of_an_mdp_measured_and_drawn(capsys, walk, tmp_path, monkeypatch):
    monkeypatch.setattr("hybrid.app.explorer.sheet._MEASURED_SECONDS", 0.0)
    target = tmp_path / "curve.html"
    status, record, _ = run_json(capsys, "levels", walk, "--measure", "--plot", str(target))
    assert status == 0
    seconds = {r["level"]: r["seconds_per_product"] for r in record["levels"] if r["seconds_per_product"]}
    assert record["min_time"] == min(seconds, key=seconds.get)
    assert "measured" in record["reason"]
    (sheet,) = sheets_of(target.read_text(encoding="utf-8"))
    assert dict(enumerate(sheet["representations"][0]["measured"])) == {
        r["level"]: r["seconds_per_product"] for r in record["levels"]
    }
    assert [picture["name"] for picture in sheet["pictures"]] == ["layer 0", "layer 1", "layer 2"]


def test_levels_of_an_mdp_refuse_what_does_not_exist(capsys, walk):
    status, out, err = run(capsys, "levels", walk, "--level", "99")
    assert (status, out) == (2, "")
    assert "expected 0..12" in err


# ------------------------------------------------------------------ wrong usage

WRONG_MODELS = [
    ("", "expected", ":1:1:"),
    ("ctmc module m s:[0..2]; [] s=0 -> 1:(s'=3); endmodule", "outside its range [0..2]", ":1:38"),
    ("dtmc module m s:[0..2]; [] s=0 -> 0.5:(s'=1); [] s>0 -> true; endmodule", "add up to 0.5", ":1:25"),
    ("module m s:[0..1]; [] s=0 -> 3:(s'=1); [] s>0 -> 2:(s'=0); endmodule", "begin with ctmc)", ":1:20"),
    ("ctmc module m s:[0..2]; [] s<2 -> s-1:(s'=s+1); endmodule", "weight of an update is -1", ":1:35"),
    ("ctmc module m s:[0..2]; [] s<2 -> 1/s:(s'=s+1); endmodule", "weight of an update is inf", ":1:35"),
    ("ctmc module m s:[0..2]; [] t=0 -> 1:(s'=1); endmodule", "t", ":1:28"),
    ("ctmc const int N; module m s:[0..N]; [] s=0 -> 1:(s'=1); endmodule", "--const", ":1:"),
    ("ctmc module m s:[3..2]; endmodule", "[3..2]", ":1:"),
    ("ctmc module m s:[0..2]; endmodule init s>2 endinit", "no initial state", ":1:40"),
    ("mdp module m s:[0..2]; [] s=0 -> 0.5:(s'=1); endmodule", "add up to 0.5", ":1:24"),
    ("ctmc module m s:[0..2] [] s=0 -> 1:(s'=1); endmodule", "expected", ":1:"),
]


@pytest.mark.parametrize(("text", "message", "place"), WRONG_MODELS)
def test_wrong_models_exit_with_2_and_a_place(capsys, tmp_path, text, message, place):
    path = tmp_path / "wrong.prism"
    path.write_text(text)
    status, out, err = run(capsys, "check", str(path), "P=? [ F s=1 ]")
    assert status == 2
    assert out == ""
    assert message in err
    assert f"wrong.prism{place}" in err
    assert "Traceback" not in err


def test_files_that_are_no_models(capsys, tmp_path):
    binary = tmp_path / "binary.prism"
    binary.write_bytes(bytes(range(256)))
    for path in (tmp_path / "missing.prism", tmp_path, binary):
        status, out, err = run(capsys, "check", str(path), "P=? [ F s=1 ]")
        assert status == 2
        assert err.startswith("error: ")
        assert out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["P=? [ F s=1"],
        ["P=? [ F s=1 ]", "--const", "N"],
        ["P=? [ F s=1 ]", "--const", "nowhere=3"],
        ["P=? [ F s=1 ]", "--backend", "gpu"],
        ["P=? [ F s=1 ]", "--engine", "symbolic", "--method", "jor"],
        ["P=? [ F s=1 ]", "--method", "gauss-seidel", "--backend", "gpu"],
        ["P=? [ F s=1 ]", "--method", "gauss-seidel", "--omega", "2"],
        ["P=? [ F s=1 ]", "--storage", "msr"],
        ["P=? [ F s=1 ]", "--engine", "explicit", "--storage", "msr"],
        ["P=? [ F s=1 ]", "--engine", "explicit", "--storage", "dense"],
        ["P=? [ F s=1 ]", "--epsilon", "0"],
        ["P=? [ F s=1 ]", "--max-iters", "0"],
        ["P=? [ F s=1 ]", "--omega", "2.5"],
        ["missing.props"],
        ["--property", "first"],
        ["P=? [ F s=1 ]", "--property", "first"],
        ["P=? [ F s=1 ]", "--property", "7"],
    ],
)
def test_wrong_usage_exits_with_2(capsys, die, arguments, monkeypatch):
    # The same on a machine with a GPU.
    monkeypatch.setattr("hybrid.matrix.backends.device_problem", lambda: "there is none")
    status, out, err = run(capsys, "check", die, *arguments)
    assert status == 2
    assert out == ""
    assert err.startswith("error: ")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["solve", "x"],
        ["check"],
        ["check", "m", "--level", "deep"],
        ["check", "m", "--level", "-1"],
        ["check", "m", "--omega", "much"],
    ],
)
def test_argparse_exits_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_wrong_plot_ending_is_refused_before_any_work(capsys):
    status, _, err = run(capsys, "levels", "missing.prism", "--plot", "curve.gif")
    assert status == 2
    assert ".png, .svg, .pdf or .html" in err


def test_level_out_of_range(capsys, queue):
    status, out, err = run(capsys, "levels", queue, "--level", "99")
    assert status == 2
    assert "0..6" in err
    status, record, _ = run_json(capsys, "check", queue, "S=? [ n=0 ]", "--level", "99")
    assert status == 1
    assert "0..6" in record["results"][0]["error"]


# ------------------------------------------------------------------ processes


def test_interrupt_and_no_memory_are_messages(capsys, die, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hybrid.app.cli.building.load", interrupted)
    status, _, err = run(capsys, "check", die)
    assert (status, err) == (130, "error: interrupted\n")

    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("hybrid.app.cli.building.load", exhausted)
    status, _, err = run(capsys, "check", die)
    assert status == 1
    assert "out of memory" in err


def test_module_and_version(die):
    done = run_python("-m", "hybrid", "check", die, "P=? [ F s=7 ]", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["results"][0]["value"] == 1.0
    assert done.stderr == ""
    done = run_python("-m", "hybrid", "--version")
    assert done.returncode == 0
    told = dict(line.split(None, 1) for line in done.stdout.splitlines())
    assert told["hybrid"][0].isdigit() and {"python", "dd", "numpy", "cupy", "device"} <= told.keys()


# ------------------------------------------------------------------ experiments


def test_ranges_run_all_combinations(capsys, die, tmp_path):
    props = tmp_path / "die.props"
    table = tmp_path / "table.csv"
    props.write_text("const int k; const int n; P=? [ F<=n d=k ]\n")
    status, record, err = run_json(
        capsys, "check", die, str(props), "--const", "k=1:2,n=1:2:5", "--csv", str(table)
    )
    assert (status, err) == (0, f"wrote {table}\n")
    assert [r["constants"] for r in record] == [{"k": k, "n": n} for k in (1, 2) for n in (1, 3, 5)]
    assert [r["results"][0]["value"] for r in record] == pytest.approx([0, 1 / 8, 5 / 32] * 2)
    lines = table.read_text().splitlines()
    assert lines[0] == "k,n,name,property,value,lower,upper,error"
    assert lines[2].startswith("1,3,,P=? [ F<=n d=k ],0.125")
    assert len(lines) == 7


def test_ranges_of_the_models_constants_rebuild_it(capsys, tmp_path):
    path = tmp_path / "m.prism"
    path.write_text("dtmc const double p; module m s:[0..1]; [] s=0 -> p:(s'=1) + 1-p:(s'=0); endmodule")
    status, out, _ = run(capsys, "check", str(path), "P=? [ X s=1 ]", "--const", "p=0.1:0.1:0.3", "--quiet")
    assert status == 0
    assert [line for line in out.splitlines() if line.startswith("#")] == ["# p=0.1", "# p=0.2", "# p=0.3"]
    assert "0.3" in out.split("# p=0.3")[1]


@pytest.mark.parametrize("text", ["k=1:", "k=3:1", "k=1:0:3", "k=1:2:3:4", "k=a:b", "k=1:inf", "k=0:1e-9:1"])
def test_wrong_ranges_are_wrong_usage(capsys, die, text):
    status, out, err = run(capsys, "check", die, "const int k; P=? [ F d=k ]", "--const", text)
    assert (status, out) == (2, "")
    assert "--const" in err
