"""Shared fixtures: backends, seeded random numbers, and the rules for tests that need a device."""

from __future__ import annotations

import gc
import os
import re
import secrets
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path

# Tests share the cores, and threads of BLAS that wait for one another there only burn time. It is read when
# NumPy is imported, which is below.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis
import numpy as np
import pytest
from hypothesis.database import DirectoryBasedExampleDatabase

import gpu_kernels
from gpu_kernels.runtime import warm_up
from mtbdd.diagrams.manager import VARIABLE
from tests.builders.diagram_packages import HAS_CUDD
from tests.exploring import is_seeded, multiply_examples, shorten_examples
from tests.gpu_kernels.devices import device

__all__ = ["device"]

# Plots are drawn without a display, whatever the machine's settings say.
os.environ["MPLBACKEND"] = "Agg"

# Where dd has no CUDD this is meant: commands have nothing to warn of.
if not HAS_CUDD:
    os.environ.setdefault(VARIABLE, "autoref")

# Compilation and a shared machine make single examples slow: no deadline, and a blob to replay a failure.
# Every run draws the same: the seed below, no kept examples, no other defaults where a variable `CI` is set.
hypothesis.settings.register_profile(
    "project",
    parent=hypothesis.settings.get_profile("default"),
    deadline=None,
    print_blob=True,
    derandomize=False,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
# `make nightly` explores: ten times the examples of every test; failures are kept, then tried first.
_NIGHTLY_EXAMPLES = 10
hypothesis.settings.register_profile(
    "nightly",
    parent=hypothesis.settings.get_profile("project"),
    database=DirectoryBasedExampleDatabase(Path(__file__).parents[1] / ".hypothesis" / "examples"),
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.load_profile("project")

# One number seeds every random test, those of Hypothesis too, so that runs repeat. HYBRID_TEST_SEED gives
# another one, or "random" to draw one. Workers of pytest-xdist get it from the process that starts them.
_DEFAULT_SEED = 20261
_given = os.environ.get("HYBRID_TEST_SEED") or str(_DEFAULT_SEED)
if _given == "random":
    _given = os.environ["HYBRID_TEST_SEED"] = str(secrets.randbelow(2**31 - 100) + 100)
_SEED = int(_given)

# `make test-gpu` sets it: without a device its tests then fail instead of being left out.
_REQUIRE_GPU = os.environ.get("HYBRID_REQUIRE_GPU") == "1"


def pytest_report_header(config: pytest.Config) -> list[str]:
    reason = gpu_kernels.unavailable_reason()
    return [
        f"seed: {_SEED} (HYBRID_TEST_SEED={_SEED} replays this run, HYBRID_TEST_SEED=random draws another)",
        "gpu: available" if reason is None else f"gpu: tests marked 'gpu' are left out: {reason}",
    ]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--first-cases",
        action="store_true",
        help="of the tests marked 'gpu', only the first case of every function (for slow tools)",
    )
    parser.addoption(
        "--seeded",
        action="store_true",
        help="only tests that draw random numbers: the others do not know the seed",
    )
    parser.addoption(
        "--record-to",
        type=Path,
        metavar="FILE",
        help="append what ran and what came of it to a record of runs, at the end",
    )
    parser.addoption(
        "--durations-to",
        type=Path,
        metavar="FILE",
        help="keep the processor seconds of tests, and show the slowest beside those of the run before",
    )


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--record-to")
    if path is not None:
        from tests.runs import RunRecorder

        config.pluginmanager.register(RunRecorder(path.absolute(), _SEED, config))
    path = config.getoption("--durations-to")
    if path is not None:
        from tests.durations import DurationRecorder

        config.pluginmanager.register(DurationRecorder(path.absolute()))


def pytest_collection() -> None:
    # Collecting makes objects that stay: no garbage to look for meanwhile, nor among them later.
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    # Tests make more objects than they drop, and Hypothesis notes every collection: few are enough.
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    explores = config.getoption("--hypothesis-profile") == "nightly"
    met: set[int] = set()
    for item in items:
        # The id chooses the random numbers of the fixture below, and workers must collect the same ids.
        if re.search(r" at 0x[0-9a-f]+>", item.nodeid):
            raise pytest.UsageError(f"{item.nodeid}: an id without an address expected; give ids=...")
        function = getattr(item, "function", None)
        if hypothesis.is_hypothesis_test(function):
            hypothesis.seed(_SEED)(function)
            # A test with parameters is one function.
            if id(function) not in met:
                met.add(id(function))
                if explores:
                    multiply_examples(function, _NIGHTLY_EXAMPLES)
                else:
                    shorten_examples(function)
    if not explores and not is_seeded():
        _keep(config, items, [item for item in items if item.get_closest_marker("nightly") is None])
    if not _REQUIRE_GPU and gpu_kernels.unavailable_reason() is not None:
        _keep(config, items, [item for item in items if item.get_closest_marker("gpu") is None])
    if config.getoption("--seeded"):
        _keep(config, items, [item for item in items if _draws(item, explores)])
    if not config.getoption("--first-cases"):
        return
    seen: set[tuple[Path, str]] = set()
    kept = []
    for item in items:
        function = (item.path, getattr(item, "originalname", item.name))
        if item.get_closest_marker("gpu") is not None and function not in seen:
            seen.add(function)
            kept.append(item)
    _keep(config, items, kept)


def _draws(item: pytest.Item, explores: bool) -> bool:
    """Return whether a test depends on the seed, or is left to nightly runs."""
    if explores and item.get_closest_marker("nightly") is not None:
        return True
    function = getattr(item, "function", None)
    fixtures = getattr(item, "fixturenames", ())
    return hypothesis.is_hypothesis_test(function) or "rng" in fixtures or "seed" in fixtures


def _keep(config: pytest.Config, items: list[pytest.Item], kept: list[pytest.Item]) -> None:
    chosen = set(map(id, kept))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
    items[:] = kept


def pytest_runtest_setup(item: pytest.Item) -> None:
    if (
        item.get_closest_marker("gpu") is not None
        and (reason := gpu_kernels.unavailable_reason()) is not None
    ):
        pytest.fail(f"HYBRID_REQUIRE_GPU=1, but: {reason}")


@pytest.fixture
def interrupts_are_heard() -> Iterator[None]:
    """Let processes hear Ctrl-C: where a shell runs the tests in the background, all below ignore it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(params=["reference", "cpu"])
def backend(request: pytest.FixtureRequest) -> str:
    """Every backend of this version, by the name that the `backend=` argument takes."""
    return str(request.param)


@pytest.fixture(scope="session")
def seed() -> int:
    """The seed of the run, for random cases that many tests share."""
    return _SEED


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator of its own for each test, so that the order of the tests does not matter."""
    return np.random.default_rng([_SEED, zlib.crc32(request.node.nodeid.encode())])


@pytest.fixture(scope="session")
def examples_folder() -> Path:
    return Path(__file__).resolve().parent.parent / "examples"


@pytest.fixture(autouse=True)
def _nothing_asked_for() -> None:
    """Let no test start processes that compile because a command has run before it in the same process."""
    warm_up._cared_for.clear()
