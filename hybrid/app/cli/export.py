"""`hybrid export` and `hybrid info`: a model in other tools' formats, and its sizes."""

from __future__ import annotations

import argparse
import contextlib
import json
from typing import Any

from hybrid.app.cli.building import built_model, model_record, model_text
from hybrid.app.cli.check_pictures import draw_diagram, drawn_file
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


def run_info(options: argparse.Namespace, console: Console) -> int:
    """Build, draw and print; return the exit status."""
    refuse_overwriting(options)
    with drawn_file(options.diagram, "--diagram", "a diagram") as file:
        model = built_model(options, console)
        if file is not None:
            draw_diagram(model, file, console)
    record = model_record(model)
    record["offset_nodes"] = record["offset_bytes"] = None
    if model.is_numbered:
        offsets = [model.layer_transitions(layer) for layer in range(len(model.layers))]
        record["offset_nodes"] = sum(sum(offset.nodes) for offset in offsets)
        record["offset_bytes"] = sum(offset.nbytes for offset in offsets)
    record["layers"] = len(model.layers)
    record["row_bits"] = model.encoding.n_bits
    if options.json:
        console.print(json.dumps({"model": record}))
    else:
        console.print(model_text(record))
        if model.is_mdp:
            console.print(f"layers       {record['layers']}, each with at most one choice of every state")
        if record["offset_nodes"] is None:
            told = "not at all: more than 2^62 states or transitions are counted, and not numbered"
        else:
            told = f"{record['offset_nodes']:,} nodes on {2 * record['row_bits']} levels, "
            told += bytes_text(record["offset_bytes"])
        console.print(f"offset-labelled {told}")
    return 0
