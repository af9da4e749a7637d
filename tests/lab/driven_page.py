"""The page of the lab in a real browser, with the words of a user: choose, type, click, read.

Every wait has a limit and looks at the page itself; nothing sleeps for a guessed time. marimo draws its
elements in shadow roots, which is why they are looked up by a script.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import urllib.parse
from contextlib import contextmanager

from chromium import FLAGS
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

STARTING = 240  # seconds; on a busy machine the server imports and compiles for long
LIMIT = 60  # seconds; nothing takes as long but what a busy machine compiles, unless something is broken


class Server:
    """``manifold-dl lab`` in a process of its own."""

    def __init__(self, *options, environment=None):
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})}
        command = [sys.executable, "-m", "manifold_dl", "lab", "--port", "0", "--no-browser", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        lines = []
        reader = threading.Thread(target=lambda: lines.append(self.process.stdout.readline()), daemon=True)
        reader.start()
        reader.join(STARTING)
        if not (lines and lines[0].startswith("The lab: ")):
            self.process.kill()  # which ends the reader, too
            reader.join()
            self.stop()
            raise RuntimeError(f"the server did not start: {lines}")
        self.address = lines[0].removeprefix("The lab: ").strip()
        self.origin = self.address.partition("/?")[0]

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def start_browser(folder, width=1280, height=900, dark=False):
    """A browser that logs its requests and its console."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in [*FLAGS, f"--window-size={width},{height}", f"--user-data-dir={folder}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_page_load_timeout(LIMIT)
    driver.set_script_timeout(LIMIT)
    theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [theme]})
    driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
    return driver


class Page:
    """One page of the lab."""

    def __init__(self, driver, server):
        self.driver, self.server = driver, server

    def open(self, **settings):
        query = urllib.parse.urlencode(settings)
        self.driver.get(self.server.address + (f"&{query}" if query else ""))
        self.wait("document.querySelector('.mdl-missions') && document.querySelector('.mdl-panel')")
        return self

    # Looking

    def js(self, expression, *arguments):
        return self.driver.execute_script(f"return {expression}", *arguments)

    def wait(self, expression, *arguments):
        """What the expression is as soon as it is true."""
        return WebDriverWait(self.driver, LIMIT, 0.03).until(
            lambda _: self.js(expression, *arguments), f"waited in vain for {expression} {arguments}"
        )

    def text(self, selector):
        return self.js("document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def message(self, control):
        return self.text(f"[data-control='{control}'] .mdl-message")

    def wait_for_number(self, name, text):
        found = "document.querySelector(`[data-number='${arguments[0]}']`)?.textContent === arguments[1]"
        self.wait(found, name, text)

    def value(self):
        """The objective of the iterate that is shown, with all digits."""
        return float(self.js("document.querySelector('.mdl-tiles').dataset.value"))

    def steps(self):
        return int(self.js("document.querySelector('.mdl-status').dataset.steps ?? -1"))

    def wait_for_state(self, state):
        self.wait("document.querySelector(`.mdl-status[data-state='${arguments[0]}']`)", state)

    # Doing

    def inside(self, control, element, selector):
        """An element in the shadow root of a marimo element of a control."""
        path = f"[data-control='{control}'] marimo-{element}"
        found = "document.querySelector(arguments[0])?.shadowRoot?.querySelector(arguments[1])"
        return self.wait(found, path, selector)

    def choose(self, control, option):
        select = self.inside(control, "dropdown", "select")
        self.driver.execute_script(
            "const [list, name] = arguments;"
            "const option = [...list.options].find(o => o.value === name || o.text === name);"
            "if (!option || option.disabled) throw new Error('not to be chosen: ' + name);"
            "option.selected = true; list.dispatchEvent(new Event('change', { bubbles: true }))",
            select,
            option,
        )

    def type(self, control, text):
        field = self.inside(control, "text", "input")
        field.send_keys(Keys.END, Keys.BACKSPACE * 40, text, Keys.ENTER)

    def wait_for_code(self, text):
        """Until the settings are those that the code shown has."""
        self.wait("document.querySelector('.mdl-code code')?.textContent.includes(arguments[0])", text)

    def click(self, label, within="body"):
        self.wait(
            "(() => { for (const host of document.querySelectorAll(arguments[0] + ' marimo-button')) {"
            "const button = host.shadowRoot?.querySelector('button');"
            "if (button?.textContent.trim() === arguments[1]) { button.click(); return true } } })()",
            within,
            label,
        )

    def write_regularizer(self, text):
        editor = self.wait(
            "document.querySelector('marimo-code-editor')?.shadowRoot?.querySelector('.cm-content')"
        )
        self.driver.execute_script("arguments[0].focus()", editor)
        editor.send_keys(Keys.CONTROL, "a")
        self.driver.execute_cdp_cmd("Input.insertText", {"text": text})

    def copied(self, label):
        """What a copy button puts on the clipboard."""
        grant = {
            "origin": self.server.origin,
            "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"],
        }
        self.driver.execute_cdp_cmd("Browser.grantPermissions", grant)
        find = (
            "[...document.querySelectorAll('mdl-copy')].map(e => e.shadowRoot.querySelector('button'))"
            ".find(button => button.textContent === arguments[0])"
        )
        button = self.wait(find, label)
        self.driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", button)
        button.click()  # the browser lets a page write to the clipboard only after a real click
        self.wait("arguments[0].textContent === 'Copied'", button)
        return self.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")

    # What the browser has logged since the last call

    def requests_elsewhere(self):
        found = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.add(message["params"]["request"]["url"])
            elif message["method"] == "Network.webSocketCreated":
                found.add(message["params"]["url"].replace("ws://", "http://"))
        own = (self.server.origin, "data:", "blob:", "chrome:", "chrome-untrusted:", "about:")
        return sorted(url for url in found if not url.startswith(own))

    def console_errors(self):
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


@contextmanager
def watched_page(driver, server):
    """A page that must have asked no other server, and logged no error, when its test has ended."""
    page = Page(driver, server)
    yield page
    elsewhere, errors = page.requests_elsewhere(), page.console_errors()
    driver.get("about:blank")  # the next test may have another server, and this page would look for its own
    page.requests_elsewhere(), page.console_errors()
    assert elsewhere == []
    assert errors == []
