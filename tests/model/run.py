#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""run.py MODEL: spin looks through every state of leader/model/election.pml, and finds each of the mistakes named in it.

Exit status 77 (meson: skipped) where spin is not installed; tools/deps test installs it. The search is exhaustive: whole states
are kept, and a search that ran out of depth or memory is a failure. Less than a minute of one processor, and 400 MB.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

# Each mistake: how it is to be noticed, as spin prints what did not hold.
SAFETY = {
    "M_SKIP_COMPARE": "holder==",          # somebody else's record is written over
    "M_COUNT_FROM_REPLY": ".valid>0",      # two act at once
    "M_GATE_BY_FLAG": ".valid>0",
    "M_TAKE_EARLY": ".valid>0",
    "M_RELEASE_BEFORE_JOIN": ".work",      # a release with the work alive
    "M_SKIP_JOIN": ".work",                # a term begins with the work of the last one alive
    "M_FENCE_IDENTITY_ONLY": "fenced_now", # a deposed leader's write commits
    "M_NO_FENCE": "fenced_now",
}
LIVENESS = {"M_WAIT_FOREVER": "acceptance cycle"}  # nobody leads, although nothing fails any more
LIMIT = 900  # seconds, of one search on a busy machine


def search(model, directory, *defines):
    """Makes the verifier and runs it; (its output, whether it went through all states, whether it found something)."""
    live = "CALM" in defines
    flags = [f"-D{d}" for d in defines]
    subprocess.run(["spin", "-a", *flags, model], cwd=directory, check=True, capture_output=True, timeout=60)
    # The contenders' steps all touch what is shared: there is nothing for the partial order reduction to reduce.
    subprocess.run([shutil.which("gcc") or "cc", "-O0" if any(d.startswith("M_") for d in defines) else "-O2", "-w", "-DNOREDUCE", "-DMEMLIM=3500", *([] if live else ["-DSAFETY"]), "-o", "pan", "pan.c"],
                   cwd=directory, check=True, timeout=120)
    text = subprocess.run(["./pan", "-n", "-m3000000", *(["-a"] if live else [])], cwd=directory, capture_output=True, text=True, timeout=LIMIT).stdout
    errors = re.search(r"errors: (\d+)", text)
    assert errors, f"{defines}: the verifier said\n{text[-2000:]}"
    complete = not re.search(r"not completed|too small|out of memory|memory limit|pan: reached", text)
    return text, complete, errors[1] != "0"


def states(text):
    return int(re.search(r"(\d+) states, stored", text)[1])


def main():
    model = pathlib.Path(sys.argv[1]).resolve()
    if not shutil.which("spin"):
        print("spin is not installed (tools/deps test installs it): the model was not checked")
        return 77
    with tempfile.TemporaryDirectory(prefix="hf-model-") as directory:
        for name, defines in (("safety", ()), ("liveness", ("CALM",))):
            began = time.monotonic()
            text, complete, found = search(model, directory, *defines)
            assert not found, f"{name}: a promise is broken\n{text[:3000]}"
            assert complete, f"{name}: the search did not go through all states\n{text[:3000]}"
            print(f"{name}: {states(text)} states, all of them, no error ({time.monotonic() - began:.0f} s)", flush=True)
        for mutant, sign in (SAFETY | LIVENESS).items():
            text, _, found = search(model, directory, mutant, *(["CALM"] if mutant in LIVENESS else []))
            said = next((line for line in text.splitlines() if line.startswith("pan:1")), "")
            assert found and sign in said, f"{mutant}: not found, or something else was\n{text[:2000]}"
            print(f"{mutant}: found after {states(text)} states", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
