# SPDX-License-Identifier: Apache-2.0
"""Clients without credentials cannot harm those with credentials."""
import json
import socket
import ssl
import urllib.parse

import pytest
from holdfastd import Cluster, wait_until

MAP = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(name="cluster", scope="module")
def _cluster():
    with Cluster(with_witness=False) as cluster:
        yield cluster


@pytest.fixture(name="instance", scope="module")
def _instance(cluster):
    return cluster.instance("a").wait_ready()


def dial(instance):
    return socket.create_connection(("127.0.0.1", urllib.parse.urlparse(instance.url).port), timeout=30)


def connect(instance):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(dial(instance))


def unfinished_post(instance, length=3_000_000, headers=""):
    """The head and the first bytes of a large POST, without credentials."""
    connection = connect(instance)
    connection.sendall((f"POST {MAP} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n"
                        '{"kind":').encode())
    return connection


def read_all(connection):
    data = b""
    try:
        while chunk := connection.recv(65536):
            data += chunk
    except ssl.SSLError:  # closed without a close notification
        pass
    return data


def test_uploads_are_refused_at_their_heads(instance):
    """The server refuses the request although the body never arrives, and closes the connection."""
    for headers, code in (("", 403), ("Authorization: Bearer wrong\r\n", 401)):
        text = read_all(unfinished_post(instance, headers=headers)).decode()
        assert text.startswith(f"HTTP/1.1 {code} "), text
        assert json.loads(text.partition("\r\n\r\n")[2])["code"] == code


def test_unfinished_uploads_use_up_nothing(instance):
    """More such uploads than the memory for bodies could hold are open, while a client with credentials writes."""
    uploads = [unfinished_post(instance) for _ in range(120)]
    for upload in uploads:
        try:
            upload.sendall(b" " * 2_500_000)
        except OSError:  # refused already
            pass
    for i in range(20):
        code, body = instance.request("POST", MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"good-{i}"}})[:2]
        assert code == 201, body
    for upload in uploads:
        upload.close()


def test_many_empty_parameters_are_cheap(instance):
    """Repeated and empty parameters, as many as fit into a head."""
    connection = connect(instance)
    connection.sendall(b"GET /livez?" + b"exclude&" * 7000 + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert read_all(connection).startswith(b"HTTP/1.1 200 ")


def test_idle_connections_make_room_for_others(instance):
    """Thousands of silent connections take no place from a client with credentials."""
    silent = []
    for _ in range(3000):
        silent.append(dial(instance))
    wait_until("a new client is served", lambda: instance.get("/api/v1/namespaces/default")[0] == 200)
    metrics = instance.get("/metrics")[1]
    assert 'holdfast_http_connections_refused_total{reason="handshakes"}' in str(metrics)
    for connection in silent:
        connection.close()


def test_a_stop_does_not_wait_for_strangers(cluster):
    b = cluster.instance("b").wait_ready()
    posts = [unfinished_post(b) for _ in range(3)]
    half = connect(b)
    half.sendall(b"POST /api/v1/namespaces HTTP/1.1\r\n")
    silent = dial(b)
    b.send(15)
    assert b.wait() == 0
    # Nobody had closed them, and the shutdown was not cut short by its deadline.
    assert "still in progress" not in b.log_text()
    for connection in posts + [half, silent]:
        connection.close()
