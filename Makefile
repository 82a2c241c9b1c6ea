# `make help` lists the targets; `make demo` is the first to try.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# The first interpreter that runs, is 3.11 to 3.13 (dd has CUDD wheels for these) and can make environments.
# Being on PATH is not enough: version managers leave shims there for versions that are not active.
CANDIDATES := python3.12 python3.11 python3.13 python3 python
PROBE := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))

.PHONY: help venv demo quick test versions seeds nightly attack mutants test-gpu sanitize-gpu lint docs site dist lock bench clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

venv: $(STAMP) ## .venv with everything that the tests need

$(STAMP): pyproject.toml
	@set -e; chosen=$(BIN)/python; \
	if ! $$chosen -c '$(PROBE)' >/dev/null 2>&1; then \
	  chosen=; \
	  for candidate in $(CANDIDATES); do \
	    if $$candidate -c '$(PROBE)' >/dev/null 2>&1; then chosen=$$candidate; break; fi; \
	  done; \
	  if [ -z "$$chosen" ]; then \
	    echo "make: no working Python 3.11, 3.12 or 3.13 with the venv module found (tried: $(CANDIDATES));" \
	         "install one and put it on PATH" >&2; exit 1; \
	  fi; \
	  echo "making $(VENV) with $$chosen"; \
	  "$$chosen" -m venv --clear $(VENV); \
	fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,plot]'
	@touch $@

demo: venv ## levels and answers of a production line
	$(BIN)/hybrid levels examples/kanban.prism --const t=3
	$(BIN)/hybrid check examples/kanban.prism examples/kanban.props --const t=3

# On all cores (WORKERS=0: in one process). A run repeats: the seed is fixed, and so is the order of sets of texts.
# Bytecode is kept, whatever the shell says: without it each of the many processes compiles all modules again.
# Processor seconds of files and tests are kept; the slowest are shown beside those of the run before.
WORKERS ?= auto
DURATIONS ?= build/durations.json
PYTEST = PYTHONDONTWRITEBYTECODE= PYTHONHASHSEED=$${PYTHONHASHSEED:-0} $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
test: venv ## all tests; warnings are errors
	$(PYTEST) --durations-to=$(DURATIONS)

# What breaks first, in less than a minute: contracts, analysis, checking, the command line's first lines.
# LATER: words in names of tests and of their files that come with `make test`.
FIRST := tests/contracts/test_matrix.py tests/contracts/test_paths.py $(wildcard tests/hybrid/analysis/test_*.py) \
  $(wildcard tests/hybrid/checking/test_*.py) tests/hybrid/app/cli/test_commands.py tests/test_layers.py
LATER := device parts disk multi listed lemmas brute cosafe uncertain test_transient test_row_sums test_chosen \
  test_operators test_hard_cases test_interrupted test_representations test_methods test_spent
quick: venv ## contracts, analysis, checking: less than a minute
	$(PYTEST) -q -x -m 'not slow and not gpu' -k '$(LATER:%=not % and) not random' $(FIRST)

# Some tests on the other versions of Python that are here, each in an environment of its own; dd has no CUDD for 3.14.
# A target for each: `make -j3 versions lint docs` installs for one while another's tests run.
VERSIONS ?= 3.11 3.12 3.13 3.14
SOME := tests/test_distribution.py tests/test_neighbour.py tests/mtbdd/language tests/hybrid/app/cli/test_commands.py
versions: $(VERSIONS:%=version-%) ## some tests on the other versions of Python that are here
version-%: venv
	@if [ "$*" = "$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')" ]; then exit 0; fi; \
	chosen=; \
	for candidate in "python$*" "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/"$*".*/bin/python; do \
	  if "$$candidate" -c "import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != '$*')" \
	    >/dev/null 2>&1; then chosen=$$candidate; break; fi; \
	done; \
	if [ -z "$$chosen" ]; then echo "make: Python $* is not here; its tests are left out"; exit 0; fi; \
	echo "tests on Python $*"; own=build/python-$*; \
	if [ ! "$$own/.installed" -nt pyproject.toml ]; then \
	  "$$chosen" -m venv --clear "$$own" || exit; \
	  "$$own/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[test]' || exit; \
	  touch "$$own/.installed"; \
	fi; \
	PYTHONDONTWRITEBYTECODE= PYTHONHASHSEED=$${PYTHONHASHSEED:-0} "$$own/bin/python" -m pytest -n $(WORKERS) \
	  --dist worksteal -q -m 'not slow and not gpu' $(SOME)

# Where the targets from here on append what they ran and what came of it; docs/reliability.md is rendered from it.
RECORDS ?= benchmarks/results

# The tests that draw random numbers, with twenty other seeds, or with those of SEEDS.
SEEDS ?= 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20
seeds: venv ## random tests with twenty other seeds
	status=0; for seed in $(SEEDS); do \
	  HYBRID_TEST_SEED=$$seed PYTHONHASHSEED=$$seed $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q \
	    --seeded -m 'not gpu' --record-to=$(RECORDS)/seeds.json || status=1; \
	done; exit $$status

# The tests that draw random numbers explore afresh: a seed of their own, which the header names, and ten times the
# examples; half an hour or so. What fails is kept in .hypothesis and tried first the next time.
nightly: venv ## random tests with a fresh seed and ten times the examples
	HYBRID_TEST_SEED=$${HYBRID_TEST_SEED:-random} $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal \
	  --hypothesis-profile=nightly --seeded -m 'not gpu'

# One-line mutations, each of which some test has to notice; see tests/mutants. MUTANTS="--only 'cpu-*'" takes some.
mutants: venv ## one-line mutations, each of which a test must notice
	$(BIN)/python -m tests.mutants.run --jobs 2 --record $(RECORDS)/mutants.json $(MUTANTS)

# Only the tests that need a device; they fail instead of being left out where there is none. CuPy is installed
# first if it is missing: it takes 2 GB and a driver for CUDA 13, so that `make venv` leaves it out.
test-gpu: venv ## the tests that need a device
	@$(BIN)/python -c 'import cupy' >/dev/null 2>&1 \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[gpu]'
	HYBRID_REQUIRE_GPU=1 $(BIN)/python -m pytest -m gpu --record-to=$(RECORDS)/device_lane.json

# The first case of every test that needs a device, under the checkers of CUDA's toolkit: about fifty times slower.
# SANITIZE='--tool memcheck tests/gpu_kernels' takes some.
sanitize-gpu: venv ## the same under the checkers of CUDA's toolkit
	$(BIN)/python -m tests.sanitizers --record $(RECORDS)/sanitizers.json $(SANITIZE)

# Random models against exact rational answers, many more than `make test` has: an hour or so on two cores.
# ATTACK takes options, such as ATTACK='--cases 2000 --seed 5 --backend gpu'.
attack: venv ## random models against exact rational answers
	$(BIN)/python -m tests.attack --processes 2 --record $(RECORDS)/attack.json $(ATTACK)

lint: venv ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in build/docs/index.html; a warning is an error. Sphinx is installed first if it is missing.
WITH_SPHINX = $(BIN)/python -c 'import furo, myst_nb, numpydoc, sphinx' >/dev/null 2>&1 \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
docs: venv ## the site, in build/docs
	@$(WITH_SPHINX)
	$(BIN)/python -m sphinx -q -W --keep-going -j auto docs build/docs

# The site in a folder of its version beside those of other versions, with a front page that lists them (docs/release.md).
SITE ?= build/site
site: venv ## the site in SITE/VERSION, listed beside those of other versions
	@$(WITH_SPHINX)
	$(BIN)/python docs/versions.py $(SITE)

# Wheel and sdist, in dist; hatchling comes with the tests' needs. docs/release.md says what goes before and after.
dist: venv ## wheel and sdist, in dist
	rm -rf dist
	$(BIN)/python -m hatchling build
	@! grep -q '\.invalid/' pyproject.toml || echo "placeholders stand in [project.urls]: fill them before a release"

# Versions and hashes of all needs, for `uv sync --group dev`; read anew from the index, which needs a network.
lock: venv ## uv.lock anew, after a change of needs in pyproject.toml
	@$(BIN)/python -c 'import uv' >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/python -m uv lock $(LOCK)

bench: venv ## products on the CPU, measured
	$(BIN)/python -m benchmarks.programs.cpu_iteration

clean: ## takes away what was built
	rm -rf $(VENV) build docs/api/generated dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
