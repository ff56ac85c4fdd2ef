#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_run.py BUILD: checks that the runner of the mutants refuses bad patches, and that it
refreshes patches.

It works on copies of one patch, in a temporary directory.
"""
import contextlib
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import run  # noqa: E402

GOOD = (run.HERE / "take_early.patch").read_text()
ADDED = re.search(r"^\+ .*\n", GOOD, re.MULTILINE)[0]


def attempt(function, *arguments):
    """Calls the function. Returns the message of the run.Failure that it raises and what it printed, or None without a failure."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            function(*arguments)
        except run.Failure as failure:
            return f"{failure}\n{said.getvalue()}"
    return None


def check_refusals(build):
    def refused(text, why):
        assert text != GOOD, f"nothing was changed for: {why}"
        (run.HERE / "x.patch").write_text(text)
        said = attempt(run.check, build, "x")
        assert said and why in said, f"expected: {why}, got: {said}"

    (run.HERE / "x.patch").write_text(GOOD)
    assert attempt(run.check, build, "x") is None, "the patch itself is refused"
    context = re.findall(r"^ .+\n", GOOD, re.MULTILINE)
    refused(GOOD.replace(context[0], context[0].replace("\n", " /* other */\n"), 1), "not apply")
    refused(GOOD.replace(ADDED, ADDED.replace(";", "")), "error:")
    refused(GOOD.replace(ADDED, ADDED + "+        int unused;\n", 1)
            .replace(re.findall(r"@@ .*? @@", GOOD)[-1], longer(GOOD)), "unused variable")
    refused(re.sub(r"^Expect: .*$", "Expect: P6", GOOD, flags=re.MULTILINE), "not caught")
    refused(GOOD.replace("renew_deadline;", "lease_duration;"), "not caught")
    refused(GOOD.replace("leader/core_lease.c", "leader/core_lease.h"), "something else")
    refused(re.sub(r"^Expect: .*\n", "", GOOD, flags=re.MULTILINE), "is expected")
    assert attempt(run.complete, "sim", ["y"]), "a patch that no test runs is not noticed"


def longer(text):
    """Changes the head of the last hunk, so that it announces one line more."""
    head = re.findall(r"@@ .*? @@", text)[-1]
    return re.sub(r"\+(\d+),(\d+)", lambda m: f"+{m[1]},{int(m[2]) + 1}", head)


def git(*arguments):
    subprocess.run(["git", "-C", run.ROOT, "-c", "user.name=x", "-c", "user.email=x@localhost",
                    *arguments], check=True, capture_output=True)


def check_refresh(root):
    """Changes the source of a patch: renames a member and wraps the patched lines differently. Checks that `refresh` follows."""
    source = run.ROOT / "leader" / "core_lease.c"
    source.parent.mkdir()
    shutil.copyfile(root / "leader" / "core_lease.c", source)
    shutil.copyfile(root / ".clang-format", run.ROOT / ".clang-format")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "before")
    style = (root / ".clang-format").read_text()
    (run.ROOT / ".clang-format").write_text(re.sub(r"ColumnLimit: \d+", "ColumnLimit: 60", style))
    source.write_text(source.read_text().replace("observed_at", "seen_first_at"))
    subprocess.run(["clang-format", "-i", source], check=True)
    assert "seen_first_at +\n" in source.read_text(), "the lines of the mutant were not broken"
    git("commit", "-qam", "after")

    patch = run.HERE / "x.patch"
    patch.write_text(GOOD)
    assert attempt(run.refresh, [], None), "a patch that cannot be rebased is not reported"
    assert patch.read_text() == GOOD, "a patch that cannot be rebased was changed"
    assert attempt(run.refresh, [], "sed -i s/observed_at/seen_first_at/g") is None
    text = patch.read_text()
    assert text.startswith(GOOD.partition("--- a/")[0]), f"the head of the patch was lost:\n{text}"
    with tempfile.TemporaryDirectory() as directory:
        run.copy_sources(["leader/core_lease.c"], directory)
        said, applied = run.Mutant("x").apply(directory)
        patched = (pathlib.Path(directory) / "leader" / "core_lease.c").read_text()
    assert applied, said
    assert "".join(ADDED[1:].split()).replace("observed_at", "seen_first_at") in "".join(
        patched.split()), f"the mistake was lost:\n{text}"
    source.write_text("/* nothing is left */\n")
    assert attempt(run.refresh, [], None), "a patch of lost lines is not reported"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    root = run.ROOT
    with tempfile.TemporaryDirectory(prefix="hf-mutant-") as directory:
        run.HERE = pathlib.Path(directory)
        run.N_SCHEDULES = 200
        check_refusals(build)
        if not shutil.which("clang-format") or not shutil.which("git"):
            print("clang-format or git is missing: refresh was not checked")
            return 0
        run.ROOT = pathlib.Path(directory)
        check_refresh(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
