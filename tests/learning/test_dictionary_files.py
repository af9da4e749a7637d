"""Dictionaries as safetensors files: what was written comes back, other programs read it, damage is named."""

import json
import sys

import numpy as np
import pytest

from manifold_dl import load_dictionary, save_dictionary

safetensors = pytest.importorskip("safetensors")
pytest.importorskip("safetensors.numpy")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_dictionary_comes_back_with_the_same_bits(tmp_path, dtype):
    D = np.random.default_rng(0).standard_normal((5, 7)).astype(dtype)
    save_dictionary(D, tmp_path / "D.safetensors")
    again = load_dictionary(tmp_path / "D.safetensors")
    assert again.dtype == dtype
    np.testing.assert_array_equal(again, D)


def test_other_programs_find_an_atom_in_every_row(tmp_path):
    D = np.arange(1.0, 7.0).reshape(2, 3)
    save_dictionary(D, tmp_path / "D.safetensors")
    np.testing.assert_array_equal(safetensors.numpy.load_file(tmp_path / "D.safetensors")["atoms"], D.T)
    # The format: eight bytes for the length of a JSON header, the header, the numbers of the rows.
    content = (tmp_path / "D.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert json.loads(content[8 : 8 + length])["atoms"]["shape"] == [3, 2]
    np.testing.assert_array_equal(np.frombuffer(content[8 + length :]).reshape(3, 2), D.T)


def test_a_tensor_of_another_program_is_read_by_its_name(tmp_path):
    rows = np.random.default_rng(0).standard_normal((6, 4))
    safetensors.numpy.save_file({"W_dec": rows, "bias": np.ones(4)}, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(load_dictionary(tmp_path / "model.safetensors", "W_dec"), rows.T)
    with pytest.raises(ValueError, match=r"no tensor 'atoms', but \[\"W_dec\", \"bias\"\]"):
        load_dictionary(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="has shape"):
        load_dictionary(tmp_path / "model.safetensors", "bias")


def test_damaged_and_missing_files_are_refused(tmp_path):
    path = tmp_path / "D.safetensors"
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_dictionary(path)
    save_dictionary(np.eye(3), path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ValueError, match="is damaged"):
        load_dictionary(path)
    with pytest.raises(ValueError, match="column 1 is zero"):
        save_dictionary(np.array([[1.0, 0.0], [0.0, 0.0]]), path)


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(ImportError, match=r"manifold-dl\[safetensors\]"):
        save_dictionary(np.eye(2), tmp_path / "D.safetensors")


def test_types_that_numpy_does_not_know_are_refused(tmp_path):
    for dtype, size in (("BF16", 2), ("F8_E4M3", 1)):
        header = {"atoms": {"dtype": dtype, "shape": [3, 2], "data_offsets": [0, 6 * size]}}
        text = json.dumps(header).encode()
        path = tmp_path / f"{dtype}.safetensors"
        path.write_bytes(len(text).to_bytes(8, "little") + text + b"\x30" * 6 * size)
        with pytest.raises(ValueError, match=f"has type {dtype}, which NumPy does not have"):
            load_dictionary(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        (2**62).to_bytes(8, "little") + b"{}",
        (200_000).to_bytes(8, "little") + b"[" * 200_000,
        (75).to_bytes(8, "little")
        + b'{"atoms":{"dtype":"F64","shape":[1152921504606846976,4],"data_offsets":[0,0]}}'[:75],
    ],
    ids=["empty", "long header", "deep header", "huge shape"],
)
def test_hostile_files_are_refused(tmp_path, content):
    (tmp_path / "D.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match="is damaged, or no safetensors file"):
        load_dictionary(tmp_path / "D.safetensors")


def test_of_many_tensors_ten_are_named(tmp_path):
    safetensors.numpy.save_file({f"t{k:03}": np.ones(1) for k in range(300)}, tmp_path / "many.safetensors")
    with pytest.raises(ValueError, match=r'"t009"\] and 290 more\.'):
        load_dictionary(tmp_path / "many.safetensors")
