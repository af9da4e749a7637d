"""THE ONE FILE OF THE PACKAGE THAT USES PRIVATE NAMES OF NUMBA.

An array in compiled code is a structure whose members `meminfo` and `parent` name its owner. Numba has no
public way to use an array without counting its owner's users, and that takes as long as the arithmetic of a
pursuit (OMP at 64×256: 2.4 times the speed of SPAMS with it, 3 times without). `borrowed` leaves the members
empty; `coding/pursuit_memory.py` calls it.
"""

from typing import Any

from manifold_dl.kernels.backend import NUMBA_INSTALLED

__all__ = ["borrowed"]


def borrowed(array: Any) -> Any:
    """The same array, whose owner the caller keeps: compiled code does not count it as used.

    Counting takes 5 ns, up and down, for every array and every branch that uses it: in a pursuit it took as
    long as the arithmetic. Only for arrays that are arguments of a kernel, since these outlive it.
    """
    return array


def _let_numba_borrow_arrays() -> None:
    from numba.core import cgutils
    from numba.extending import intrinsic, overload

    def type_and_code(typing_context: Any, array: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            structure = context.make_array(signature.args[0])(context, builder, arguments[0])
            for owner in ("meminfo", "parent"):
                null = cgutils.get_null_value(getattr(structure, owner).type)
                setattr(structure, owner, null)
            return structure._getvalue()

        return array(array), generate

    without_owner: Any = intrinsic(type_and_code)

    @overload(borrowed)
    def compiled_borrowed(array):  # type: ignore[no-untyped-def]  # Numba compares it with the lambda
        return lambda array: without_owner(array)


if NUMBA_INSTALLED:
    _let_numba_borrow_arrays()
