#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Mutants: deliberate mistakes. The simulator must find each one in the election's core, the scheduler
of threads (tests/threads) each one in threads/, and tests/model/replay.py each one in fleets/.

run.py list                                 shows each mutant and its mistake
run.py names PROGRAM                        for the build files; PROGRAM is sim, threads or fleets
run.py check BUILD NAME                     passes when the program catches the mutant
run.py sim BUILD NAME [ARGUMENT...]         runs the program with the mutant, e.g. --seed 5 --trace
run.py complete PROGRAM NAME...             passes when NAME... are all mutants of PROGRAM
run.py refresh [--with COMMAND] [NAME...]   rewrites the patches against the present sources

A mutant is a file NAME.patch. It begins with a text that describes the mistake. Then come

    Expect: P1,P2               the promises of which the simulator must find one broken
    Sim-Options: --by-effect    options that the simulator needs for it (this line may be missing)

and a unified diff. In place of these two lines, a mutant threads/NAME.patch has

    Scenario: hooks-stop        the scenario of tests/threads that must fail

and a mutant fleets/NAME.patch, which changes the lock of two Leases, has

    Fleet: old                  the fleet of tests/model/fleets.c; the model must refuse its steps

The runner copies the sources that the diff names, patches and compiles the copies, and links them
with the program that was built in BUILD (a build directory). The sources themselves are never
changed. A mutant fails when its patch does not apply exactly, when it
does not compile without a warning, and when the simulator does not catch it.

Use `refresh` after a change of the core. It rewrites a patch that still applies, merges
one that applied to an earlier commit, or applies it with fuzz, in this order, and reports the
patches that must be edited by hand. For the merge it formats the old sources as clang-format formats the
present ones. COMMAND is run on the copies of the old sources, to repeat a change that was made to the
present ones: --with 'sed -i s/old_name/new_name/g'.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
N_SCHEDULES = 20000
# The smallest number of mutants, so that none gets lost unnoticed; reduce it when you remove one.
N_AT_LEAST = {"sim": 26, "threads": 44, "fleets": 3}
# The path of each program in the build directory, and the sources that its patches may change.
OUTPUTS = {"sim": "tests/sim/sim", "threads": "tests/threads/threads", "fleets": "tests/sim/fleets"}
SOURCES = {"sim": r"leader/\w+\.c", "threads": r"(base|hooks|client|leader|server/(controllers/kinds|cacher/\w+|storage(/memory)?))/\w+\.c",
           "fleets": r"leader/\w+\.c"}
# The line of a patch that says what must catch the mutant.
EXPECTS = {"sim": "Expect", "threads": "Scenario", "fleets": "Fleet"}


class Failure(Exception):
    pass


def directory_of(program):
    return HERE if program == "sim" else HERE / program


class Mutant:
    def __init__(self, name):
        self.name = name
        found = [p for p in OUTPUTS if (directory_of(p) / f"{name}.patch").exists()]
        if not found:
            raise Failure(f"there is no {HERE.relative_to(ROOT)}/{name}.patch")
        self.program = found[0]
        self.path = directory_of(self.program) / f"{name}.patch"
        self.text = self.path.read_text()
        self.head, _, _ = self.text.partition("--- a/")
        self.files = re.findall(r"^\+\+\+ b/(\S+)", self.text, re.MULTILINE)
        self.expect = self.field(EXPECTS[self.program])
        self.mistake = " ".join(re.split(r"\n(?:Expect|Scenario|Fleet):", self.head)[0].split())
        self.options = (self.field("Sim-Options") or "").split()
        if not self.mistake or not self.expect:
            raise Failure(f"{self.path.name} does not say what the mistake is, or what is expected")
        if not self.files or not all(re.fullmatch(SOURCES[self.program], f) for f in self.files):
            raise Failure(f"{self.path.name} changes something else than {SOURCES[self.program]}")

    def field(self, name):
        match = re.search(rf"^{name}: (.+)$", self.head, re.MULTILINE)
        return match and match[1].strip()

    def arguments(self):
        """Returns the arguments with which the program must catch the mutant."""
        if self.program == "threads":
            return [self.expect, "--seeds", str(5 * N_SCHEDULES)]  # its schedules are short
        return [*self.options, "--expect", self.expect, "--schedules", str(N_SCHEDULES)]

    def apply(self, directory, fuzz=0):
        """Patches the copies in directory. Returns the output of `patch`, and whether it succeeded."""
        command = ["patch", "-p1", f"-F{fuzz}", "--force", "--no-backup-if-mismatch", "-r", "-"]
        done = subprocess.run([*command, "-d", directory, "-i", self.path],
                              capture_output=True, text=True)
        return done.stdout + done.stderr, done.returncode == 0


def names(program):
    return sorted(path.stem for path in directory_of(program).glob("*.patch"))


def all_names():
    return [name for program in OUTPUTS for name in names(program)]


def copy_sources(files, directory):
    for name in files:
        if not (ROOT / name).exists():
            raise Failure(f"there is no {name}")
        target = pathlib.Path(directory) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)


# ---- build and run ----

def commands_of(build):
    """Returns the commands with which BUILD compiles and links, in ninja's form: each has its "file", "output" and "command"."""
    done = subprocess.run(["ninja", "-C", build, "-t", "compdb", "-x", "c_COMPILER", "c_LINKER"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{build} is not a build directory:\n{done.stderr}")
    return json.loads(done.stdout)


def run_tool(build, argv):
    done = subprocess.run(argv, cwd=build, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{shlex.join(argv)}\n{done.stdout}{done.stderr}")


def find_command(commands, is_wanted):
    for command in commands:
        if is_wanted(command):
            return shlex.split(command["command"])
    raise Failure("the build directory does not know the program, or a source that is patched")


def compile_copy(build, commands, mutant, name, directory):
    """Compiles a patched copy with the flags of its original. Returns the path of the object file, and
    that of the original's."""
    # The build may compile the source twice: for the library, and again for the program. The program's own command comes first.
    own = OUTPUTS[mutant.program] + ".p/"
    commands = sorted(commands, key=lambda c: own not in c["output"])
    argv = find_command(commands, lambda c: (build / c["file"]).resolve() == ROOT / name)
    original = argv[argv.index("-o") + 1]
    for flag in ("-MQ", "-MF", "-o", "-c"):
        at = argv.index(flag)
        del argv[at:at + 2]
    argv = [a for a in argv if a not in ("-MD", "-fdiagnostics-color=always")]
    copy = pathlib.Path(directory) / name
    target = str(copy.with_suffix(".o"))
    # The copy has no assertions: the simulator or the model must catch the mistake itself. For tests/threads they stay: there, a
    # failed assertion is a way to catch a mistake, and the scheduler must find the interleaving in which it fails.
    flags = [] if mutant.program == "threads" else ["-DNDEBUG"]
    run_tool(build, [*argv, *flags, "-o", target, "-c", str(copy)])
    return target, original


def link(build, commands, mutant, copies, directory):
    """Links as the program is linked. The patched objects come first, so the linker does not take
    the original ones from the library."""
    argv = find_command(commands, lambda c: c["output"].endswith(OUTPUTS[mutant.program]))
    target = str(pathlib.Path(directory) / mutant.program)
    originals = [original for _, original in copies]
    argv = [a for a in argv if a not in originals]
    objects = [copy for copy, _ in copies]
    at = argv.index("-o")
    argv[at:at + 2] = ["-o", target, *objects]
    run_tool(build, argv)
    return target


def make(build, mutant, directory):
    """Builds the program with the mutant in it, in directory. Returns its path."""
    build = pathlib.Path(build).resolve()
    copy_sources(mutant.files, directory)
    said, applied = mutant.apply(directory)
    if not applied:
        raise Failure(f"the patch does not apply (tests/mutants/run.py refresh may help):\n{said}")
    commands = commands_of(build)
    copies = [compile_copy(build, commands, mutant, name, directory) for name in mutant.files]
    return link(build, commands, mutant, copies, directory)


def check(build, name):
    mutant = Mutant(name)
    if mutant.program == "fleets":
        raise Failure("tests/model/replay.py tries the mutants of fleets")
    with tempfile.TemporaryDirectory(prefix="hf-mutant-") as directory:
        program = make(build, mutant, directory)
        # The threads program notices the use of what was destroyed by the bytes that it has left there, so freed memory must stay as it is.
        env = {name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"}
        done = subprocess.run([program, *mutant.arguments()], capture_output=True, text=True, env=env)
    command = f"replay: tests/mutants/run.py sim {os.path.relpath(build, ROOT)} {name} "
    print(f"{name}: {mutant.mistake}")
    said = re.sub(r"replay: (sim|threads) ", command, done.stdout + done.stderr)
    print(said)
    # With --expect, the simulator exits with 0 when the mutant breaks the expected promise.
    is_caught = done.returncode == 0
    if mutant.program == "threads":
        is_caught = done.returncode == 1 and "replay: " in said
    if not is_caught:
        raise Failure(f"{mutant.program} has not caught {name} (exit status {done.returncode})")


def sim(build, name, arguments):
    mutant = Mutant(name)
    with tempfile.TemporaryDirectory(prefix="hf-mutant-") as directory:
        program = make(build, mutant, directory)
        return subprocess.run([program, *mutant.options, *arguments]).returncode


def complete(program, given):
    known = names(program)
    if sorted(given) != known:
        raise Failure(f"there are {known}, and the tests run {sorted(given)}: configure anew")
    if len(known) < N_AT_LEAST[program]:
        raise Failure(f"only {len(known)} mutants")
    for name in known:
        Mutant(name)


# ---- refresh ----

def read(path):
    return pathlib.Path(path).read_text()


def git(*arguments):
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def format_copy(name, path):
    if shutil.which("clang-format"):
        style = f"--assume-filename={ROOT / name}"
        done = subprocess.run(["clang-format", style], input=read(path), capture_output=True,
                              text=True, check=True)
        path.write_text(done.stdout)


def patched_as_of(mutant, revision, base, mutated):
    """Fills base and mutated with the sources of a commit, and patches those in mutated. Returns whether the patch applied exactly."""
    for directory in (base, mutated):
        for name in mutant.files:
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(git("show", f"{revision}:{name}"))
    return mutant.apply(mutated)[1]


def merge(mutant, current, directory, command):
    """Merges the present sources and the mutant as of the last commit to which its patch
    applied. Returns that commit, or None and leaves `current` unchanged."""
    for revision in git("rev-list", "HEAD", "--", *mutant.files).split():
        base, mutated = (directory / f"{revision}-{side}" for side in ("base", "mutated"))
        if patched_as_of(mutant, revision, base, mutated):
            break
    else:
        return None
    merged = {}
    for name in mutant.files:
        for side in (base, mutated):
            if command:
                subprocess.run([*shlex.split(command), side / name], check=True)
            format_copy(name, side / name)
        done = subprocess.run(["git", "merge-file", "-p", current / name, base / name,
                               mutated / name], capture_output=True, text=True)
        if done.returncode != 0:
            return None
        merged[name] = done.stdout
    for name, text in merged.items():
        (current / name).write_text(text)
    return revision


def diff(name, mutated):
    done = subprocess.run(["diff", "-up", "--label", f"a/{name}", "--label", f"b/{name}",
                           ROOT / name, mutated / name], capture_output=True, text=True)
    return done.stdout


def refresh_one(name, command):
    """Returns a description of what was done."""
    mutant = Mutant(name)
    with tempfile.TemporaryDirectory(prefix="hf-mutant-") as temporary:
        directory = pathlib.Path(temporary)
        mutated = directory / "mutated"
        copy_sources(mutant.files, mutated)
        how = "it applied"
        if not mutant.apply(mutated)[1]:
            copy_sources(mutant.files, mutated)
            revision = merge(mutant, mutated, directory, command)
            how = f"merged from {revision and revision[:10]}"
            if not revision:
                said, applied = mutant.apply(mutated, fuzz=3)
                how = "applied with fuzz, look at it"
                if not applied:
                    raise Failure(f"cannot be rebased:\n{said}")
        diffs = [diff(file, mutated) for file in mutant.files]
    if not all(diffs):
        raise Failure("changes nothing any more")
    text = mutant.head + "".join(diffs)
    if text == mutant.text:
        return "unchanged"
    mutant.path.write_text(text)
    return f"rewritten ({how})"


def refresh(wanted, command):
    n_failed = 0
    for name in wanted or all_names():
        try:
            print(f"{name}: {refresh_one(name, command)}")
        except Failure as failure:
            n_failed += 1
            print(f"FAIL {name}: {failure}")
    if n_failed:
        raise Failure(f"{n_failed} patches are left to be rewritten by hand")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("list")
    commands.add_parser("names").add_argument("program", choices=OUTPUTS)
    for command in ("check", "sim"):
        sub = commands.add_parser(command)
        sub.add_argument("build")
        sub.add_argument("name")
    sub.add_argument("arguments", nargs=argparse.REMAINDER)
    sub = commands.add_parser("complete")
    sub.add_argument("program", choices=OUTPUTS)
    sub.add_argument("names", nargs="*")
    sub = commands.add_parser("refresh")
    sub.add_argument("--with", dest="with_command", metavar="COMMAND")
    sub.add_argument("names", nargs="*")
    o = parser.parse_args()
    try:
        if o.command == "list":
            for name in all_names():
                print(f"{name:24} {Mutant(name).mistake.partition('. ')[0].rstrip('.')}")
        elif o.command == "names":
            print(*names(o.program))
        elif o.command == "check":
            check(o.build, o.name)
        elif o.command == "sim":
            return sim(o.build, o.name, o.arguments)
        elif o.command == "complete":
            complete(o.program, o.names)
        else:
            refresh(o.names, o.with_command)
    except Failure as failure:
        print(f"FAIL: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
