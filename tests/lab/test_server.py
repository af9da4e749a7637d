"""Who may talk to the server: nobody without the token, neither to the page nor to its websocket."""

import http.cookiejar
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest


def read(server, path, *handlers):
    try:
        return urllib.request.build_opener(*handlers).open(server.origin + path, timeout=30).read()
    except urllib.error.HTTPError as error:
        return str(error.code).encode()


def upgrade(server, path):
    """The status that the server answers a websocket with."""
    host, port = server.origin.removeprefix("http://").split(":")
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {host}:{port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",  # any 16 bytes
        "Sec-WebSocket-Version: 13",
    ]
    with socket.create_connection((host, int(port)), 30) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(connection.recv(64).split()[1])


@pytest.mark.parametrize("query", ["", "?access_token=wrong", "?access_token="])
def test_the_page_is_served_with_the_token_only(query, server):
    assert b"mdl-sphere" not in read(server, "/" + query)
    assert b"mdl-sphere" not in read(server, "/" + query, urllib.request.HTTPCookieProcessor())
    cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    assert b"mdl-sphere" in read(server, server.address.removeprefix(server.origin), cookies)


@pytest.mark.parametrize("path", ["/api/status", "/public/app.py", "/@file/app.py"])
def test_nothing_else_is_served_without_the_token(path, server):
    assert read(server, path) == b"401"


def test_the_websocket_needs_the_token(server):
    token = server.address.partition("access_token=")[2]
    assert upgrade(server, "/ws?session_id=s_first1") == 403
    assert upgrade(server, "/ws?session_id=s_first2&access_token=wrong") == 403
    assert upgrade(server, f"/ws?session_id=s_first3&access_token={token}") == 101


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads the sockets of Linux")
def test_the_server_listens_on_this_machine_only(server):
    _, port = server.origin.removeprefix("http://").split(":")
    listening = [
        line.split()[1]
        for name in ("tcp", "tcp6")
        for line in Path("/proc/net", name).read_text().splitlines()[1:]
        if line.split()[1].endswith(f":{int(port):04X}") and line.split()[3] == "0A"
    ]
    assert listening == [f"0100007F:{int(port):04X}"]  # 127.0.0.1, as the kernel writes it


def test_ctrl_c_ends_the_server_without_a_word():
    from driven_page import Server

    server = Server("--no-code")
    server.stop()
    assert server.process.returncode == 0
