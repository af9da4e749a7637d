# Everything sets itself up: the first target that needs it makes .venv and installs the package into it.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow format clean
.DEFAULT_GOAL := demo

demo: .venv/installed  ## denoise a picture in five ways: a table, and a picture to look at
	$(BIN)/manifold-dl demo

test: .venv/installed-test  ## what continuous integration runs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m pytest

test-slow: .venv/installed-test  ## the long statistical tests too
	$(BIN)/python -m pytest --slow

format: .venv/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml
	@echo "Installing manifold_dl into .venv (once, about a minute) ..."
	$(BIN)/python -m pip install --quiet -e ".[images]"
	@touch $@

.venv/installed-test: .venv/bin/python pyproject.toml
	@echo "Installing manifold_dl and its test tools into .venv (once, about a minute) ..."
	$(BIN)/python -m pip install --quiet -e ".[test]"
	@touch $@
