# SPDX-License-Identifier: Apache-2.0
"""holdfastd --storage=memory for tests of the wire format: it starts in no time, and answers with what an HTTP client sees."""
import base64
import http.client
import json
import ssl
import subprocess
import tempfile
import pathlib
import urllib.parse

from holdfastd import FAST, HOLDFASTD, Process, wait_until


class Reply:
    def __init__(self, response, body):
        self.code = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.warnings = [value for name, value in response.getheaders() if name.lower() == "warning"]
        self.bytes = body

    @property
    def text(self):
        return self.bytes.decode()

    @property
    def json(self):
        return json.loads(self.bytes)


class MemoryServer(Process):
    def __init__(self, *flags):
        self.temporary = tempfile.TemporaryDirectory(prefix="holdfast-memory-")
        directory = pathlib.Path(self.temporary.name)
        self.kubeconfig = directory / "kubeconfig"
        super().__init__([HOLDFASTD, "--storage=memory", f"--write-kubeconfig={self.kubeconfig}", "--secure-port=0", *FAST, *flags],
                         directory / "log", stdout=subprocess.DEVNULL, cwd=directory)
        try:
            wait_until("the kubeconfig", lambda: self.kubeconfig.exists() and self.kubeconfig.read_text())
            self.context = self.make_context()
            wait_until("the server to be ready", self.is_ready)
        except BaseException:
            self.end()
            raise

    def make_context(self):
        config = json.loads(self.kubeconfig.read_text())
        self.address = urllib.parse.urlsplit(config["clusters"][0]["cluster"]["server"]).netloc
        context = ssl.create_default_context(cadata=base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode())
        user = config["users"][0]["user"]
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
            pair.flush()
            context.load_cert_chain(pair.name)
        return context

    def is_ready(self):
        assert self.alive(), self.log_text()
        try:
            return self.ask("GET", "/readyz").code == 200
        except OSError:
            return False

    def ask(self, method, path, body=None, **headers):
        """body: JSON, text or bytes. headers: content_type="..." and so on; JSON is the default content type of a body."""
        connection = http.client.HTTPSConnection(self.address, timeout=30, context=self.context)
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
            if body is not None and "content_type" not in headers:
                sent["content-type"] = "application/json"
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            connection.request(method, path, body.encode() if isinstance(body, str) else body, sent)
            response = connection.getresponse()
            return Reply(response, response.read())
        finally:
            connection.close()

    def kubectl(self, *args, stdin=None):
        return subprocess.run(["kubectl", f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.temporary.name}/cache", *args],
                              input=stdin, capture_output=True, text=True, timeout=60, check=False)

    def end(self):
        super().end()
        self.temporary.cleanup()
