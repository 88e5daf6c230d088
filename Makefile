# Each target does all its own set-up: Python 3.11 or newer and make are enough.
PYTHON ?= python3
BIN := .venv/bin
RUN := .venv/.run
DEV := .venv/.dev

.PHONY: run test prove lint bench clean

run: $(RUN)
	$(BIN)/trunkline run

test: $(DEV)
	$(BIN)/python -m pytest -n 2 $(ARGS)

prove: $(DEV)
	$(BIN)/python -m pytest -n 2 --prove $(ARGS)

lint: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(DEV)
	$(BIN)/python -m bench

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Trunkline needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv

$(RUN): .venv/bin/python pyproject.toml .constraints.txt
	PIP_CONSTRAINT=.constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[slack,telegram]'
	@touch $@

$(DEV): .venv/bin/python pyproject.toml .constraints.txt
	PIP_CONSTRAINT=.constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[slack,telegram,postgres,mcp,dev]'
	@touch $@
