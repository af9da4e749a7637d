"""Shared switches: the long statistical tests run only with --slow."""

import pytest


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the long statistical tests too")
    parser.addoption("--swaps", type=int, default=300, help="how many random combinations of parts to try")
    parser.addoption("--fuzz", type=int, default=200, help="how many examples Hypothesis tries")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--slow"):
        return
    skip = pytest.mark.skip(reason="long statistical test: run with --slow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)
