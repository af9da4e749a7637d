"""Files that are complete or absent."""

import pytest

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
