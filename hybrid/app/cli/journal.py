"""What a check has found so far, for the process that watches it and for an end before its time."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hybrid.app.cli.console import Console


class Journal:
    """The models built and the answers found, in the order of the command line.

    Parameters
    ----------
    send : callable or None
        Is given every piece of news as plain JSON values, which `take` of another journal understands.

    Attributes
    ----------
    runs : list of dict
        One a combination of constants that was begun: ``constants``, ``model``, ``results``.
    is_single : bool
        Whether there is one combination alone: its JSON is an object, not a list.
    """

    def __init__(self, send: Callable[[dict[str, Any]], None] | None) -> None:
        self.runs: list[dict[str, Any]] = []
        self.is_single = True
        self._send = send
        self._expected: list[list[dict[str, Any]]] = []

    def begin(
        self,
        constants: dict[str, Any],
        model: dict[str, Any],
        expected: Sequence[dict[str, Any]],
        is_single: bool,
    ) -> None:
        """Note that a model is built, and the records of its properties as long as nothing is known."""
        news = {"constants": constants, "model": model, "expected": list(expected), "single": is_single}
        self._news(news)

    def answer(self, record: dict[str, Any]) -> None:
        """Note the record of the next answer."""
        self._news({"answer": record})

    def take(self, news: dict[str, Any]) -> None:
        """Note what another journal was told."""
        if "answer" in news:
            self.runs[-1]["results"].append(news["answer"])
        else:
            self.runs.append({"constants": news["constants"], "model": news["model"], "results": []})
            self._expected.append(news["expected"])
            self.is_single = news["single"]

    def _news(self, news: dict[str, Any]) -> None:
        self.take(news)
        if self._send is not None:
            self._send(news)

    # ------------------------------------------------------------------ the end

    def end(self, reason: str, options: argparse.Namespace, console: Console) -> int:
        """Close a check before its end, with the reason as the error of what is left; return the status.

        Returns
        -------
        int
            1, or 2 if no model was built.
        """
        console.ended(reason)
        if not self.runs:
            return 2
        for run, expected in zip(self.runs, self._expected, strict=True):
            for record in expected[len(run["results"]) :]:
                left = {**record, "error": reason, "interrupted": True}
                run["results"].append(left)
                if getattr(options, "json_lines", False):
                    console.print(json_line(run["constants"], run["model"], left))
                elif not options.json:
                    title = f"{record['name']}: " if record["name"] else ""
                    console.print(f"\n{title}{record['property']}\n  result       not answered: {reason}")
        self.runs[-1]["interrupted"] = True
        if options.json:
            single = {key: value for key, value in self.runs[0].items() if key != "constants"}
            console.print(json.dumps(single if self.is_single else self.runs))
        return 1


def json_line(
    constants: Mapping[str, Any], model: Mapping[str, Any] | None, result: Mapping[str, Any]
) -> str:
    """Return what `--json-lines` prints of a result: its record, the constants given, the model's."""
    # Imported here: commands that answer no property start quicker without.
    from hybrid.checking.answer import json_listing

    return "".join(
        json.JSONEncoder(default=json_listing).iterencode({**result, "constants": constants, "model": model})
    )
