"""The catalogue of bad and odd input (`make catalogue`): nothing silent, no crash, no needless refusal."""

import pytest
from catalogue import KINDS, READS, outcome


@pytest.mark.parametrize("kind", KINDS)
def test_refused_with_a_sentence_or_a_right_answer(kind):
    verdicts = {entry: outcome(kind, entry) for entry in READS}
    wrong = {entry: found for entry, found in verdicts.items() if found[0] not in ("ok", "-")}
    assert not wrong


def test_the_catalogue_is_as_large_as_stated():
    assert len(KINDS) >= 80 and len(READS) == 9
