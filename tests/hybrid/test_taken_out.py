"""What the version before had: a message says what to use in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.base.errors import OptionError
from hybrid.models.interchange import InterchangeError

COIN = "dtmc module m x:[0..1]; [] true -> 0.5:(x'=0) + 0.5:(x'=1); endmodule"


def test_orders_by_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(
        OptionError, match="expected one of auto, model, reversed, force, got 'search': no prod"
    ):
        hybrid.parse(COIN, order="search")  # type: ignore[arg-type]
    path = tmp_path / "m.prism"
    path.write_text(COIN)
    with pytest.raises(OptionError, match="auto looks at the others"):
        hybrid.load(path, order="search")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="got 'best'$"):
        hybrid.load(path, order="best")  # type: ignore[arg-type]
    with pytest.raises(SystemExit, match="2"):
        main(["info", str(path), "--order", "search"])
    assert "auto looks at the others" in capsys.readouterr().err
    with pytest.raises(ImportError, match=r"^hybrid\.ordering was taken out: orders are not searched"):
        from hybrid import ordering  # type: ignore[attr-defined]  # noqa: F401


def test_models_as_npz(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, path = hybrid.parse(COIN), tmp_path / "m.npz"
    with pytest.raises(InterchangeError, match=r"m\.npz: models are not kept as \.npz any more.* \.umb"):
        hybrid.export(model, path)
    path.write_bytes(b"PK\3\4")
    with pytest.raises(InterchangeError, match=r"hybrid\.from_scipy, and goes out as \.mtx"):
        hybrid.load(path)
    text = tmp_path / "m.prism"
    text.write_text(COIN)
    assert main(["export", str(text), "--to", str(path)]) == 2
    assert main(["check", str(path), "P=? [ F x=1 ]"]) == 2
    assert capsys.readouterr().err.count("which takes less room") == 2


def test_matrix_operators() -> None:
    with pytest.raises(
        ImportError, match=r"^hybrid\.solvers\.MatrixOperator was taken out: it is LinearOperator"
    ):
        from hybrid.solvers import MatrixOperator  # type: ignore[attr-defined]  # noqa: F401
