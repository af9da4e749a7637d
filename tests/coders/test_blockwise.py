"""The pass of a coder over the signals as a function of one block, and the protocol of a coder."""

import pickle

import numpy as np
import pytest
from coding_problems import problem
from scipy.sparse import csc_array

from manifold_dl.coders import FOCUSS, IHT, OMP, BasisPursuit, Lasso, MatchingPursuit
from manifold_dl.coders.blockwise import CoderBlock, Coding, encode_block
from manifold_dl.coders.pursuit import tolerance_in_units
from manifold_dl.engines.protocol import SMALLEST_BLOCK
from manifold_dl.kernels import coding


def test_block_function_can_be_sent_to_another_process():
    D, _, Y = problem(12, 30, 40, 3, noise=0.1)
    call = Coding(coding.omp, coding.PursuitSettings(3, 0.1), tolerance_in_units)
    dictionary = coding.prepare(np.ascontiguousarray(D.T))
    sent = pickle.loads(pickle.dumps((encode_block, CoderBlock(Y.T, None), dictionary, None, call)))
    function, *arguments = sent
    _, (counts, indices, values) = function(*arguments)
    found = csc_array((values, indices, np.concatenate([[0], np.cumsum(counts)])), shape=(30, 40))
    np.testing.assert_array_equal(found.toarray(), OMP(sparsity=3, tol=0.1).encode(Y, D).toarray())


@pytest.mark.parametrize("coder", [OMP(3), MatchingPursuit(3), IHT(3), Lasso(0.1), BasisPursuit(), FOCUSS()])
@pytest.mark.parametrize("scales", [(1.0,), (1e-170, 1.0, 1e170)], ids=["ordinary", "of three sizes"])
def test_codes_of_a_signal_do_not_depend_on_the_block_it_is_in(coder, scales):
    # A power of two changes no digit; the largest absolute penalty that matters is that of size 1.
    D, _, Y = problem(8, 12, SMALLEST_BLOCK + 20, 2, noise=0.1)
    Y *= np.resize([2.0 ** round(np.log2(scale)) for scale in scales], Y.shape[1])
    together, apart = coder.encode(Y, D), coder.encode(Y[:, SMALLEST_BLOCK:], D)
    np.testing.assert_array_equal(together[:, SMALLEST_BLOCK:].toarray(), apart.toarray())


def test_lasso_starts_every_block_from_the_codes_of_its_own_signals():
    D, _, Y = problem(8, 12, SMALLEST_BLOCK + 20, 2, noise=0.1)
    Y[:, 1::2] *= 2.0**600  # signals of two sizes are coded in two groups
    coder = Lasso(alpha=0.3, relative=True)
    codes = coder.encode(Y, D)
    again = coder.encode(Y, D, codes=codes)
    # Codes that are already optimal keep their support, and are solved for once more: rounding.
    np.testing.assert_array_equal(again.indices, codes.indices)
    np.testing.assert_allclose(again.data, codes.data, rtol=1e-9)
