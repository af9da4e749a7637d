"""BM3D, if it is installed: what dictionaries are usually compared with. Its licence is non-commercial."""

import bm3d

DISTRIBUTION = "bm3d"
PICTURES = {"BM3D": lambda problem: bm3d.bm3d(problem.noisy, problem.sigma)}
