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


def upgrade(server, path, host=None, origin=None, cookie=None):
    """The status that the server answers a websocket with."""
    address, port = server.origin.removeprefix("http://").split(":")
    given = {"Host": host or f"{address}:{port}", "Origin": origin, "Cookie": cookie}
    lines = [
        f"GET {path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in given.items() if value is not None),
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",  # any 16 bytes
        "Sec-WebSocket-Version: 13",
    ]
    with socket.create_connection((address, int(port)), 30) as connection:
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


@pytest.fixture(scope="module")
def cookie(server):
    """What a browser sends once it has opened the page."""
    jar = http.cookiejar.CookieJar()
    read(server, server.address.removeprefix(server.origin), urllib.request.HTTPCookieProcessor(jar))
    return "; ".join(f"{one.name}={one.value}" for one in jar)


def test_the_websocket_is_open_to_its_own_page(cookie, server):
    port = server.origin.rpartition(":")[2]
    for k, host in enumerate((f"127.0.0.1:{port}", f"localhost:{port}")):
        path = f"/ws?session_id=s_own_{k}"
        assert upgrade(server, path, host=host, origin=f"http://{host}", cookie=cookie) == 101


@pytest.mark.parametrize(
    "origin", ["http://127.0.0.1:9999", "http://evil.example", "null", "https://127.0.0.1:{port}", ""]
)
def test_the_websocket_is_closed_to_pages_of_other_servers(origin, cookie, server):
    """A browser sends the cookie along: cookies do not know ports."""
    origin = origin.format(port=server.origin.rpartition(":")[2])
    assert upgrade(server, "/ws?session_id=s_other", origin=origin, cookie=cookie) == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1:9999", "127.0.0.1"])
def test_a_name_that_somebody_made_point_here_is_refused(host, cookie, server):
    host = host.format(port=server.origin.rpartition(":")[2])
    path = "/ws?session_id=s_host"
    assert upgrade(server, path, host=host, origin=f"http://{host}", cookie=cookie) == 403
    request = urllib.request.Request(server.address, headers={"Host": host})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request, timeout=30)


def test_a_page_of_another_server_cannot_post(cookie, server):
    headers = {"Origin": "http://evil.example", "Cookie": cookie}
    request = urllib.request.Request(f"{server.origin}/api/kernel/run", b"{}", headers)
    with pytest.raises(urllib.error.HTTPError, match="403") as caught:
        urllib.request.urlopen(request, timeout=30)
    assert b"its own page only" in caught.value.read()


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
