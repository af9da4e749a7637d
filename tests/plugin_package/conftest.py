"""Nothing in this folder is a test, and some of it cannot even be imported."""

collect_ignore_glob = ["*.py", "*/*.py"]
