"""`hybrid export`: a model in other tools' formats."""

from __future__ import annotations

import argparse
import contextlib
import json
from typing import Any

from hybrid.app.cli.building import built_model, model_record
from hybrid.app.cli.console import Console
from hybrid.app.cli.output_file import OutputFile, refuse_overwriting
from hybrid.base.units import bytes_text
from hybrid.models.interchange.formats import targets_of, writable_format, write_model


def run(options: argparse.Namespace, console: Console) -> int:
    """Build the model, write the files; return the exit status."""
    refuse_overwriting(options)
    for path in options.to:
        writable_format(path)
        # Tried before the model is built, which may take long.
        with OutputFile(path, "--to"):
            pass
    model = built_model(options, console)
    targets = [target for path in options.to for target in targets_of(path, len(model.source.rewards))]
    written: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(OutputFile(str(target.path), "--to")) for target in targets]
        console.progress("writing files")
        temporary = [target.at(file.temporary) for target, file in zip(targets, files, strict=True)]
        write_model(model, temporary, force=options.force)
        for target, file in zip(targets, files, strict=True):
            size = file.temporary.stat().st_size
            file.publish()
            written.append({"file": str(target.path), "bytes": size})
    if options.json:
        console.print(json.dumps({"model": model_record(model), "files": written}))
    else:
        for item in written:
            console.print(f"{item['file']}  {bytes_text(item['bytes'])}")
    return 0
