"""The folder with compiled kernels: other users cannot put code there, and a full disk stops nothing."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import manifold_dl
from manifold_dl.kernels import cache

PACKAGE = Path(manifold_dl.__file__).parent
posix = pytest.mark.skipif(not hasattr(os, "getuid"), reason="users and permissions as on POSIX")


@pytest.fixture(autouse=True)
def new_process(monkeypatch):
    """No warning has been given yet, and the sources are writable by their owner alone."""
    monkeypatch.setattr(cache, "_given", [])
    monkeypatch.setattr(cache, "SOURCES", Path("/"))


def belongs_to_another_user(path, monkeypatch):
    if os.getuid() == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)


@posix
def test_a_folder_of_another_user_is_not_used(tmp_path, monkeypatch):
    belongs_to_another_user(tmp_path, monkeypatch)
    with pytest.warns(RuntimeWarning, match="can be written by others and is not used.*NUMBA_CACHE_DIR"):
        assert not cache.is_safe(tmp_path)


@posix
def test_a_folder_of_ones_own_loses_the_write_permission_of_others(tmp_path):
    tmp_path.chmod(0o777)
    assert cache.is_safe(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o755


@posix
def test_write_permissions_of_the_sources_may_be_those_of_the_folder(tmp_path, monkeypatch):
    # Who may edit the sources of a shared installation needs no machine code to run their own.
    sources = tmp_path / "sources"
    sources.mkdir()
    sources.chmod(0o775)
    monkeypatch.setattr(cache, "SOURCES", sources)
    folder = sources / "__pycache__"
    folder.mkdir()
    folder.chmod(0o775)
    assert cache.is_safe(folder)
    assert folder.stat().st_mode & 0o777 == 0o775


@posix
@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files to others")
def test_machine_code_of_other_users_is_removed(tmp_path):
    for name in ("a.nbi", "a.1.nbc", "b.nbi", "notes.txt"):
        (tmp_path / name).touch()
        if name != "b.nbi":
            os.chown(tmp_path / name, 12345, -1)
    assert cache.is_safe(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["b.nbi", "notes.txt"]


def test_a_folder_that_is_not_there_yet_is_safe(tmp_path):
    assert cache.is_safe(tmp_path / "new")


def run(code, **environment):
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), **environment}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


SMALL_KERNEL = """
import numpy as np
from manifold_dl.kernels import reduced
print(reduced.dot(np.arange(3.0), np.arange(3.0)))
"""
NO_SPACE = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))  # writing ends as on a full disk
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit for the size of files")
def test_with_a_full_disk_kernels_are_compiled_in_memory_and_one_warning_says_so(tmp_path):
    process = run(NO_SPACE + SMALL_KERNEL, NUMBA_CACHE_DIR=str(tmp_path))
    assert process.returncode == 0, process.stderr
    assert process.stdout == "5.0\n"
    assert process.stderr.count("RuntimeWarning: manifold_dl: compiled kernels cannot be stored in") == 1
    assert "Set NUMBA_CACHE_DIR" in process.stderr
    again = run(SMALL_KERNEL, NUMBA_CACHE_DIR=str(tmp_path))  # there is space again
    assert again.stdout == "5.0\n" and "Warning" not in again.stderr
    third = run(SMALL_KERNEL, NUMBA_CACHE_DIR=str(tmp_path))
    assert third.stdout == "5.0\n" and third.stderr == ""


class Dispatcher:
    """As Numba's, with a cache whose files are damaged."""

    py_func = staticmethod(belongs_to_another_user)

    def __init__(self, folder, fault):
        self.stats = type("Statistics", (), {"cache_path": str(folder)})
        self.file, self.fault = folder / "test_cache.belongs_to_another_user-29.py311.nbi", fault
        self.file.touch()

    def compile(self, signature):
        if self.file.exists():
            raise self.fault
        return "compiled"


@pytest.mark.parametrize("fault", [EOFError(), cache.pickle.UnpicklingError(), PermissionError(13, "denied")])
def test_files_that_cannot_be_read_are_removed(tmp_path, fault):
    (tmp_path / "other.nbi").touch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cache.storing(Dispatcher(tmp_path, fault)).compile("signature") == "compiled"
    assert os.listdir(tmp_path) == ["other.nbi"]
