# SPDX-License-Identifier: Apache-2.0
"""A proxy with faults between a client of the API and a holdfastd.

It takes plain HTTP and forwards it over TLS with the admin certificate. The test changes `mode`
while it runs. The mode applies to requests whose path contains `only`, except watches:
    "pass"          forwards
    (403, reason)   responds with a Status of that code, and forwards nothing;
                    (429, reason, 1) with `Retry-After: 1`
    "hang"          takes the request, and closes without a response when the mode changes or the proxy ends
    "drop-reply"    forwards, then closes without a response: applied, but not acknowledged
    "no-echo"       forwards, and removes the fence's echo from the response
"""
import http.client
import http.server
import json
import socketserver
import threading
import urllib.parse

HOP = {"connection", "transfer-encoding", "keep-alive"}


class FaultProxy:
    def __init__(self, instance, only="/leases/"):
        self.instance = instance
        self.target = urllib.parse.urlparse(instance.url)
        self.only = only
        self.mode = "pass"
        self.changed = threading.Condition()
        self.closing = False
        self.counts = {}
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                proxy.handle(self)

            do_GET = do_PUT = do_POST = do_DELETE = handle_any

            def log_message(self, *_):
                pass

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def set(self, mode):
        with self.changed:
            self.mode = mode
            self.changed.notify_all()

    def kubeconfig(self, path):
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": self.url}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
            "users": [{"name": "proxy", "user": {}}]}))
        return path

    def handle(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        mode = self.mode if self.only in request.path and "watch=" not in request.path else "pass"
        self.counts[str(mode)] = self.counts.get(str(mode), 0) + 1
        if isinstance(mode, tuple):
            self.refuse(request, *mode)
            return
        if mode == "hang":
            with self.changed:
                while self.mode == "hang" and not self.closing:
                    self.changed.wait(1)
            request.close_connection = True
            return
        self.forward(request, body, mode)

    def refuse(self, request, code, reason, retry_after=None):
        text = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                           "reason": reason, "message": "refused by the proxy"}).encode()
        request.send_response(code)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(text)))
        if retry_after is not None:
            request.send_header("Retry-After", str(retry_after))
        request.end_headers()
        request.wfile.write(text)

    def forward(self, request, body, mode):
        upstream = http.client.HTTPSConnection(self.target.hostname, self.target.port,
                                               context=self.instance.context(), timeout=600)
        dropped = HOP | {"content-length", "date", "server"}
        if mode == "no-echo":
            dropped = dropped | {"holdfast-fence"}
        try:
            headers = {k: v for k, v in request.headers.items()
                       if k.lower() not in HOP | {"host"}}
            upstream.request(request.command, request.path, body=body or None, headers=headers)
            response = upstream.getresponse()
            if mode == "drop-reply":
                response.read()
                request.close_connection = True
                return
            request.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in dropped:
                    request.send_header(name, value)
            if "watch=" in request.path:
                request.close_connection = True
                request.send_header("Connection", "close")
                request.end_headers()
                while chunk := response.read1(65536):
                    request.wfile.write(chunk)
                    request.wfile.flush()
                return
            text = response.read()
            request.send_header("Content-Length", str(len(text)))
            request.end_headers()
            request.wfile.write(text)
        except OSError:
            request.close_connection = True
        finally:
            upstream.close()

    def end(self):
        with self.changed:
            self.closing = True
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()
