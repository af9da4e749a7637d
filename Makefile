# Everything sets itself up: the first target that needs it makes .venv and installs the package into it.

PYTHON ?= python3
BIN := .venv/bin
LOWEST := .venv-lowest/bin

.PHONY: demo lab tutorial docs lab-screenshots lint test test-browser browser test-slow test-swaps test-lowest catalogue fuzz soak benchmarks format clean help
.DEFAULT_GOAL := demo

demo: .venv/installed  ## denoise a picture in five ways: a table, and a picture to look at
	$(BIN)/manifold-dl demo

lab: .venv/installed-lab  ## swap solvers, manifolds and regularizers in the browser
	$(BIN)/manifold-dl lab

N ?= 01
tutorial: .venv/installed  ## run a tutorial (N=02 for the second) and write its pictures into pictures/
	MPLBACKEND=module://manifold_dl.plotting.files $(BIN)/python tutorials/$(N)_*.py

docs: .venv/installed-docs  ## these pages with tutorials and pictures, built offline
	$(BIN)/python -m sphinx -W --keep-going -j 2 docs docs/_build/html
	@echo "Open docs/_build/html/index.html in a browser."

lab-screenshots: .venv/installed-test browser  ## draw the pictures of docs/lab.md anew
	$(BIN)/python docs/lab_screenshots.py

lint: .venv/installed-test  ## style, layers, types and docstrings, without running anything
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_docstrings.py

test: lint  ## what continuous integration runs: lint, then all tests but the long ones
	$(BIN)/python -m pytest -n auto --dist loadfile --ignore tests/test_docstrings.py --ignore-glob 'tests/lab/test_browser*.py'

test-browser: .venv/installed-test browser  ## the lab in a real browser, about a minute
	$(BIN)/python -m pytest tests/lab/test_browser*.py

# Needs Debian's packages, and the rights to install them where they are missing.
browser:
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium chromium-driver; \
	else echo "Chromium is missing. Install it: sudo apt-get install chromium chromium-driver" >&2; exit 1; fi

# Every test has a limit (pyproject.toml), which some of the long ones exceed.
NO_LIMIT := -o faulthandler_timeout=0
test-slow: .venv/installed-test  ## the long statistical tests too
	$(BIN)/python -m pytest --slow -n auto --dist loadfile $(NO_LIMIT)

SWAPS ?= 3000
test-swaps: .venv/installed-test  ## 3,000 random combinations of parts, each compared with another answer (test has 300)
	$(BIN)/python -m pytest -n auto tests/test_swaps.py --swaps $(SWAPS) $(NO_LIMIT)

catalogue: .venv/installed-test  ## 139 kinds of bad and odd input through nine functions, as a table
	PYTHONPATH=tests $(BIN)/python tests/catalogue.py

FUZZ ?= 3000
fuzz: .venv/installed-test  ## random shapes, types, parts and parameters, 3,000 examples (test has 200)
	$(BIN)/python -m pytest -n auto tests/test_fuzz.py --fuzz $(FUZZ) $(NO_LIMIT)

soak: .venv/installed-test  ## 500 fits and 3,000 iterations: neither memory nor threads may grow (minutes)
	$(BIN)/python -m pytest --slow tests/test_soak.py $(NO_LIMIT)

LOWEST_TESTS := $(addprefix tests/, test_import.py metrics schedules estimator coders learning \
	line_search manifolds optimizers problem regularizers updates)
# Old packages with today's versions of their own dependencies: what those deprecate is not ours to fix. The test
# runner of the old Click does not separate the two outputs, which tests of the command line read.
test-lowest: .venv-lowest/installed  ## the core with the lowest versions that pyproject.toml allows
	$(LOWEST)/python -m pytest -n auto --dist loadfile -W ignore::DeprecationWarning -k "not command_line" $(LOWEST_TESTS)
	$(LOWEST)/manifold-dl info
	$(LOWEST)/manifold-dl demo --size 64 --force --out .venv-lowest/demo.png

BASE ?= HEAD~1
benchmarks: .venv/installed  ## CPU seconds of first calls, and times of this tree relative to BASE (a commit)
	$(BIN)/python benchmarks/cold_start.py
	$(BIN)/python benchmarks/compare_commits.py $(BASE)

format: .venv/installed-test  ## let ruff rewrite the files
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove environments, caches and everything that was built
	rm -rf .venv .venv-lowest build dist .pytest_cache .ruff_cache .mypy_cache .import_linter_cache
	rm -rf docs/_build docs/tutorials docs/api/generated

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*##/\1:/'

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml
	@echo "Installing manifold_dl into .venv (once, about a minute) ..."
	$(BIN)/python -m pip install --quiet -e ".[images]"
	@touch $@

.venv/installed-lab: .venv/bin/python pyproject.toml
	@echo "Installing manifold_dl and marimo into .venv (once, about a minute) ..."
	$(BIN)/python -m pip install --quiet -e ".[lab]"
	@touch $@

.venv/installed-test: .venv/bin/python pyproject.toml
	@echo "Installing manifold_dl and its test tools into .venv (once, about a minute) ..."
	$(BIN)/python -m pip install --quiet -e ".[test]"
	@touch $@

.venv/installed-docs: .venv/bin/python pyproject.toml
	@echo "Installing manifold_dl and Sphinx into .venv (once, about a minute) ..."
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	@touch $@

.venv-lowest/installed: pyproject.toml tests/lowest_versions.py
	@echo "Installing manifold_dl with its lowest versions into .venv-lowest (once, about a minute) ..."
	$(PYTHON) -m venv .venv-lowest
	$(LOWEST)/python tests/lowest_versions.py > .venv-lowest/constraints.txt
	$(LOWEST)/python -m pip install --quiet -c .venv-lowest/constraints.txt -e ".[images]" pytest pytest-xdist
	@touch $@
