"""What figures share; that a missing package is told with the command that installs it."""

from __future__ import annotations

import shlex
import sys

import pytest

from hybrid.base.errors import OptionError
from hybrid.base.figures import new_figure
from hybrid.base.installing import install_command


def test_without_matplotlib_the_command_is_told_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(OptionError, match="not installed; run: ") as caught:
        new_figure(3, 2)
    command = shlex.split(str(caught.value).partition("run: ")[2])
    assert command == [sys.executable, "-m", "pip", "install", "matplotlib"]


def test_commands_are_quoted_for_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/my tools/python")
    assert install_command("spottl") == "'/my tools/python' -m pip install spottl"
    monkeypatch.setattr(sys, "executable", "")
    assert install_command("spottl") == "python3 -m pip install spottl"
