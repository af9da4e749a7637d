"""Every line of the page of promises names tests that exist."""

import re
from pathlib import Path

from catalogue import KINDS, READS, outcome

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")


def test_every_promise_names_a_test_that_exists():
    rows = [line for line in PAGE.splitlines() if "`tests/" in line]
    assert len(rows) >= 18
    for row in rows:
        for path in re.findall(r"`(tests/[\w/]+\.py)`", row):
            assert "def test_" in (ROOT / path).read_text(encoding="utf-8"), path


def test_the_size_of_the_catalogue_is_as_stated():
    signals = [kind for kind in KINDS if KINDS[kind][0] == "signals"]
    runs = sum(KINDS[kind][0] in reads for kind in KINDS for _, reads in READS.values())
    assert f"{len(KINDS)} kinds through nine functions, {runs} runs" in PAGE
    assert f"The {len(signals)} kinds of bad and odd *signals*" in PAGE
    assert outcome("one NaN", "fit")[0] == "ok"
