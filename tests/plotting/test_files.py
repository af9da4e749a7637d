"""The backend for machines without a display, in a process of its own."""

import subprocess
import sys

import matplotlib.pyplot as plt
import pytest

SCRIPT = """
import matplotlib.pyplot as plt
plt.plot([1, 2]); plt.figure(); plt.plot([2, 1])
plt.show()
plt.figure(figsize=(1, 2)); plt.plot([3])
plt.show(block=True)
plt.show()
assert not plt.get_fignums()
"""


@pytest.mark.parametrize("named", [True, False])
def test_show_writes_files_named_after_the_script(named, tmp_path, monkeypatch):
    script = tmp_path / "07_my_script.py"
    script.write_text(SCRIPT)
    monkeypatch.setenv("MPLBACKEND", "module://manifold_dl.plotting.files")
    folder = tmp_path / "pictures"
    monkeypatch.delenv("MANIFOLD_DL_PICTURES", raising=False)
    if named:
        folder = tmp_path / "some" / "where"
        monkeypatch.setenv("MANIFOLD_DL_PICTURES", str(folder))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in folder.iterdir()) == [f"07_my_script_{i}.png" for i in (1, 2, 3)]
    assert plt.imread(folder / "07_my_script_3.png").shape[:2] == (400, 200)  # at 200 dots per inch
    first, second = done.stdout.splitlines()
    assert first == f"The 2 pictures are in {folder}: 07_my_script_1.png, 07_my_script_2.png"
    assert second == f"The picture is in {folder}: 07_my_script_3.png"
