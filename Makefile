# Two commands: `make cluster` runs a 3-node cluster, `make test` checks everything.
# Both set themselves up on a machine that has only make and Python 3.11 or newer.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: cluster demo churn group-churn test bench fmt

.venv: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -m compileall -q -x '[.]venv|node_modules' . # or three nodes compile it all at once
	@touch .venv

cluster: .venv
	$(BIN)/logboat cluster up

demo: .venv
	$(BIN)/python -m logboat.testing.demo

churn: .venv # ten minutes of it: make churn DURATION=600
	DURATION=$(or $(DURATION),60) $(BIN)/python -m logboat.testing.churn

group-churn: .venv # two minutes of it for each client: make group-churn DURATION=120
	LOGBOAT_CHURN_SECONDS=$(or $(DURATION),120) $(BIN)/python -m pytest -rP --show-capture=stdout \
		tests/foreign/test_group_churn.py

test: .venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2

bench: .venv
	$(BIN)/python benchmarks/run.py --write

fmt: .venv
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
