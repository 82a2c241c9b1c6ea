"""Sources: every file is there, includes are put in place once, and every specialisation compiles."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path

import pytest

import gpu_kernels
from gpu_kernels import seconds_loading
from gpu_kernels.runtime._launch import GRID_LIMIT, blocks_for, index_bits, loop_bits, macros
from gpu_kernels.runtime._loader import (
    COMPILE_OPTIONS,
    SOURCES,
    Macros,
    kernel_names,
    raw_kernel,
    source_text,
)

# Each has one width of indices: no source asks for which it is compiled. Every source is compiled for both;
# so is every variant in `make nightly`, and in `make test` the first and the last, for one of the two.
ARCHITECTURES = {32: "sm_80", 64: "sm_90"}
STEP = {"MODE": 1, "DIAGONAL_BITS": 8, "RIGHT_BITS": 64}
RECORDS = {"CODE_BITS": 8, "TERM_BITS": 16, "UNIT": 4}
LAUNCH = {"THREADS": 128, "MIN_BLOCKS": 8, "MEMBERS": 4, "SCALED": 1}
GRAPH = {"THREADS": 256}
PAIRS = {"PAIR_THREADS": 128, "ENTRY_LANES": 8, "MEMBERS": 4, "ROWS": 32, "PARTS": 8}
CHOICE = {
    "MAXIMISE": 1, "SHAPE": 0, "POLICY": 0, "CHOOSE": 0, "MEASURE": 1,
    "MODE": 0, "DIAGONAL_BITS": 0, "RIGHT_BITS": 0,
}  # fmt: skip
ALL_PARTS = CHOICE | {"MAXIMISE": 0, "SHAPE": 1, "POLICY": 1, "CHOOSE": 1}
LAYERS = RECORDS | LAUNCH | {"SCALED": 0, "LAYERS": 6, "GAIN_BITS": 8, "FACTORS": 0, "ROUNDS": 0}
VARIANTS: dict[str, tuple[dict[str, int], ...]] = {
    "block_spmv.cu": (
        STEP,
        {"MODE": 0, "DIAGONAL_BITS": 0, "RIGHT_BITS": 0},
        STEP | {"MODE": 2},
        STEP | {"MODE": 3},
        STEP | {"ANCHORED": 1},
    ),
    "blocks.cu": ({"ELEMENT_BYTES": 1}, {"ELEMENT_BYTES": 8}),
    "choice_rows.cu": (
        CHOICE | {"STATE_LANES": 4, "CHOICE_LANES": 1, "SCANNED": 1},
        ALL_PARTS | {"STATE_LANES": 32, "CHOICE_LANES": 8, "SCANNED": 0},
    ),
    "choices.cu": (
        CHOICE | LAYERS,
        ALL_PARTS | LAYERS | {"GAIN_BITS": 32, "FACTORS": 1, "MEMBERS": 2, "ROUNDS": 1},
        CHOICE | LAYERS | {"GAIN_BITS": 0, "CODE_BITS": 16, "TERM_BITS": 32, "UNIT": 2, "MEMBERS": 1},
        CHOICE | LAYERS | {"GAIN_BITS": 8, "CODE_BITS": 8, "UNIT": 1, "MEMBERS": 4, "LOOK_UPS": 4},
    ),
    "explicit.cu": (RECORDS, {"CODE_BITS": 16, "TERM_BITS": 32, "UNIT": 2}),
    "graph/fbt.cu": (GRAPH,),
    "graph/format.cu": (GRAPH,),
    "graph/mec_trim.cu": (GRAPH,),
    "graph/scc.cu": (GRAPH,),
    "groups.cu": ({"MAXIMISE": 0}, {"MAXIMISE": 1}),
    "idr.cu": (
        {"DIAGONAL_BITS": 0, "ANCHORED": 0},
        {"DIAGONAL_BITS": 8, "ANCHORED": 0},
        {"DIAGONAL_BITS": 64, "ANCHORED": 1},
        {"DIAGONAL_BITS": 0, "ANCHORED": 0, "DIRECTIONS": 1},
        {"DIAGONAL_BITS": 64, "ANCHORED": 1, "DIRECTIONS": 1},
    ),
    "iteration.cu": (STEP,),
    "msr.cu": ({"VALUE_BITS": 8}, {"VALUE_BITS": 64}),
    "pairs.cu": (
        STEP | PAIRS | {"VALUE_BITS": 8, "SCALE_BITS": 8},
        STEP
        | PAIRS
        | {"VALUE_BITS": 64, "SCALE_BITS": 0, "ENTRY_LANES": 1, "MEMBERS": 1, "ROWS": 128, "PARTS": 1},
        STEP | PAIRS | {"VALUE_BITS": 16, "SCALE_BITS": 16, "ENTRY_LANES": 32, "MODE": 0, "DIAGONAL_BITS": 0},
        STEP | PAIRS | {"VALUE_BITS": 8, "SCALE_BITS": 64, "MEMBERS": 2, "ROWS": 1, "PARTS": 32, "MODE": 3},
        STEP | PAIRS | {"VALUE_BITS": 8, "SCALE_BITS": 8, "MODE": 2, "ROWS": 8, "PARTS": 32},
        STEP | PAIRS | {"VALUE_BITS": 8, "SCALE_BITS": 8, "ANCHORED": 1},
    ),
    "scan.cu": ({"VALUE_BITS": 16, "SCAN_THREADS": 256}, {"VALUE_BITS": 64, "SCAN_THREADS": 256}),
    "segments.cu": ({"VALUE_BITS": 8, "WARP": 32}, {"VALUE_BITS": 32, "WARP": 4}),
    "sell.cu": ({"VALUE_BITS": 16}, {"VALUE_BITS": 64}),
    "shadows.cu": ({"DIAGONAL_BITS": 8}, {"DIAGONAL_BITS": 64}, {"DIAGONAL_BITS": 64, "DIRECTIONS": 1}),
    "stream.cu": ({"VALUE_BITS": 8}, {"VALUE_BITS": 64}),
    "tiles.cu": (
        RECORDS | LAUNCH | STEP,
        RECORDS | LAUNCH | STEP | {"MODE": 0, "DIAGONAL_BITS": 0, "RIGHT_BITS": 0, "SCALED": 0},
        RECORDS | LAUNCH | STEP | {"MODE": 2, "MEMBERS": 2, "DIAGONAL_BITS": 16, "RIGHT_BITS": 0},
        RECORDS | LAUNCH | STEP | {"MODE": 3, "MEMBERS": 1, "DIAGONAL_BITS": 64, "RIGHT_BITS": 8},
        {"CODE_BITS": 16, "TERM_BITS": 32, "UNIT": 2} | LAUNCH | STEP,
        RECORDS | LAUNCH | STEP | {"HALO": 1},
        RECORDS | LAUNCH | STEP | {"ANCHORED": 1, "RIGHT_BITS": 0},
    ),
    "tiles_many.cu": (
        RECORDS | LAUNCH | {"SHARE": 4, "MIN_BLOCKS": 2, "MEMBERS": 2},
        RECORDS | LAUNCH | {"SHARE": 2, "MEMBERS": 2, "SCALED": 0},
        {"CODE_BITS": 16, "TERM_BITS": 32, "UNIT": 2} | LAUNCH | {"SHARE": 1, "MEMBERS": 1},
    ),
    "vector.cu": (STEP, STEP | {"MODE": 3, "RIGHT_BITS": 16}, STEP | {"ANCHORED": 1}),
    "windows.cu": ({},),
}


def variants() -> list[tuple[str, Macros, str]]:
    architectures = list(ARCHITECTURES.items())
    return [
        (source, macros(INDEX_BITS=bits, **values), architecture)
        for number, (source, all_values) in enumerate(VARIANTS.items())
        for turn, values in enumerate(all_values[:: max(1, len(all_values) - 1)])
        for bits, architecture in [architectures[(number + turn) % len(architectures)]]
    ]


def test_every_source_is_tested_and_has_kernels() -> None:
    folder = Path(gpu_kernels.__file__).parent / "cuda"
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.cu")} == set(SOURCES)
    assert set(VARIANTS) == set(SOURCES)
    names = [name for source in SOURCES for name in kernel_names(source)]
    assert len(names) == len(set(names))
    assert {"step_tiles", "step_gaps", "block_spmv", "finish_iteration", "relax_rows"} <= set(names)


def test_includes_are_in_place_once_and_lines_keep_their_numbers() -> None:
    text = source_text("tiles.cu", macros(INDEX_BITS=32), preamble="// first\n")
    assert text.startswith("// first\n")
    assert "#include" not in text
    assert text.count('#line 1 "common.cuh"') == 1
    assert text.count("typedef int INDEX;") == 1
    assert "#define INDEX_BITS 32" in text
    # A line of the file lies where the last #line directive before it says.
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("step_tiles("))
    start = max(i for i in range(at) if lines[i].startswith("#line") and lines[i].endswith('"tiles.cu"'))
    number = int(lines[start].split()[1]) + at - start - 1
    from gpu_kernels.runtime._loader import _file_text

    assert _file_text("tiles.cu").splitlines()[number - 1] == lines[at]


def test_no_source_depends_on_the_architecture() -> None:
    for source in SOURCES:
        assert "__CUDA_ARCH" not in source_text(source, ())


@pytest.mark.parametrize(
    ("source", "options", "architecture"), variants(), ids=lambda v: v if isinstance(v, str) else ""
)
def test_compiles_for(source: str, options: Macros, architecture: str) -> None:
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.bindings") is None:
        pytest.skip("cuda-bindings is not installed (extra 'test')")
    from cuda.bindings import nvrtc

    def checked(answer: tuple) -> tuple:
        assert answer[0] == nvrtc.nvrtcResult.NVRTC_SUCCESS, answer
        return answer[1:]

    try:
        (program,) = checked(
            nvrtc.nvrtcCreateProgram(source_text(source, options).encode(), source.encode(), 0, [], [])
        )
    except RuntimeError as error:
        pytest.skip(f"the NVRTC library is not installed (extra 'test'): {error}")
    flags = [option.encode() for option in COMPILE_OPTIONS] + [f"--gpu-architecture={architecture}".encode()]
    answer = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
    (size,) = checked(nvrtc.nvrtcGetProgramLogSize(program))
    # NVRTC writes into it: not into b" ", of which Python has one for everybody.
    log = bytes(size + 1)
    checked(nvrtc.nvrtcGetProgramLog(program, log))
    assert answer[0] == nvrtc.nvrtcResult.NVRTC_SUCCESS, log.decode()
    assert b"warning" not in log, log.decode()
    (size,) = checked(nvrtc.nvrtcGetCUBINSize(program))
    assert size > 0
    checked(nvrtc.nvrtcDestroyProgram(program))


def test_launch_arithmetic() -> None:
    assert [blocks_for(n, 128) for n in (0, 1, 128, 129)] == [1, 1, 1, 2]
    with pytest.raises(ValueError, match="a launch has at most"):
        blocks_for(32 * (GRID_LIMIT + 1), 32)
    assert [index_bits(n) for n in (0, 2**31 - 1, 2**31)] == [32, 32, 64]
    assert index_bits(5, wide=True) == 64
    # The last turn of a loop over a grid goes beyond the end.
    assert [loop_bits(n, 1 << 16, 256) for n in (5, 2**31 - 2**24 - 1, 2**31 - 2**24)] == [32, 32, 64]
    assert macros(B=2, A=1) == (("A", 1), ("B", 2))


def test_loading_is_told_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Module:
        def __init__(self, source: str) -> None:
            now[0] += 2.0
            self.source = source

        def get_function(self, name: str) -> str:
            return f"{name} of {self.source}"

    now = [10.0]
    monkeypatch.setattr("gpu_kernels.runtime._loader.time.perf_counter", lambda: now[0])
    monkeypatch.setattr(
        "gpu_kernels.runtime._loader._raw_module", lambda device, source, options: Module(source)
    )
    before = seconds_loading()
    with caplog.at_level(logging.INFO, "gpu_kernels"):
        kernel = raw_kernel.__wrapped__(0, "tiles.cu", "step_tiles", ())
    assert kernel == "step_tiles of tiles.cu"
    assert seconds_loading() - before == 2.0
    assert caplog.messages == ["loading tiles.cu"]
