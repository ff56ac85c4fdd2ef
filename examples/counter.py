#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""libholdfast in Python, with ctypes: counts in a ConfigMap while this process leads.

    counter.py NAME IDENTITY [KUBECONFIG]

All callbacks but the log's run in this program's own loop, on the main thread. The library is found
as libholdfast.so.0.2 in the usual places, or in LD_LIBRARY_PATH."""
import ctypes
import os
import select
import signal
import sys
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p

holdfast = ctypes.CDLL("libholdfast.so.0.2")
curl = ctypes.CDLL("libcurl.so.4")
SECOND = 10 ** 9
CREATE, UPDATE = 2, 3  # enum hf_verb
LEADING = 1            # enum hf_leader_state
EXISTS, STUCK = 2, 15  # enum hf_error


class Status(Structure):
    _fields_ = [("error", c_int), ("http_code", c_int), ("retry_after_s", c_uint32), ("reason", c_char * 48), ("message", c_char * 464)]


class Log(Structure):
    WRITE = CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_char_p)
    _fields_ = [("write", WRITE), ("ctx", c_void_p), ("max_level", c_int)]


class Host(Structure):
    _fields_ = [("size", c_size_t), ("clock", c_void_p), ("log", Log), ("metrics", c_void_p), ("health", c_void_p),
                ("thread_stack_bytes", c_size_t)]


class Resource(Structure):
    _fields_ = [("group", c_char_p), ("version", c_char_p), ("plural", c_char_p)]


class Request(Structure):
    _fields_ = [("size", c_size_t), ("verb", c_int), ("resource", Resource), ("ns", c_char_p), ("name", c_char_p),
                ("subresource", c_char_p), ("query", c_char_p), ("body", c_char_p), ("n_body", c_size_t), ("fence", c_void_p), ("deadline", c_int64), ("lane", c_int), ("patch", c_int)]


class Response(Structure):
    DONE = CFUNCTYPE(None, c_void_p, c_void_p)
    _fields_ = [("size", c_size_t), ("error", c_int), ("body", c_char_p), ("n_body", c_size_t), ("fence_echoed", c_bool), ("status", Status)]


class Controller(Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("runs", c_int), ("run", c_void_p), ("ctx", c_void_p), ("after", c_void_p),
                ("n_after", c_size_t), ("is_settled", c_void_p)]


class LoopController(Structure):
    CALL = CFUNCTYPE(None, c_void_p, c_void_p)
    _fields_ = [("size", c_size_t), ("loop", c_void_p), ("begin", CALL), ("drain", CALL), ("abort", CALL), ("ctx", c_void_p)]


class Timing(Structure):
    _fields_ = [(name, c_int64) for name in ("lease_duration", "renew_deadline", "retry_period", "request_timeout", "stop_grace", "drain_deadline")]


class LeaderInfo(Structure):
    _fields_ = [("size", c_size_t), ("state", c_int)]  # more members follow, which this program does not read


class ElectorConfig(Structure):
    CHANGE = CFUNCTYPE(None, c_void_p, POINTER(LeaderInfo))
    _fields_ = [("size", c_size_t), ("ns", c_char_p), ("name", c_char_p), ("identity", c_char_p), ("client", c_void_p), ("timing", Timing),
                ("controllers", POINTER(Controller)), ("n_controllers", c_size_t), ("labels", c_void_p), ("n_labels", c_size_t),
                ("events", c_bool), ("unfenced", c_bool), ("on_change", CHANGE), ("ctx", c_void_p), ("lock_type", c_char_p),
                ("migrate_from", c_char_p), ("migrate_from_ns", c_char_p), ("coordinated", c_bool), ("cluster", c_char_p), ("loop", c_void_p)]


STOPPED = CFUNCTYPE(None, c_void_p, c_int, POINTER(Status))
for function in ("hf_term_client", "hf_loop_run_term", "hf_client_free", "hf_electors_free", "hf_loop_free"):
    getattr(holdfast, function).restype = c_void_p
    getattr(holdfast, function).argtypes = [c_void_p]
holdfast.hf_loop_run_done.argtypes = [c_void_p, c_int]
holdfast.hf_loop_run_done.restype = None
holdfast.hf_loop_fd.argtypes = holdfast.hf_loop_dispatch.argtypes = [c_void_p]
holdfast.hf_loop_client_new.argtypes = [c_void_p, c_void_p, POINTER(c_void_p)]
holdfast.hf_client_request.argtypes = [c_void_p, POINTER(Request), Response.DONE, c_void_p, c_void_p]
holdfast.hf_electors_stop_begin.argtypes = [c_void_p, c_void_p, STOPPED, c_void_p]
holdfast.hf_strerror.restype = c_char_p


class Counter:
    """ctypes keeps no reference to callbacks and structs that the library holds: the members of this object do."""

    def __init__(self, name, identity, kubeconfig):
        self.name, self.run, self.client, self.writing, self.ending, self.result = name, None, c_void_p(), False, False, None
        status, loop, rest, electors = Status(), c_void_p(), c_void_p(), c_void_p()
        self.log = Log.WRITE(lambda _, level, component, message: os.write(2, b"<%d>%s: %s\n" % (level, component, message)))
        self.host = Host(size=ctypes.sizeof(Host), log=Log(write=self.log))
        self.check(holdfast.hf_loop_new(byref(loop)), status)
        self.check(holdfast.hf_rest_client_from_kubeconfig(byref(self.host), kubeconfig, byref(rest), byref(status)), status)
        self.loop, self.rest = loop, rest
        self.begin, self.drain = LoopController.CALL(self.on_begin), LoopController.CALL(lambda _, run: self.end())
        self.controller = LoopController(ctypes.sizeof(LoopController), loop, self.begin, self.drain, self.drain, None)
        run = ctypes.cast(holdfast.hf_loop_controller_run, c_void_p)
        in_loop = ctypes.cast(byref(self.controller), c_void_p)
        controllers = (Controller * 1)(Controller(size=ctypes.sizeof(Controller), name=b"count", run=run, ctx=in_loop))
        self.change, self.written, self.stopped = ElectorConfig.CHANGE(self.on_change), Response.DONE(self.on_written), STOPPED(self.on_stopped)
        config = ElectorConfig(size=ctypes.sizeof(ElectorConfig), ns=b"default", name=name, identity=identity, client=rest, controllers=controllers,
                               n_controllers=1, on_change=self.change, loop=loop,
                               timing=Timing(lease_duration=6 * SECOND, renew_deadline=3 * SECOND, retry_period=SECOND))
        self.check(holdfast.hf_electors_new(byref(self.host), byref(electors)), status)
        self.check(holdfast.hf_electors_add(electors, byref(config), None, byref(status)), status)
        self.check(holdfast.hf_electors_start(electors, byref(status)), status)
        self.electors = electors

    @staticmethod
    def check(result, status):
        if result != 0:
            sys.exit(f"{holdfast.hf_strerror(result).decode()} {status.message.decode()}")

    def on_change(self, _, info):
        state = info[0].state
        print("state", state, "leading" if state == LEADING else "", flush=True)

    def on_begin(self, _, run):
        self.count, self.exists, self.ending = 0, False, False
        if holdfast.hf_loop_client_new(self.loop, holdfast.hf_term_client(holdfast.hf_loop_run_term(run)), byref(self.client)) == 0:
            self.run = run
        else:
            holdfast.hf_loop_run_done(run, -1)  # any error: begin is called again after a pause

    def end(self):
        self.ending = True
        if not self.writing:
            holdfast.hf_client_free(self.client)
            run, self.run = self.run, None
            holdfast.hf_loop_run_done(run, 0)

    def tick(self):
        if self.ending and self.run and not self.writing:
            self.end()
        if not self.run or self.writing:
            return
        self.count += 1
        body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"},"data":{"count":"%d"}}' % (self.name, self.count)
        request = Request(size=ctypes.sizeof(Request), verb=UPDATE if self.exists else CREATE,
                          resource=Resource(b"", b"v1", b"configmaps"), ns=b"default", name=self.name, body=body,
                          n_body=len(body))
        self.writing = holdfast.hf_client_request(self.client, byref(request), self.written, None, None) == 0

    def on_written(self, _, response):
        error = ctypes.cast(response, POINTER(Response))[0].error
        self.writing = False
        self.exists |= error in (0, EXISTS)

    def on_stopped(self, _, result, status):
        self.result = result

    def loop_once(self, descriptors):
        select.select(descriptors, [], [], 0.1)
        holdfast.hf_loop_dispatch(self.loop)
        self.tick()


def main():
    asked = []
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    curl.curl_global_init(3)  # CURL_GLOBAL_ALL, before the first thread
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    counter = Counter(sys.argv[1].encode(), sys.argv[2].encode(), sys.argv[3].encode() if len(sys.argv) > 3 else None)
    descriptors = [holdfast.hf_loop_fd(counter.loop)]
    while not asked:
        counter.loop_once(descriptors)
    Counter.check(holdfast.hf_electors_stop_begin(counter.electors, counter.loop, counter.stopped, None), Status())
    while counter.result is None:
        counter.loop_once(descriptors)
    if counter.result == STUCK:
        os._exit(70)
    holdfast.hf_electors_free(counter.electors)
    holdfast.hf_client_free(counter.rest)
    holdfast.hf_loop_free(counter.loop)
    sys.exit(counter.result != 0)


if __name__ == "__main__":
    main()
