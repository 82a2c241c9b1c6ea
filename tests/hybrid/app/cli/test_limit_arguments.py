"""Values of `--timeout`, `--memory` and `--limit`: units, and what is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.__main__ import main
from hybrid.app.cli.arguments import parse_arguments

NO_DURATIONS = (
    ["0", "0m", "-5", "-5m", "nan", "inf", "infm", "1e400", "1e308h", "", "m", "1d", "1ms", "1 m", " 1", "5M"]
    + ["1m30s", "1_0", "0x10", "\N{ARABIC-INDIC DIGIT THREE}m", "1e", "1..5", ".", "1,5h", "9" * 5000 + "x"]
)  # fmt: skip
REFUSED = [
    *(
        ("--timeout", text, "argument --timeout: expected a positive number of seconds")
        for text in NO_DURATIONS
    ),
    ("--memory", "1_0G", "argument --memory: expected a positive number of bytes"),
    ("--memory", "1e400", "argument --memory: expected a positive number of bytes"),
    ("--limit", "bits=" + "9" * 5000, "a whole number of at most 18 digits, got 'bits=999"),
    ("--limit", "bits=\N{SUPERSCRIPT TWO}", "a whole number of at most 18 digits, got 'bits="),
    ("--limit", "bits=-3", "limit bits: expected an integer of at least 1, got -3"),
]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("90s", 90.0),
        ("2.5", 2.5),
        (".5m", 30.0),
        ("5m", 300.0),
        ("1.5h", 5400.0),
        ("1e3s", 1000.0),
    ],
)
def test_durations_have_units(text: str, seconds: float) -> None:
    assert parse_arguments(["info", "m.pm", "--timeout", text]).timeout == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("1000", 1000), ("4k", 4096), ("1.5M", 3 << 19), ("2G", 2 << 30), ("1e3", 1000)]
)
def test_sizes_have_units(text: str, size: int) -> None:
    assert parse_arguments(["info", "m.pm", "--memory", text]).memory == size


@pytest.mark.parametrize(
    ("option", "value", "message"), REFUSED, ids=[f"{o} {v[:12]!r}" for o, v, _ in REFUSED]
)
def test_senseless_values_are_refused_by_name(
    option: str, value: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["info", "m.pm", f"{option}={value}"])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert message in told
    assert len(told) < 400


def test_a_time_limit_with_a_unit_ends_a_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    # As many modules as take a search of minutes.
    modules = (
        f"module m{i} x{i} : [0..40]; [] x{i}<40 -> (x{i}'=mod(x{i}*7+x{(i + 11) % 30}+1, 41)); endmodule"
        for i in range(30)
    )
    path = tmp_path / "slow.pm"
    path.write_text("dtmc\n" + "\n".join(modules))
    assert main(["info", str(path), "--package", "autoref", "--quiet", "--timeout", "0.01m"]) == 2
    assert capfd.readouterr().err == (
        "error: the time limit of 0.6 s is reached while building the model; give more: --timeout 1.2\n"
    )
