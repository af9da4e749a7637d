"""Files of the user's: what is read, and what is refused beside the control."""

import io

import numpy as np
import pytest

from manifold_dl.lab.compatibility import Own, fault
from manifold_dl.lab.data import Upload, read_matrix, read_picture
from manifold_dl.lab.settings import Settings


@pytest.mark.parametrize(
    ("name", "contents"),
    [
        ("a.npy", b"x"),
        ("a.csv", b"1,2\nx,y\n"),
        ("a.csv", b"name,height\nanna,1.7\n"),
        ("a.csv", b"1;2\n3;4\n"),
        ("a.csv", b""),
        ("a.csv", b"0,0\n0,0\n"),
        ("a.csv", b"1e200,1\n2,3\n"),
        ("a.png", b"x"),
        ("a.txt", b"1"),
    ],
)
def test_a_damaged_file_is_refused_at_its_control(name, contents):
    refusal = fault(Settings(data="file"), Own(Upload(name, contents)))
    assert refusal.control == "file" and refusal.args[0].strip()


def test_a_table_may_begin_with_the_mark_of_its_encoding():
    rows = np.random.default_rng(0).standard_normal((6, 4))
    text = "\n".join(",".join(map(str, row)) for row in rows)
    found = read_matrix(Upload("a.csv", ("\ufeff" + text).encode()))
    np.testing.assert_array_equal(found, rows.T)


def test_a_picture_of_16_bits_keeps_its_grey_values():
    from PIL import Image

    grey, file = np.arange(0, 65536, 64, dtype=np.uint16).reshape(32, 32), io.BytesIO()
    Image.fromarray(grey).save(file, "png")
    np.testing.assert_array_equal(read_picture(Upload("a.png", file.getvalue())), grey / 255)


@pytest.mark.parametrize("level", [0, 77])
def test_a_flat_picture_is_refused(level):
    from PIL import Image

    file = io.BytesIO()
    Image.new("L", (64, 64), level).save(file, "png")
    refusal = fault(Settings(data="file"), Own(Upload("flat.png", file.getvalue())))
    assert refusal.control == "file" and "flat" in str(refusal)


def test_a_picture_is_refused_by_its_size_before_it_is_unpacked():
    from PIL import Image

    file = io.BytesIO()
    Image.new("1", (5_000, 5_000)).save(file, "png")  # 25 million pixels in 4 kB
    refusal = fault(Settings(data="file"), Own(Upload("large.png", file.getvalue())))
    assert refusal.control == "file" and "5000×5000 pixels are more than 20,000,000" in str(refusal)
