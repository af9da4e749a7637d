"""SPORCO: ℓ₁ dictionary learning by ADMM; ten of its iterations count as a pass."""

import numpy as np
from sporco.dictlrn import bpdndl

DISTRIBUTION = "sporco"


def learn(problem, penalty=0.2):
    options = bpdndl.BPDNDictLearn.Options({"Verbose": False, "MaxMainIter": 10 * problem.passes})
    return bpdndl.BPDNDictLearn(problem.start.copy(), problem.signals, penalty, options).solve()


def typical(problem):
    return learn(problem, float(np.sqrt(np.mean(problem.signals[:, :5_000] ** 2))))


RECOVERY = {"SPORCO, ℓ₁": learn}
PATCHES = {"SPORCO, ℓ₁": typical}
