"""``python -m manifold_dl`` is ``manifold-dl``."""

from manifold_dl.cli import main

if __name__ == "__main__":
    main()
