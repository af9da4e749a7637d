"""The smallest build backend: a wheel is a zip archive of the modules and of three files about them."""

import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).parent


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    points = "".join(f"{key} = {value}\n" for key, value in project["entry-points"]["manifold_dl"].items())
    folder = f"{name}-{version}.dist-info"
    files = {
        f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n",
        f"{folder}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{folder}/entry_points.txt": f"[manifold_dl]\n{points}",
    }
    for module in sorted(HERE.glob("manifold_dl_*/*.py")) + sorted(HERE.glob("manifold_dl_*.py")):
        files[module.relative_to(HERE).as_posix()] = module.read_text(encoding="utf-8")
    files[f"{folder}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{folder}/RECORD"])
    wheel = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory, wheel), "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return wheel
