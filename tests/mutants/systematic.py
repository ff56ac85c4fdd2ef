#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Systematic mutants: small mistakes made by rule all over the sources, which the tests must notice.

systematic.py build DIRECTORY                       copies the tree to DIRECTORY with all mistakes in it, compiles it, and
                                                    finds which test reaches which mistake. If it ran before, compiles
                                                    only what has changed since.
    [--scope FOLDER,...] [--tests REGEX]            only mistakes in these folders, and only tests with these names
systematic.py run DIRECTORY [-n 400] [--seed N]     tries a sample; or [--only FILE,...], [--number N,...], [--all]
    [--patience SECONDS] [--jobs N]                 a test counts as hung when it takes this much longer than usual;
                                                    hung tests mostly sleep, so more jobs than processors help
systematic.py show DIRECTORY N...                   shows mistakes by their number
systematic.py check                                 passes when each row of equivalent.tsv is about exactly one mistake

operators.py finds the mistakes. A mistake that no test notices survives, unless equivalent.tsv says why it has no visible
effect. `run` prints the survivors, the mistakes that no test reaches, and each folder's share;
DIRECTORY/results.tsv has the result of every mistake that was tried. When a test fails with a mistake, it runs with it a
second time, so that a flaky test does not notice a mistake by accident. The exit status is 1 when less than 95 % of the
sample is noticed.

This takes long, so no suite runs it: about 2 s for each mistake and processor.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
import operators  # noqa: E402

SCOPE = ["leader", "hooks", "client", "bootstrap", "server/storage", "server/cacher"]
SIM_SCHEDULES = "4000"
THREADS_SEEDS = "500"
LIMIT = 65536
WANTED = 95.0  # per cent


def sources(scope):
    return sorted(path.relative_to(ROOT) for folder in scope for path in (ROOT / folder).rglob("*.c"))


def write_if_changed(path, data):
    if not path.is_file() or path.read_bytes() != data:
        path.write_bytes(data)


def key(mutation):
    return f"{mutation['operator']}\t{mutation['original']}\t{mutation['changed']}"


def function_at(text, position):
    """Returns the name of the function that contains the position, or of the last one before it."""
    names = re.findall(r"^[a-z][^;={}]*?\b(\w+)\([^;{}]*\)[^;{}]*\{", text[:position], re.MULTILINE)
    return names[-1] if names else ""


def find_with_places(text):
    """Returns the mistakes, each with its place. The place is the name of the function; the second of equal mistakes in it has `name#2`."""
    found = [(m, function_at(text, m.begin)) for m in operators.find(text)]
    same = [(function, m.operator, m.original, m.changed) for m, function in found]
    n_same = collections.Counter(same)
    return [(m, function if n_same[same[i]] == 1 else f"{function}#{1 + same[:i].count(same[i])}") for i, (m, function) in enumerate(found)]


# ---- build ----

def write_schema(directory, scope, dropped):
    """Writes the copies with their mistakes. Returns the list of mistakes; its index is the number less one."""
    mutations, number = [], 0
    for name in sources(scope):
        text = (ROOT / name).read_text()
        chosen = []
        for mutation, place in find_with_places(text):
            number += 1
            line = text.count("\n", 0, mutation.begin) + 1
            mutations.append({"number": number, "file": str(name), "line": line, "operator": mutation.operator,
                              "place": place, "original": mutation.original, "changed": mutation.changed,
                              "dropped": number in dropped})
            if number not in dropped:
                chosen.append((number, mutation))
        write_if_changed(directory / "tree" / name, operators.schema(text, chosen).encode())
    assert number < LIMIT
    return mutations


def compile_tree(directory, scope, wanted):
    """Compiles the tests that are wanted, and leaves out the mistakes that do not compile. Returns the list of mistakes."""
    build, dropped = directory / "build", set()
    while True:
        mutations = write_schema(directory, scope, dropped)
        if not build.exists():
            subprocess.run(["meson", "setup", build, directory / "tree", "-Dwerror=false", "-Dwarning_level=0", f"-Dc_args=-include {HERE}/hf_mutant.h -w"],
                           check=True, stdout=subprocess.DEVNULL)
        # The tree may have tests that the build directory does not know yet.
        subprocess.run(["ninja", "-C", build, "build.ninja"], check=True, stdout=subprocess.DEVNULL)
        done = subprocess.run(["ninja", "-k", "0", "-C", build, *targets_of(build, tests_of(build, wanted))], capture_output=True, text=True)
        if done.returncode == 0:
            return mutations
        found = set()
        for file, line in re.findall(r"^(\S+?\.c):(\d+):\d+: error", done.stdout, re.MULTILINE):
            path = (build / file).resolve()
            lines = path.read_text().split("\n")
            at = int(line) - 1
            while at >= 0 and not (numbers := re.findall(r"HF_MUTANT_IS\((\d+)\)", lines[at])):
                at -= 1
            found |= {int(n) for n in numbers}
        if not found - dropped:
            sys.exit(done.stdout[-4000:])
        dropped |= found
        print(f"{len(dropped)} mistakes do not compile")


def introspect(build, what):
    return json.loads(subprocess.run(["meson", "introspect", what, build], capture_output=True, check=True).stdout)


def targets_of(build, tests):
    """Returns the files that the tests need: their programs, and what these start or load."""
    files = {target["id"]: target["filename"] for target in introspect(build, "--targets")}
    return {os.path.relpath(file, build) for test in tests for target in test["depends"] for file in files[target]}


def tests_of(build, wanted):
    """Returns the tests that are run: the unit tests, the simulator, and the scenarios of tests/threads."""
    found = []
    for test in introspect(build, "--tests"):
        argv = test["cmd"]
        if not re.search(wanted, test["name"]):
            continue
        # As with `meson test`: arguments may be relative to the build directory.
        common = {"name": test["name"], "argv": argv, "env": test["env"], "cwd": test["workdir"] or str(build), "depends": test["depends"]}
        if "unit" in " ".join(test["suite"]):
            found.append(common)
        elif test["name"] in ("sim", "sim-seven", "sim-stop-at-each-step"):
            at = argv.index("--schedules")
            argv[at + 1] = "300" if "sweep" in " ".join(argv) else SIM_SCHEDULES
            found.append(common)
        elif test["name"].startswith("threads-") and "--seeds" in argv:
            argv[argv.index("--seeds") + 1] = THREADS_SEEDS
            found.append(common)
    return found


def run_test(test, extra, limit):
    """Returns whether the test passes. A test that hangs is killed with all processes that it started."""
    # As with `meson test`, memory that is freed or not yet set does not read as zeroes.
    environment = {"MALLOC_PERTURB_": "165", **os.environ, **test["env"], **extra}
    with tempfile.TemporaryDirectory(prefix="hf-mutant-") as private:
        environment["TMPDIR"] = private
        process = subprocess.Popen(test["argv"], cwd=test["cwd"], env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            return process.wait(limit) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def trace(directory, mutations, wanted):
    """Runs each test without a mistake, and notes how long it takes and which mistakes it reaches. Returns the tests."""
    tests = tests_of(directory / "build", wanted)
    for test in tests:
        with tempfile.NamedTemporaryFile() as file:
            file.truncate(LIMIT)
            begin = time.monotonic()
            if not run_test(test, {"HF_MUTANT_TRACE": file.name}, 300):
                sys.exit(f"{test['name']} fails without a mistake")
            test["seconds"] = time.monotonic() - begin
            reached = pathlib.Path(file.name).read_bytes()
        test["reaches"] = [m["number"] for m in mutations if reached[m["number"]]]
        print(f"{test['name']}: {test['seconds']:.1f} s, reaches {len(test['reaches'])}")
    return tests


def build(directory, scope, wanted):
    directory.mkdir(parents=True, exist_ok=True)
    tracked = subprocess.run(["git", "-C", ROOT, "ls-files", "-coz", "--exclude-standard"], capture_output=True, check=True).stdout
    with_mistakes = {str(name) for name in sources(scope)}
    for name in tracked.decode().split("\0")[:-1]:
        target = directory / "tree" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file() and name not in with_mistakes:
            write_if_changed(target, (ROOT / name).read_bytes())
            shutil.copymode(ROOT / name, target)
    if (ROOT / ".cache").exists():
        shutil.copytree(ROOT / ".cache", directory / "tree" / ".cache", dirs_exist_ok=True)
    mutations = compile_tree(directory, scope, wanted)
    tests = trace(directory, mutations, wanted)
    (directory / "schema.json").write_text(json.dumps({"mutations": mutations, "tests": tests}))
    print(f"{sum(not m['dropped'] for m in mutations)} mistakes in {len(with_mistakes)} files")


# ---- run ----

def equivalents():
    """Reads equivalent.tsv. Returns the reason of each row by its file, its place and its key()."""
    path, found = HERE / "equivalent.tsv", {}
    for line in path.read_text().split("\n") if path.exists() else []:
        if line and not line.startswith("#"):
            file, place, operator, original, changed, reason = line.split("\t")
            found[file, place, f"{operator}\t{original}\t{changed}"] = reason
    return found


def check_equivalents():
    """Checks that each row is about exactly one mistake. A row about several would excuse too many; a row about none is left over."""
    places, files = collections.Counter(), {file for file, _, _ in equivalents()}
    for file in files:
        text = (ROOT / file).read_text() if (ROOT / file).exists() else ""
        for m, place in find_with_places(text):
            places[file, place, f"{m.operator}\t{m.original}\t{m.changed}"] += 1
    wrong = [(n, row) for row in equivalents() if (n := places[row]) != 1]
    for n, (file, place, rest) in wrong:
        print(f"equivalent.tsv: {n} mistakes are {file} {place}: {rest}")
    return 1 if wrong else 0


def judge(mutation, by_number, patience):
    """Returns the name of a test that notices the mistake, or None."""
    for test in by_number.get(mutation["number"], []):
        extra = {"HF_MUTANT": str(mutation["number"])}
        limit = patience + 4 * test["seconds"]
        if not run_test(test, extra, limit) and not run_test(test, extra, limit):
            return test["name"]
    return None


def sample(mutations, options):
    live = [m for m in mutations if not m["dropped"]]
    if options.number:
        numbers = {int(n) for n in options.number.split(",")}
        return [m for m in live if m["number"] in numbers]
    if options.only:
        live = [m for m in live if any(m["file"].startswith(prefix) for prefix in options.only.split(","))]
    if options.all:
        return live
    return random.Random(options.seed).sample(live, min(options.n, len(live)))


def run(directory, options):
    schema = json.loads((directory / "schema.json").read_text())
    by_number = collections.defaultdict(list)
    for test in sorted(schema["tests"], key=lambda t: t["seconds"]):
        for number in test["reaches"]:
            by_number[number].append(test)
    known, lock = equivalents(), threading.Lock()
    shares = collections.defaultdict(lambda: [0, 0, 0])  # noticed, equivalent, all
    chosen = sample(schema["mutations"], options)
    with open(directory / "results.tsv", "w") as results, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        def one(mutation):
            reason = known.get((mutation["file"], mutation["place"], key(mutation)))
            by = None if reason else judge(mutation, by_number, options.patience)
            word = f"equivalent: {reason}" if reason else by or ("SURVIVES" if by_number.get(mutation["number"]) else "NOT REACHED")
            with lock:
                share = shares["/".join(mutation["file"].split("/")[:-1])]
                share[0] += bool(by)
                share[1] += bool(reason)
                share[2] += 1
                line = f"{mutation['number']}\t{mutation['file']}:{mutation['line']}\t{key(mutation)}\t{word}"
                print(line, file=results, flush=True)
                if not by and not reason:
                    print(line, flush=True)
        for future in [pool.submit(one, mutation) for mutation in chosen]:
            future.result()
    for folder, (noticed, equal, n) in sorted(shares.items()):
        print(f"{folder:24} {noticed:4} of {n - equal:4} noticed, {equal} equivalent")
    noticed, equal, n = (sum(s[i] for s in shares.values()) for i in range(3))
    per_cent = 100.0 * noticed / max(1, n - equal)
    print(f"seed {options.seed}: {noticed} of {n - equal} noticed: {per_cent:.1f} %; {equal} equivalent")
    return 0 if per_cent >= WANTED else 1


def show(directory, numbers):
    schema = json.loads((directory / "schema.json").read_text())
    for number in numbers:
        m = schema["mutations"][number - 1]
        reaching = [t["name"] for t in schema["tests"] if number in t["reaches"]]
        print(f"{number} {m['file']}:{m['line']} {m['operator']}\n  {m['original']}\n  {m['changed']}\n  reached by: {' '.join(reaching)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("check")
    for command in ("build", "run", "show"):
        sub = commands.add_parser(command)
        sub.add_argument("directory", type=pathlib.Path)
        if command == "build":
            sub.add_argument("--scope", default=",".join(SCOPE))
            sub.add_argument("--tests", default="")
        if command == "show":
            sub.add_argument("numbers", type=int, nargs="+")
        if command == "run":
            sub.add_argument("-n", type=int, default=400)
            sub.add_argument("--seed", type=int, default=1)
            sub.add_argument("--only")
            sub.add_argument("--number")
            sub.add_argument("--all", action="store_true")
            sub.add_argument("--patience", type=float, default=10.0)
            sub.add_argument("--jobs", type=int, default=os.cpu_count())
    o = parser.parse_args()
    if o.command == "check":
        return check_equivalents()
    directory = o.directory.resolve()
    if o.command == "build":
        build(directory, o.scope.split(","), o.tests)
    elif o.command == "run":
        return run(directory, o)
    else:
        show(directory, o.numbers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
