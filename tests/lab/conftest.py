"""A browser, and the page of a server; what the browser logs must be silent when a test has ended."""

import pytest


@pytest.fixture(scope="session")
def server():
    from driven_page import Server

    server = Server()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    from driven_page import start_browser

    driver = start_browser(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture
def page(driver, server):
    from driven_page import Page

    page = Page(driver, server)
    yield page
    elsewhere, errors = page.requests_elsewhere(), page.console_errors()
    driver.get("about:blank")  # the next test may have another server, and this page would look for its own
    page.requests_elsewhere(), page.console_errors()
    assert elsewhere == []
    assert errors == []
