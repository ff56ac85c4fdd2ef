# SPDX-License-Identifier: Apache-2.0
"""links.py TARGET...: a TCP proxy for each target port, with faults, as a process of its own.

It reads commands from stdin, one JSON object a line, and answers each with one line:
    {"link": 2, "hang": ["up", "down"]}   from now on bytes of these directions are accepted and not
                                          forwarded; [] forwards what was kept, and goes on
    {"link": 2, "cut": true}              ends all connections with a reset, and drops what was kept
    {"stat": true}                        for each link [bytes that came down, age of the oldest
                                          connection in seconds]
"up" is from the client to the target. The first line of the output has the ports, in the order of
the targets. It ends when stdin ends.
"""
import asyncio
import json
import socket
import struct
import sys
import time

KEPT_MAX = 64 << 20  # bytes that a hung direction takes before it stops reading
PIECE = 65536


class Direction:
    """One direction of one connection: what was read and is not written yet."""

    def __init__(self, link, name, reader, writer):
        self.link, self.name, self.reader, self.writer = link, name, reader, writer
        self.kept, self.n_kept, self.at_end = [], 0, False
        self.changed = asyncio.Event()

    def ready(self):
        return (self.kept or self.at_end) and self.name not in self.link.hung

    async def wait(self, condition):
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    async def read(self):
        while data := await self.reader.read(PIECE):
            self.kept.append(data)
            self.n_kept += len(data)
            self.changed.set()
            await self.wait(lambda: self.n_kept < KEPT_MAX)
        self.at_end = True
        self.changed.set()

    async def write(self):
        while True:
            await self.wait(self.ready)
            if not self.kept:
                self.writer.write_eof()
                return
            data = b"".join(self.kept)
            self.kept, self.n_kept = [], 0
            self.changed.set()
            if self.name == "down":
                self.link.n_down += len(data)
            self.writer.write(data)
            await self.writer.drain()


class Link:
    def __init__(self, target):
        self.target, self.hung, self.connections, self.n_down = target, set(), {}, 0

    async def listen(self):
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    async def accept(self, near_reader, near_writer):
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            near_writer.transport.abort()
            return
        for writer in (near_writer, far_writer):
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        both = (Direction(self, "up", near_reader, far_writer),
                Direction(self, "down", far_reader, near_writer))
        me = asyncio.current_task()
        self.connections[me] = (time.monotonic(), both)
        tasks = [asyncio.ensure_future(work()) for d in both for work in (d.read, d.write)]
        try:
            await asyncio.gather(*tasks)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for task in tasks:
                task.cancel()
            for writer in (near_writer, far_writer):
                reset(writer)
            self.connections.pop(me, None)

    def hang(self, directions):
        self.hung = set(directions)
        for _, both in self.connections.values():
            for direction in both:
                direction.changed.set()

    def cut(self):
        for task in list(self.connections):
            task.cancel()

    def stat(self):
        oldest = min((begun for begun, _ in self.connections.values()), default=None)
        return [self.n_down, time.monotonic() - oldest if oldest else 0]


def reset(writer):
    try:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                                   struct.pack("ii", 1, 0))
    except OSError:
        pass
    writer.transport.abort()


def obey(links, command):
    if "stat" in command:
        return [link.stat() for link in links]
    link = links[command["link"]]
    if command.get("cut"):
        link.cut()
    if "hang" in command:
        link.hang(command["hang"])
    return True


async def main(targets):
    links = [Link(int(target)) for target in targets]
    print(json.dumps([await link.listen() for link in links]), flush=True)
    stdin = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    while line := await stdin.readline():
        print(json.dumps(obey(links, json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
