# Everything starts here: each target makes the virtual environment it needs. `make demo` is the first to try.

PYTHON ?= python3
VENV ?= .venv
TESTS ?= tests
BIN := $(VENV)/bin
RUN := $(BIN)/python -X dev -W error
INSTALLED := $(VENV)/.installed

.PHONY: demo test check lint soak bench docs clean
.DEFAULT_GOAL := demo

# Made anew only when pyproject.toml has changed.
$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Workmill needs Python 3.11 or newer; try: make PYTHON=python3.13")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'
	@touch $@

demo: $(INSTALLED) ## real jobs run, fail, retry, wait, die and are revived, in this terminal
	$(BIN)/workmill demo $(ARGS)

test: $(INSTALLED) ## the test suite; small, named counts (TESTS=tests/domain for a part, WORKMILL_SEED=N for a replay)
	$(RUN) -m pytest $(TESTS) $(ARGS)

check: lint ## what a linter can say, and what only this project can: layout, documents
	$(RUN) -m pytest --quiet tests/test_layout.py tests/test_docs.py

lint: $(INSTALLED) ## format, lint, types, imports
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

soak: $(INSTALLED) ## the same tests in their long forms: 10,000 rounds, 1,000 kills, 10 idle minutes
	WORKMILL_SOAK=1 $(RUN) -m pytest -o faulthandler_timeout=0 $(TESTS) $(ARGS)

bench: $(INSTALLED) ## measure this machine into results/, then write docs/performance.md from it
	$(BIN)/python scripts/measure.py $(ARGS)
	$(BIN)/python scripts/performance.py

docs: $(INSTALLED) ## write the generated pages anew; docs/verification.md by a run of every test it names
	$(BIN)/python scripts/states_diagram.py
	$(BIN)/python scripts/cli_reference.py
	$(BIN)/python scripts/performance.py
	$(BIN)/python scripts/verification.py

clean: ## remove what the other targets made
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
