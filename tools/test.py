# SPDX-License-Identifier: Apache-2.0
"""All tests of Holdfast; run by tools/test, which installs first what they need.

Two activities run at the same time. The main lane runs CPU-heavy steps one after the other: builds, unit tests, the simulator, and
the same under sanitizers. Meanwhile four workers run integration tests, which mostly wait, each one file at a time. Each step prints one line with its duration; if it failed, the end of its log follows. Every test counts once per build that it
runs in; a build or a check counts as one test.

This runs on machines that others use too, and a machine that stands still for seconds fails a test that is right. So if a few tests failed, each runs
once more at the end, when nothing else runs. If it passes then, it counts as passed and is named in the summary: it still needs a look. What a
sanitizer or valgrind reported, what hung, and what did not build gets no second try.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
KINDS = ("unit", "sim", "integration", "sanitizers", "valgrind", "form")
STEP_LIMIT = 2400  # seconds; a step that takes longer counts as hung (the model takes 20 minutes beside two busy loops on each processor)
WORKERS = 4
PROCESSES = (os.cpu_count() or 1) + 2  # unit tests at a time: many of them wait
SECOND_TRIES = 4  # of tests in a whole run: if more failed, the reason is not chance
TAIL = 80  # lines of a failed step's log, without those of the tests that passed
PASSED = re.compile(r" *\d+/\d+ .* (OK|SKIP) +[0-9.]+s")

# Compiling for a sanitizer takes long. A third of that time goes into debug information that the reports do not need: -g1 keeps the line numbers. Of the
# rest, half goes into optimizing the checks that the sanitizer adds; with -O1 the tests run as fast. At -O1 gcc knows less about the values of variables
# and warns falsely that texts may be cut off. That warning is off here and on in the other builds.
QUICK = ["-Doptimization=1", "-Dc_args=-g1 -Wno-format-truncation"]
# A sanitizer's programs are large, and each build links 700. gold needs half the time of GNU ld for that.
if shutil.which("ld.gold"):
    QUICK.append("-Dc_link_args=-fuse-ld=gold")
# By default the address sanitizer keeps 256 MB of freed memory and 30 callers of each allocation. With less of both the programs take a tenth less time,
# mostly in the kernel. A use of freed memory is still found, unless the program freed another 32 MB meanwhile.
ADDRESS = "halt_on_error=1:quarantine_size_mb=32:malloc_context_size=12:log_path={log}"
# Each build: the compiler, the options, and the environment for its programs. {log} is the path prefix of the sanitizers' reports.
BUILDS = {
    "build": ("gcc", [], {}),
    "build-address": ("gcc", ["-Db_sanitize=address,undefined", "-Db_lundef=false", *QUICK],
                      {"ASAN_OPTIONS": ADDRESS, "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:log_path={log}"}),
    # This build has no checks of undefined behaviour: they would take a third of the compiler's time, and build-address replays the corpus with them.
    # It is not optimized: the compiler would take twice as long, and the targets run only for some seconds.
    "build-fuzz": ("clang", ["-Dfuzz=true", "-Db_sanitize=address", "-Db_lundef=false", "-Doptimization=0",
                             "-Dc_args=-fsanitize=fuzzer-no-link -g1"],
                   {"ASAN_OPTIONS": ADDRESS}),
    "build-thread": ("gcc", ["-Db_sanitize=thread", "-Db_lundef=false", *QUICK], {"TSAN_OPTIONS": "second_deadlock_stack=1:log_path={log}"}),
}
# The integration tests that run under a sanitizer. test_systemd.py cannot run under the leak sanitizer, because systemd's hardening
# forbids ptrace; test_growth.py measures the processor time, test_openapi_memory.py the memory, test_checker.py runs no server, test_readme.py builds its own, test_documents.py and
# test_quickstart.py are about what people type, and the other three keep the processors busy for minutes with code that other tests cover under
# the sanitizer. Under the thread sanitizer only these files run: they cover how terms begin and end, and reloads.
SANITIZED = {
    "build-address": lambda name: name not in ("test_systemd.py", "test_growth.py", "test_checker.py", "test_large_writes.py", "test_readme.py", "test_documents.py",
                                           "test_quickstart.py", "test_store_commands.py", "test_clients_of_resources.py", "test_openapi_memory.py"),
    "build-thread": lambda name: name in ("test_election.py", "test_faults.py", "test_lifecycle.py", "test_reload.py"),
}
# The integration tests that run a second time over a file of SQLite instead of etcd: those about leases, terms, crashes, watches and what controllers see.
# The others are about requests of clients, which the same code above the storage port handles; HOLDFAST_TEST_STORE=sqlite runs any of them over a file.
# Tests that stop or read etcd itself are skipped there.
ON_SQLITE = ("test_bootstrap.py", "test_consistency.py", "test_controllers.py", "test_coordinated.py", "test_election.py", "test_faults.py",
             "test_field_owner_crashes.py", "test_followed_changes.py", "test_garbage.py", "test_holder_death.py", "test_leases.py", "test_lifecycle.py",
             "test_migration.py", "test_namespaces.py", "test_odd_leases.py", "test_process.py", "test_shards.py", "test_status.py", "test_storm.py", "test_workspaces.py")
# Most integration tests run over etcd only once, with the address sanitizer if sanitizers are wanted: clients see the same server in every build, and the
# plain build also runs the files of ON_SQLITE. The files in PLAIN run over etcd in the plain build too: they measure memory, or they skip tests that
# compilers or runtimes do not allow under a sanitizer.
PLAIN = {"test_embedding.py", "test_host_loops.py", "test_slow_readers.py"}
VALGRIND = "valgrind --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite -q"


def is_about_symbols(report):
    """Whether a sanitizer says no more than that llvm-symbolizer is not installed."""
    return all("external symbolizer" in line for line in report.splitlines())


class Children:
    """The running processes. Each leads its own process group, so that an interrupted run can end
    all that they started."""

    def __init__(self):
        self.mutex = threading.Lock()
        self.running = set()
        self.stopping = False
        self.spent = threading.local()  # .seconds: the CPU time of what this thread ran since it last asked

    def take_cpu_seconds(self):
        """The CPU time of what this thread has run since it last called this."""
        seconds, self.spent.seconds = getattr(self.spent, "seconds", 0), 0
        return seconds

    def run(self, command, log, env=None, limit=STEP_LIMIT):
        with open(log, "ab") as out:
            with self.mutex:
                if self.stopping:
                    return 130
                child = subprocess.Popen([str(c) for c in command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                         env={**os.environ, **(env or {})}, start_new_session=True)
                self.running.add(child)
            try:
                ended = self.wait_unreaped(child, limit)
                if not ended:
                    out.write(f"\ntools/test: ended after {limit} s\n".encode())
                    return 124
                self.spent.seconds = getattr(self.spent, "seconds", 0) + self.cpu_seconds(child.pid)
                return child.wait()
            finally:
                self.end(child)
                with self.mutex:
                    self.running.discard(child)

    @staticmethod
    def wait_unreaped(child, limit):
        """Waits until the process has ended, and leaves it to be waited for: until then the kernel keeps its CPU time. False: it still runs after
        `limit` seconds."""
        deadline = time.monotonic() + limit
        while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    @staticmethod
    def cpu_seconds(pid):
        """The CPU time of an ended process and of all the processes that it and its children waited for."""
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def end(child):
        """Sends SIGINT, and after 15 s kills the process; then kills the rest of its group."""
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(15)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()

    def stop(self):
        with self.mutex:
            self.stopping = True
            left = list(self.running)
        for child in left:
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
        for child in left:
            self.end(child)


class Board:
    """The counts so far, and their output."""

    def __init__(self, children):
        self.children = children
        self.mutex = threading.Lock()
        self.passed = self.failed = self.skipped = 0
        self.late = []  # the tests that passed on their second try only
        self.bad = {}  # of each step that failed: what failed in it
        self.began = time.monotonic()
        self.running = {}
        self.live = sys.stdout.isatty()

    def start(self, name):
        with self.mutex:
            self.running[name] = time.monotonic()

    def done(self, name, passed, failed, skipped=0, log="", names=()):
        with self.mutex:
            if failed:
                self.bad[name] = f"{name} ({', '.join(sorted(names)) or failed})"
            took = time.monotonic() - self.running.pop(name)
            self.passed += passed
            self.failed += failed
            self.skipped += skipped
            many = passed + failed + skipped > 1 or "tests" in name
            counts = (f": {passed} passed" if many else "") + (f", {failed} failed" if failed and many else "") + (f", {skipped} skipped" if skipped else "")
            self.clear()
            print(f"{'FAIL' if failed else 'ok  '}  {name}{counts} ({took:.0f} s, {self.children.take_cpu_seconds():.0f} s of CPU)", flush=True)
            if failed:
                shown = [line for line in log.splitlines() if not PASSED.match(line)]
                print("\n".join("      | " + line for line in shown[-TAIL:]), flush=True)

    def clear(self):
        if self.live:
            print("\r\033[K", end="", flush=True)

    def show_running(self):
        """Shows the running steps, on a terminal only, in one line that the next result replaces."""
        if not self.live:
            return
        with self.mutex:
            now = time.monotonic()
            text = f"{now - self.began:.0f} s: " + ", ".join(f"{name} ({now - at:.0f} s)" for name, at in self.running.items())
            print("\r\033[K" + text[:shutil.get_terminal_size().columns - 1], end="", flush=True)


class Run:
    def __init__(self, kinds, directory):
        self.kinds = kinds
        self.directory = directory
        self.children = Children()
        self.board = Board(self.children)
        self.pool = concurrent.futures.ThreadPoolExecutor(WORKERS)
        self.model = concurrent.futures.ThreadPoolExecutor(1)
        self.jobs = []
        self.again = []  # of each step with failed tests: its name, their names, and the function that runs them again

    def wants(self, kind):
        return kind in self.kinds

    def log(self, name):
        return self.directory / (re.sub(r"[^a-z0-9]+", "-", name.lower())[:200] + ".log")

    # ---- steps ----

    def step(self, name, *commands):
        """Runs the commands of one check. The check passes if all of them succeed."""
        log = self.log(name)
        self.board.start(name)
        good = all(self.children.run(command, log) == 0 for command in commands)
        self.board.done(name, int(good), int(not good), log=log.read_text(errors="replace"))
        return good

    def build(self, build):
        """Configures and builds. Reconfigures an existing directory, because a library may have been installed since."""
        compiler, options, _ = BUILDS[build]
        sanitizer = [f", {option.split('=')[1]} sanitizer" for option in options if option.startswith("-Db_sanitize=")]
        name = f"{build}: built by {compiler}" + "".join(sanitizer)
        log = self.log(name)
        setup = ["env", f"CC={compiler}", "meson", "setup", build, *options]
        self.board.start(name)
        again = ["--reconfigure"] if (ROOT / build / "build.ninja").exists() else []
        status = self.children.run([*setup, *again], log)
        if status != 0 and again:
            status = self.children.run([*setup, "--wipe"], log)
        if status == 0:
            log = self.log(name + " with ninja")
            status = self.children.run(["ninja", "-C", build], log)
        self.board.done(name, int(status == 0), int(status != 0), log=log.read_text(errors="replace"))
        return status == 0

    def reports(self, build):
        """The environment for the programs of `build`, and the directory of its sanitizers' reports."""
        base = tempfile.mkdtemp(prefix="reports-", dir=self.directory)
        return {k: v.format(log=f"{base}/report") for k, v in BUILDS[build][2].items()}, pathlib.Path(base)

    def meson_tests(self, name, build, *selection, names=()):
        log = self.log(name)
        env, reports = self.reports(build)
        if build in SANITIZED or VALGRIND in selection:
            env["HOLDFAST_SCHEDULES"] = "60"  # fewer schedules of fleets: all of them would take minutes here; the plain build runs all
        base = log.stem[:80]  # two runs in one build directory at the same time need logs of their own
        result = ROOT / build / "meson-logs" / (base + ("-valgrind" if VALGRIND in selection else "") + ".json")
        result.unlink(missing_ok=True)
        self.board.start(name)
        status = self.children.run(["meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs", "--num-processes", str(PROCESSES), "--logbase", base, *selection,
                                    *names], log, env)
        results = [json.loads(line) for line in result.read_text().splitlines()] if result.exists() else []
        passed = sum(r["result"] in ("OK", "EXPECTEDFAIL") for r in results)
        skipped = sum(r["result"] == "SKIP" for r in results)
        failed = {r["name"].split(" / ")[-1] for r in results if r["result"] == "FAIL" and r["returncode"] == 1}
        again = (lambda title: self.meson_tests(title, build, *selection, names=failed)) if VALGRIND not in selection and not names else None
        self.close(name, status, passed, len(results) - passed - skipped, skipped, log, reports, failed, again)

    def close(self, name, status, passed, failed, skipped, log, reports, names, again):
        """Ends a step of tests and reports its counts. Without a failed test, the step still counts as one failure if its command failed, if no test
        passed, or if a sanitizer reported something. `again` runs the failed tests `names` again; None: they get no second try."""
        text = log.read_text(errors="replace")
        found = sorted(path for path in reports.iterdir() if not is_about_symbols(path.read_text(errors="replace")))
        for report in found:
            text += f"\n==== {report.name}\n" + report.read_text(errors="replace")
        if failed == 0 and (status != 0 or found or passed == 0):
            text += f"\ntools/test: status {status}, {passed} passed, {len(found)} sanitizer reports"
            failed = 1
        if again and failed > 0 and not found and len(names) == failed:
            self.again.append((name, names, again))
        self.board.done(name, passed, failed, skipped, text, names)

    def second_tries(self):
        """Runs the failed tests once more, one after the other, if they are few and nothing else failed."""
        if sum(len(names) for _, names, _ in self.again) != self.board.failed or not 0 < self.board.failed <= SECOND_TRIES:
            return
        for name, names, again in self.again:
            self.board.failed -= len(names)
            del self.board.bad[name]
            failed = self.board.failed
            again(f"{name}, the second try of {', '.join(sorted(names))}")
            if self.board.failed == failed:
                self.board.late += sorted(names)

    def pytest(self, name, build, path, on_sqlite, ids=()):
        env, reports = self.reports(build)
        log, result = self.log(name), self.log(name).with_suffix(".xml")
        # Some tests have a controller that ignores its tokens; the process then ends while that thread still runs.
        env |= {k: v + ":report_thread_leaks=0" for k, v in env.items() if k == "TSAN_OPTIONS"}
        env |= {"HOLDFAST_BUILD": str(ROOT / build), "PYTHONDONTWRITEBYTECODE": "1", "HOLDFAST_TEST_STORE": "sqlite" if on_sqlite else "etcd"}
        self.board.start(name)
        status = self.children.run([sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", f"--junitxml={result}", *(ids or [path])], log, env)
        passed = failed = skipped = 0
        names = set()
        if result.exists():
            suite = xml.etree.ElementTree.parse(result).getroot().find("testsuite")
            failed = int(suite.get("failures")) + int(suite.get("errors"))
            skipped = int(suite.get("skipped"))
            passed = int(suite.get("tests")) - failed - skipped
            names = {f"{path}::{case.get('name')}" for case in suite if case.find("failure") is not None or case.find("error") is not None}
        again = None if ids else lambda title: self.pytest(title, build, path, on_sqlite, sorted(names))
        self.close(name, status, passed, failed, skipped, log, reports, {node.split("::")[-1] for node in names}, again)

    def integration(self, build, suits=lambda name: True, on_sqlite=False):
        """Gives the test files to the workers, the largest first."""
        files = [f for d in ("integration", "interop", "faults") for f in (ROOT / "tests" / d).glob("test_*.py")]
        for path in sorted(files, key=lambda f: -f.stat().st_size):
            if suits(path.name):
                name = f"{build}: tests/{path.parent.name}/{path.name}" + (" over SQLite" if on_sqlite else "")
                self.jobs.append(self.pool.submit(self.pytest, name, build, path, on_sqlite))

    # ---- the main lane ----

    def main_lane(self):
        if self.wants("form"):
            self.step("form: clang-format", ["bash", "-c", "git ls-files '*.c' '*.h' | xargs -P $(nproc) -n 200 clang-format --dry-run -Werror"])
        if self.kinds & {"unit", "sim", "integration", "valgrind"} and self.build("build"):
            if self.wants("integration"):
                self.integration("build", lambda name: name in PLAIN or not (self.wants("sanitizers") and SANITIZED["build-address"](name)))
                self.integration("build", lambda name: name in ON_SQLITE, on_sqlite=True)
            if self.wants("unit"):
                self.meson_tests("build: unit and house tests, the fuzz targets' corpus", "build", "--suite", "unit", "--suite", "house",
                                 "--suite", "fuzz")
            if self.wants("sim"):
                # The model keeps one processor busy for minutes; neither the main lane nor a worker need wait for it.
                self.jobs.append(self.model.submit(self.meson_tests, "build: the model", "build", "--suite", "model"))
                self.meson_tests("build: simulator tests", "build", "--suite", "sim", "--no-suite", "model")
        if self.wants("sanitizers"):
            for build, suits in SANITIZED.items():
                if self.build(build):
                    self.integration(build, suits)
                    # The programs of the growth suite take minutes under a sanitizer.
                    corpus = ["--suite", "fuzz"] if build == "build-address" else []
                    self.meson_tests(f"{build}: unit tests", build, "--suite", "unit", *corpus, "--no-suite", "growth")
                    # The build with the thread sanitizer contains neither the simulator nor the unit tests that have one thread only.
                    if build != "build-thread":
                        self.meson_tests(f"{build}: simulator tests", build, "--suite", "sim")
            setup = ["env", f"CC={BUILDS['build-fuzz'][0]}", "meson", "setup", "build-fuzz", *BUILDS["build-fuzz"][1]]
            if self.step("build-fuzz: the fuzz targets built by clang", setup, ["ninja", "-C", "build-fuzz", "fuzzers"]):
                self.meson_tests("build-fuzz: fuzz targets, three seconds each", "build-fuzz", "--suite", "fuzz")
        if self.wants("form"):
            if not self.kinds & {"unit", "sim", "integration", "valgrind"}:
                self.build("build")  # for the headers that it makes
            # clang has compiled most sources for the fuzz targets. Of the others only its warnings are wanted.
            again = ["--reconfigure"] if (ROOT / "build-clang" / "build.ninja").exists() else []
            self.step("form: the warnings of clang", ["env", "CC=clang", "meson", "setup", "build-clang", *again],
                      ["tests/lib/check-clang", "build-clang", "build", *(["build-fuzz"] if self.wants("sanitizers") else [])])
            tests = ("server-sdnotify", "server-log-sink")
            # This is a release build too, for its warnings: gcc warns of more when it optimizes and when asserts are left out.
            self.step("form: a release build without libsystemd", ["meson", "setup", "build-without-libsystemd", "-Dsystemd=disabled", "-Dbuildtype=release"],
                      ["ninja", "-C", "build-without-libsystemd", "server/holdfastd", *(f"tests/test-{name}" for name in tests)],
                      ["meson", "test", "-C", "build-without-libsystemd", "--no-rebuild", *tests])
        if self.wants("valgrind") and (ROOT / "build" / "build.ninja").exists():
            self.meson_tests("build: unit tests of one thread under valgrind", "build", "--suite", "one-thread", "--no-suite", "growth", "--no-suite", "costly",
                             "--timeout-multiplier", "2", "--wrapper", VALGRIND)

    def all(self):
        lane = concurrent.futures.ThreadPoolExecutor(1)
        first = lane.submit(self.main_lane)
        try:
            while not first.done() or not all(job.done() for job in self.jobs):
                time.sleep(0.5)
                self.board.show_running()
            for job in [first, *self.jobs]:
                job.result()
            self.second_tries()
        finally:
            self.children.stop()
            self.pool.shutdown(cancel_futures=True)
            self.model.shutdown()
            lane.shutdown()


def interrupted(*_):
    raise KeyboardInterrupt


def main():
    kinds = set(sys.argv[1:]) or {"all"}
    if unknown := kinds - {*KINDS, "all"}:
        print(f"tools/test: unknown kind {sorted(unknown)[0]!r}; there are: {', '.join((*KINDS, 'all'))}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, interrupted)
    with tempfile.TemporaryDirectory(prefix="hf-") as temporary:
        os.environ["TMPDIR"] = temporary  # the tests create all their files in it; it is removed at the end
        directory = pathlib.Path(temporary) / "logs"
        directory.mkdir()
        run = Run(set(KINDS) if "all" in kinds else kinds, directory)
        try:
            run.all()
        except KeyboardInterrupt:
            run.board.clear()
            print("tools/test: interrupted", file=sys.stderr)
            return 130
    board = run.board
    # Who reads only the end of a long log learns here what failed.
    for text in board.bad.values():
        print(f"failed: {text}")
    if board.late:
        print(f"passed on the second try only: {', '.join(board.late)}")
    print(f"took {time.monotonic() - board.began:.0f} s" + (f"; {board.skipped} skipped" if board.skipped else ""))
    print(f"{board.passed} passed, {board.failed} failed")
    return 0 if board.failed == 0 and board.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
