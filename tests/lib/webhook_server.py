# SPDX-License-Identifier: Apache-2.0
"""A real HTTPS server with admission webhooks, whose answers a test chooses by the path."""
import base64
import http.server
import json
import ssl
import subprocess
import threading


def make_certificate(directory, name="webhook"):
    """A certificate for 127.0.0.1 that is its own CA. Returns the paths of certificate and key."""
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", certificate,
                    "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1,DNS:hook.system.svc"], check=True, capture_output=True)
    return certificate, key


class WebhookServer:
    """answers: path -> function that gets the review's request. It returns the response without its
    uid, or the whole body as bytes, or (code, bytes)."""

    def __init__(self, directory):
        self.directory = directory
        self.certificate, key = make_certificate(directory)
        self.answers = {}
        self.reviews = []  # (path, request) of each call, in order
        self.queries = []  # (path, query) of each call
        self.release = threading.Event()  # ends the calls that hang
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                review = json.loads(self.rfile.read(int(self.headers["content-length"])))
                path, _, query = self.path.partition("?")
                outer.queries.append((path, query))
                outer.reviews.append((path, review["request"]))
                if path == "/hang":
                    outer.release.wait(60)
                answer, code = outer.answers[path](review["request"]), 200
                if isinstance(answer, tuple):
                    code, answer = answer
                if isinstance(answer, dict):
                    answer = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                                         "response": {"uid": review["request"]["uid"], "allowed": True, **answer}}).encode()
                self.send_response(code)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def get_request(self):
                connection, address = self.socket.accept()
                connection.settimeout(70)
                return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

            def handle_error(self, *_):
                pass  # a client that gave up

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def url(self, path):
        return f"https://127.0.0.1:{self.port}{path}"

    def client(self, path, certificate=None):
        return {"url": self.url(path), "caBundle": base64.b64encode((certificate or self.certificate).read_bytes()).decode()}

    def calls(self, path):
        return [request for called, request in self.reviews if called == path]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def patch(*operations):
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}
