"""Learning a dictionary: sparse coding and dictionary update in turn, Algorithm 1 of the paper.

`learn.py` is what users call, `loop.py` one run of the outer loop, `minibatch.py` learning from a stream; the
other files hold what a run begins with, does between two iterations, reports and stores.
"""
