"""The number of threads of BLAS, which is fixed when a process starts, changes no bit."""

import os
import subprocess
import sys
from pathlib import Path


def bits(threads):
    environment = os.environ | {"OPENBLAS_NUM_THREADS": str(threads)}
    program = [sys.executable, str(Path(__file__).with_name("blas_bits.py"))]
    run = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def test_normal_equations_and_penalties_have_the_same_bits_for_any_number_of_threads_of_blas():
    one, two = bits(1), bits(2)
    assert len(one) == 12
    assert [a for a, b in zip(one, two, strict=True) if a != b] == []
