"""Learning a dictionary: sparse coding and dictionary update in turn, Algorithm 1 of the paper.

`learn.py` is what users call, `loop.py` one run of the outer loop, `batch_passes.py` its passes over
mini-batches, `minibatch.py` learning from a stream; the other files hold what a run begins with, does between
two iterations, reports and stores.
"""

from manifold_dl.components.registry import register
from manifold_dl.learning.batching import MiniBatches
from manifold_dl.learning.learn import learn_dictionary
from manifold_dl.learning.replacement import ReplaceAtoms

__all__ = ["learn_dictionary"]

# Everything that a stored result may name is registered by now, since the loop imports it.
register("replacement", ReplaceAtoms)
register("minibatches", MiniBatches)
