"""Files that are complete or absent."""

import os
import subprocess
import sys
import threading

import pytest

from manifold_dl import _files
from manifold_dl._files import atomic_file, write_atomically


def test_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "file.bin"
    with atomic_file(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.bin"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_error_leaves_the_old_file_and_no_other(tmp_path, error):
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")

    def writer(file):
        file.write(b"new")
        raise error

    with pytest.raises(error):
        write_atomically(path, writer)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.bin"]


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere to write file\.bin to"):
        write_atomically(tmp_path / "nowhere" / "file.bin", lambda file: None)


posix = pytest.mark.skipif(os.name != "posix", reason="links, pipes and permissions as on POSIX")


@posix
@pytest.mark.parametrize("exists", [True, False])
def test_symbolic_link_stays_and_the_file_it_leads_to_is_written(tmp_path, exists):
    link, target = tmp_path / "latest.bin", tmp_path / "elsewhere" / "file.bin"
    target.parent.mkdir()
    link.symlink_to(target)
    if exists:
        target.write_bytes(b"old")
    write_atomically(link, lambda file: file.write(b"new"))
    assert link.is_symlink() and target.read_bytes() == b"new"
    assert sorted(tmp_path.rglob("*")) == [target.parent, target, link]


@posix
def test_replaced_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "private.bin"
    path.touch()
    path.chmod(0o600)
    with atomic_file(path) as file:
        (unfinished,) = (entry for entry in tmp_path.iterdir() if entry != path)
        assert unfinished.stat().st_mode & 0o777 == 0o600  # nobody else can read what is written
        file.write(b"new")
    assert path.read_bytes() == b"new" and path.stat().st_mode & 0o777 == 0o600


@posix
def test_folders_and_pipes_are_not_replaced(tmp_path):
    folder, pipe = tmp_path / "folder", tmp_path / "pipe"
    folder.mkdir()
    os.mkfifo(pipe)
    with pytest.raises(IsADirectoryError, match=r"folder is a folder; name a file\."):
        write_atomically(folder, lambda file: None)
    with pytest.raises(FileExistsError, match=r"pipe is a pipe or a device, which no file takes"):
        write_atomically(pipe, lambda file: None)
    assert pipe.is_fifo() and sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "pipe"]


def test_readers_see_whole_files_while_others_are_written(tmp_path):
    path, wrong, is_over = tmp_path / "file.bin", [], threading.Event()
    write_atomically(path, lambda file: file.write(bytes(100_000)))

    def read():
        while not is_over.is_set():
            found = path.read_bytes()
            if len(found) != 100_000 or len(set(found)) > 1:
                wrong.append(found)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for k in range(100):
        write_atomically(path, lambda file, k=k: [file.write(bytes([k]) * 1000) for _ in range(100)])
    is_over.set()
    for reader in readers:
        reader.join()
    assert wrong == []


# --- Processes that were killed while writing ---------------------------------------------------------------

KILLED = """
import os, signal, sys
from manifold_dl._files import atomic_file
for _ in range(2):
    with atomic_file(sys.argv[1]) as file:
        file.write(b"new" * 1000)
        file.flush()
        if os.path.exists(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(_files.fcntl, "flock"), reason="there is no SIGKILL on Windows")
def test_leftovers_of_killed_processes_are_removed_and_those_of_living_ones_stay(tmp_path):
    path = tmp_path / "file.bin"
    process = subprocess.run([sys.executable, "-c", KILLED, str(path)])
    assert process.returncode == -9
    assert path.read_bytes() == b"new" * 1000  # of the first write, which was complete
    hidden = [entry for entry in tmp_path.iterdir() if entry != path]
    assert len(hidden) == 1
    with atomic_file(tmp_path / "other.bin") as file:
        file.write(b"x")
        assert not hidden[0].exists()
        (own,) = (entry for entry in tmp_path.iterdir() if entry != path)
        _files._remove_leftovers.cache_clear()
        write_atomically(tmp_path / "third.bin", lambda file: None)
        assert own.exists()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file.bin", "other.bin", "third.bin"]


KILLED_50_TIMES = """
import os, signal, sys
import manifold_dl as mdl
from pathlib import Path

path = Path(sys.argv[1])
Y = mdl.datasets.synthetic(4, 6, 40, sparsity=2, rng=0).signals
results = [mdl.learn_dictionary(Y, 6, coder=mdl.OMP(sparsity=2), max_iter=1, rng=seed) for seed in (0, 1)]


def save_in_child(result, last):
    # Ends by SIGKILL at call number `last` of those that saving makes; returns the calls that were counted.
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        calls = 0

        def count(frame, event, argument):
            nonlocal calls
            # Before the file is opened leftovers are removed, which takes as many calls as there are.
            begins = frame.f_code.co_name == "_open_unfinished"
            calls += (calls > 0 or begins) and event in ("call", "c_call")
            if calls == last:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(count)
        mdl.save(result, path)
        sys.setprofile(None)
        os.write(writer, str(calls).encode())
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    counted = os.read(reader, 20)
    os.close(reader)
    return os.WIFSIGNALED(status), int(counted or 0)


save_in_child(results[0], None)
mdl.load(path)  # whatever is imported by that is not counted below
killed, calls = save_in_child(results[0], None)
assert not killed and calls > 100
# From the first call to the last, and at each of the last ones, which put the file into its place.
points = [1 + k * (calls - 1) // 10 for k in range(10)] + [calls - 39 + k for k in range(40)]
for k, last in enumerate(points):
    killed, _ = save_in_child(results[k % 2], last)
    assert killed
    D = mdl.load(path).dictionary  # the old one or the new one, whole
    assert any((D == result.dictionary).all() for result in results)
    assert len(list(path.parent.iterdir())) <= 2  # each process has removed what the last one left
print("loaded 50")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_of_50_processes_killed_while_saving_every_one_leaves_a_whole_file(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", KILLED_50_TIMES, str(tmp_path / "result.npz")]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.stdout == "loaded 50\n", process.stderr
    write_atomically(tmp_path / "other.bin", lambda file: None)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["other.bin", "result.npz"]


def test_hidden_files_of_others_are_left_alone(tmp_path):
    foreign = tmp_path / ".download.part"
    foreign.touch()
    write_atomically(tmp_path / "file.bin", lambda file: None)
    assert foreign.exists()


def test_a_file_that_was_taken_for_a_leftover_is_made_again(tmp_path, monkeypatch):
    opened, lock = [], _files._lock

    def remove_the_first(file, wait):
        opened.append(file.name)
        if len(opened) == 1:  # another process was faster
            _files.os.unlink(file.name)
        return lock(file, wait)

    monkeypatch.setattr(_files, "_lock", remove_the_first)
    write_atomically(tmp_path / "file.bin", lambda file: file.write(b"new"))
    assert (tmp_path / "file.bin").read_bytes() == b"new"
    assert len(opened) == (2 if _files.fcntl else 1)
