# Everything sets itself up: the first target that needs it makes .venv and installs the package into it.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo tutorial docs test test-slow test-swaps format clean
.DEFAULT_GOAL := demo

demo: .venv/installed  ## denoise a picture in five ways: a table, and a picture to look at
	$(BIN)/manifold-dl demo

N ?= 01
tutorial: .venv/installed  ## run a tutorial (N=02 for the second) and write its pictures into pictures/
	MPLBACKEND=module://manifold_dl.plotting.files $(BIN)/python tutorials/$(N)_*.py

test: .venv/installed-test  ## what continuous integration runs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n auto --dist loadfile

test-slow: .venv/installed-test  ## the long statistical tests too
	$(BIN)/python -m pytest --slow -n auto --dist loadfile

SWAPS ?= 3000
test-swaps: .venv/installed-test  ## 3,000 random combinations of parts, each compared with another answer (test has 300)
	$(BIN)/python -m pytest -n auto tests/test_swaps.py --swaps $(SWAPS)

docs: .venv/installed-docs  ## these pages with tutorials and pictures, built offline
	$(BIN)/python -m sphinx -W --keep-going -j 2 docs docs/_build/html
	@echo "Open docs/_build/html/index.html in a browser."

format: .venv/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache docs/_build docs/tutorials docs/api/generated

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

.venv/installed-docs: .venv/bin/python pyproject.toml
	@echo "Installing manifold_dl and Sphinx into .venv (once, about a minute) ..."
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	@touch $@
