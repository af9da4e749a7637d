"""How a kernel reports what it could compute: one word per case, the same in all kernels.

Numba compiles whole numbers without a cost, so the statuses are constants and not an `enum`.
"""

OK = 0
RANK_DEFICIENT = 1  # the atoms of a support are linearly dependent, to rounding
NOT_FINITE = 2  # a result is infinite or NaN
NOT_OPTIMAL = 3  # rounding keeps the codes away from the minimum
NOT_UNIQUE = 4  # no leading singular vector is clear: two singular values agree, to rounding
