"""The partition of the signals and the tree of sums: the same for every engine."""

import numpy as np
import pytest

from manifold_dl.engines.protocol import LARGEST_BLOCK, MULTIPLE, SMALLEST_BLOCK, TreeSum, add, partition


@pytest.mark.parametrize("n", [0, 1, 1023, 2048, 2049, 16_384, 16_385, 65_000, 65_537, 1_000_000])
def test_blocks_cover_the_signals_once_in_multiples_of_1024(n):
    blocks = partition(n)
    sizes = [block.stop - block.start for block in blocks]
    assert sum(sizes) == n and all(size > 0 for size in sizes)
    assert [block.start for block in blocks] == list(np.cumsum([0, *sizes])[: len(sizes)])
    assert all(size == sizes[0] and size % MULTIPLE == 0 for size in sizes[:-1])
    assert all(size <= LARGEST_BLOCK for size in sizes)
    assert len(blocks) <= 1 or sizes[0] >= SMALLEST_BLOCK


class Term:
    """A number that records how it was added up."""

    def __init__(self, text):
        self.text = text

    def __add__(self, other):
        return Term(f"({self.text}{other.text})")


@pytest.mark.parametrize(
    "n, tree",
    [(1, "a"), (2, "(ab)"), (3, "((ab)c)"), (5, "(((ab)(cd))e)"), (7, "(((ab)(cd))((ef)g))")],
)
def test_sums_go_over_a_fixed_pairwise_tree(n, tree):
    total = TreeSum()
    for letter in "abcdefg"[:n]:
        total.add(Term(letter))
    assert total.result().text == tree


def test_a_subtree_on_another_machine_is_a_node_of_the_same_tree():
    # A worker that holds the blocks 4 to 7 of 8 returns their sum, which is added as one node.
    leaves = np.random.default_rng(0).standard_normal(8)
    whole, right = TreeSum(), TreeSum()
    for leaf in leaves:
        whole.add(leaf)
    for leaf in leaves[4:]:
        right.add(leaf)
    left = TreeSum()
    for leaf in leaves[:4]:
        left.add(leaf)
    assert add(left.result(), right.result()) == whole.result()


def test_arrays_and_tuples_are_added_entry_by_entry():
    left, right = (np.ones(2), 1.0, None), (np.arange(2.0), 2, None)
    total = add(left, right)
    np.testing.assert_array_equal(total[0], [1.0, 2.0])
    assert total[1:] == (3.0, None)
    assert TreeSum().result() is None
