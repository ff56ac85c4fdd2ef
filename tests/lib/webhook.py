# SPDX-License-Identifier: Apache-2.0
"""A webhook over HTTPS for tests: a real server in a thread, whose answers a function of the test makes."""
import base64
import http.server
import json
import socket
import ssl
import threading

from tls_etcd import make_ca, make_cert


class Webhook:
    """answer(path, body) returns (status code, body): a dict is sent as JSON, a str as text. It may
    block on `release`, which holds up only its own call. names: those of the certificate besides
    127.0.0.1."""

    def __init__(self, directory, answer, *names):
        self.answer = answer
        self.calls = []  # (path, body) of each call, in the order of their arrival
        self.release = threading.Event()
        self.lock = threading.Lock()
        directory.mkdir(exist_ok=True)
        make_ca(directory, "ca")
        make_cert(directory, "ca", "server", "subjectAltName=IP:127.0.0.1" + "".join(f",DNS:{name}" for name in names))
        self.ca = (directory / "ca.crt").read_text()
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with hook.lock:
                    hook.calls.append((self.path, body))
                self.reply(*hook.answer(self.path, body))

            def do_GET(self):
                with hook.lock:
                    hook.calls.append((self.path, None))
                self.reply(*hook.answer(self.path, None))

            def reply(self, code, answer):
                data = (json.dumps(answer) if isinstance(answer, (dict, list)) else answer).encode()
                self.send_response(code)
                self.send_header("content-type", "text/plain" if isinstance(answer, str) else "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, request, client_address):
                pass  # the client may leave

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "server.crt", directory / "server.key")
        # the handshake is done by the thread of the connection
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.url = f"https://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    @property
    def bundle(self):
        return base64.b64encode(self.ca.encode()).decode()

    def close(self):
        self.release.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
