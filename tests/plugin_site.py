"""Install the package of plugin_package as somebody would install theirs, without a network."""

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

SOURCE = Path(__file__).parent / "plugin_package"


def install(folder):
    """Put the package into `folder`, which then has to be on the path of Python."""
    if importlib.util.find_spec("pip"):
        options = [
            "--quiet",
            "--disable-pip-version-check",
            "--no-index",
            "--no-deps",
            "--no-build-isolation",
        ]
        command = [sys.executable, "-m", "pip", "install", *options, "--no-compile", "--target", str(folder)]
        done = subprocess.run([*command, str(SOURCE)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    else:  # what pip would do with a wheel of pure Python
        wheel = [sys.executable, "-c", f"import wheel_builder; wheel_builder.build_wheel({str(folder)!r})"]
        subprocess.run(wheel, cwd=SOURCE, check=True)
        zipfile.ZipFile(next(folder.glob("*.whl"))).extractall(folder)
