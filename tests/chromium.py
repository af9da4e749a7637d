"""Debian's Chromium without a screen: the flags with which it starts in a container and contacts nobody."""

import shutil

# As root there is no sandbox; without the others it looks for updates, which a closed network refuses.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]

IS_INSTALLED = shutil.which("chromium") is not None
HAS_DRIVER = IS_INSTALLED and shutil.which("chromedriver") is not None
