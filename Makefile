# Each target sets up its own virtual environment when there is none, or when pyproject.toml is
# newer than the last set-up. Extra arguments go through ARGS: make run ARGS="--format json".

PYTHON ?= python3
ARGS   ?=

VENV := .venv
PY   := $(VENV)/bin/python
UV   := $(shell command -v uv 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help run test lint format bench stress
.NOTPARALLEL:

# The interpreter behind .venv can vanish in an upgrade of the system; the stamps then mean nothing.
ifneq ($(shell test -x $(PY) && echo yes),yes)
.PHONY: $(VENV)/.run $(VENV)/.dev
endif

help:
	@echo "make run      print the jobs that the shipped configuration stands for"
	@echo "make test     lint, types and all tests"
	@echo "make lint     ruff and mypy alone"
	@echo "make format   let ruff lay out the code"
	@echo "make bench    measure speed and memory against the budgets"
	@echo "make stress   the tests on a real Slurm cluster, ten times over, as a table"
	@echo "ARGS=...      more arguments, PYTHON=... another interpreter (3.11 or newer)"

run: $(VENV)/.run
	@$(PY) -m matrix expand $(ARGS)

# Files of tests side by side, except where ARGS says otherwise (-n0).
test: lint
	@$(PY) -m pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

lint: $(VENV)/.dev
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

format: $(VENV)/.dev
	@$(PY) -m ruff check --fix --show-fixes .
	@$(PY) -m ruff format .

bench: $(VENV)/.run
	@$(PY) benchmarks/run.py $(ARGS)

stress: $(VENV)/.dev
	@$(PY) -m tests.slurm.stress $(ARGS)

# Two stamps, so that a first look (make run) does not wait for the test tools.
$(VENV)/.run: pyproject.toml
	@$(call install,.)
	@touch $@

$(VENV)/.dev: pyproject.toml
	@$(call install,.[dev])
	@touch $(VENV)/.run $@

# An environment that works is kept, also one made by hand. One that does not (half made, its Python
# gone, no pip in it and no uv here) is made again.
comma := ,
define install
set -eu; \
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
  echo "Python 3.11 or newer is needed, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1 | head -n 1). Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }; \
$(PY) -c 'import sys$(if $(UV),,$(comma) pip); sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
  echo "Making $(VENV) with $$($(PYTHON) --version)" >&2; \
  rm -rf $(VENV); \
  $(if $(UV),uv venv --quiet --python "$$(command -v $(PYTHON))" $(VENV),$(PYTHON) -m venv $(VENV)); }; \
echo "Installing $(1) into $(VENV)" >&2; \
$(if $(UV),uv pip install --quiet --python $(PY),$(PY) -m pip install -qq --no-input --disable-pip-version-check) --editable '$(1)'
endef
