"""The lower bounds of pyproject.toml as constraints for pip: ``make test-lowest`` installs exactly these
versions.

    python tests/lowest_versions.py > constraints.txt

It reads the dependencies, the extra ``images`` and the test runner, and needs nothing but the standard
library.
"""

import re
import tomllib
from pathlib import Path

BOUND = re.compile(r"(?P<name>[\w.-]+)>=(?P<version>[\w.]+)")
TEST_RUNNERS = ("pytest", "pytest-xdist")


def lowest_versions(pyproject: Path) -> dict[str, str]:
    """Return the lowest version that each requirement allows."""
    project = tomllib.loads(pyproject.read_text())["project"]
    extras = project["optional-dependencies"]
    runners = [line for line in extras["test"] if line.partition(">=")[0] in TEST_RUNNERS]
    bounds = map(BOUND.match, [*project["dependencies"], *extras["images"], *runners])
    return {bound["name"]: bound["version"] for bound in bounds if bound}


if __name__ == "__main__":
    for name, version in lowest_versions(Path(__file__).parents[1] / "pyproject.toml").items():
        print(f"{name}=={version}")
