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
    from driven_page import watched_page

    with watched_page(driver, server) as page:
        yield page
