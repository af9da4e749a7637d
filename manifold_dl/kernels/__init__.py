"""Arithmetic: arrays in, arrays out, and nothing of Pymanopt or SciPy.

`reduced` holds the objective whose codes follow the dictionary, `coding` the sparse coders. Each has a
`reference.py` in plain NumPy, as one would write it on a board, and the same functions compiled with Numba;
`backend` decides which are used, and holds the decorators that compile.
"""
