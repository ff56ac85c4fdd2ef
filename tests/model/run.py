#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""run.py ELECTION TWO_LEASE: spin searches every state of the models, and finds each mistake that they name.

The models are leader/model/election.pml and two_lease.pml. The search is exhaustive: spin keeps whole states, and a
search that runs out of depth or memory is a failure. It takes a minute and a half of one processor,
and 600 MB. Exit status 77 (skipped, for meson): spin is not installed; `tools/deps test` does that.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

# For each mistake, parts of the assertions of which spin must report one as violated.
SAFETY = {
    "M_SKIP_COMPARE": "holder==",          # the record of another holder is overwritten
    "M_COUNT_FROM_REPLY": ".valid>0",      # two contenders may act at once
    "M_GATE_BY_FLAG": ".valid>0",
    "M_TAKE_EARLY": ".valid>0|holder==",   # or the one that still acts renews a Lease that was taken from it
    "M_BELIEVE_LATE": ".valid>0|holder==",
    "M_RELEASE_BEFORE_JOIN": ".work",      # the Lease is released while the work is alive
    "M_SKIP_JOIN": ".work",                # a term begins while the work of the previous one is alive
    "M_FENCE_IDENTITY_ONLY": "fenced_now", # a write of a previous leader commits
    "M_NO_FENCE": "fenced_now",
}
UNFENCED = {
    "M_RELEASE_UNSETTLED": "fenced_by",    # the Lease is released while a write of the term is on its way
    "M_LEAD_UNSETTLED": "fenced_by",       # a term begins while a write of the last one is on its way
}
LIVENESS = {"M_WAIT_FOREVER": "acceptance cycle"}  # no contender leads, although nothing fails any more
# The lock of two Leases. For each mistake, which processes run together, and what is then reported.
TWO_LEASE = {
    "M_VALID_FROM_SECOND": ("OLD_FLEET", ".valid>0"),    # the old Lease expires while its leader still acts
    "M_FENCE_NEW_ONLY": ("OLD_FLEET", ".valid>0"),       # a write commits while the holder of the old Lease acts
    "M_RELEASE_OWN_ONLY": ("OLD_FLEET", "holder[0]!="),  # a Lease is held by a process that has released it
    "M_LEAD_BY_OLD": ("NEW_FLEET", ".valid>0"),          # the holder of the new Lease still acts
    "M_RENEW_OLD_ONLY": ("NEW_FLEET", ".valid>0"),
    "M_WAIT_FOR_OLD": ("NEW_FLEET", ".valid>0"),         # the new Lease is taken while its holder renews it
    "M_NEW_REVISION": ("NEW_FLEET", ".valid>0"),
}
LIMIT = 900  # seconds for one search, on a busy machine


def search(model, directory, *defines):
    """Builds the verifier and runs it. Returns its output, whether it searched all states, and
    whether it found a violation."""
    live = "CALM" in defines
    flags = [f"-D{d}" for d in defines]
    subprocess.run(["spin", "-a", *flags, model], cwd=directory, check=True, capture_output=True, timeout=60)
    # Partial order reduction would gain nothing: every step of a contender touches shared state.
    # A mistake is found soon, so it is not worth an optimised build.
    optimise = "-O0" if any(d.startswith("M_") for d in defines) else "-O2"
    subprocess.run([shutil.which("gcc") or "cc", optimise, "-w", "-DNOREDUCE", "-DMEMLIM=3500",
                    *([] if live else ["-DSAFETY"]), "-o", "pan", "pan.c"],
                   cwd=directory, check=True, timeout=120)
    text = subprocess.run(["./pan", "-n", "-m3000000", *(["-a"] if live else [])], cwd=directory,
                          capture_output=True, text=True, timeout=LIMIT).stdout
    errors = re.search(r"errors: (\d+)", text)
    assert errors, f"{defines}: the verifier printed\n{text[-2000:]}"
    limits = r"not completed|too small|out of memory|memory limit|pan: reached"
    complete = not re.search(limits, text)
    return text, complete, errors[1] != "0"


def states(text):
    return int(re.search(r"(\d+) states, stored", text)[1])


def check_all(model, directory, searches):
    for name, defines in searches:
        began = time.monotonic()
        text, complete, found = search(model, directory, *defines)
        assert not found, f"{name}: a promise is broken\n{text[:3000]}"
        assert complete, f"{name}: the search is not complete\n{text[:3000]}"
        took = time.monotonic() - began
        print(f"{name}: all {states(text)} states, no error ({took:.0f} s)", flush=True)


def check_mistake(model, directory, mistake, sign, *defines):
    text, _, found = search(model, directory, mistake, *defines)
    reported = next((line for line in text.splitlines() if line.startswith("pan:1")), "")
    assert found and any(part in reported for part in sign.split("|")), f"{mistake}: not found\n{text[:2000]}"
    print(f"{mistake}: found after {states(text)} states", flush=True)


def main():
    election, two_lease = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    if not shutil.which("spin"):
        print("spin is not installed (see tools/deps test): the models were not checked")
        return 77
    with tempfile.TemporaryDirectory(prefix="hf-model-") as directory:
        check_all(election, directory, (("safety", ()), ("unfenced", ("UNFENCED",)), ("liveness", ("CALM",))))
        for mistake, sign in (SAFETY | UNFENCED | LIVENESS).items():
            more = ["CALM"] if mistake in LIVENESS else ["UNFENCED"] if mistake in UNFENCED else []
            check_mistake(election, directory, mistake, sign, *more)
        check_all(two_lease, directory, ((fleet, (fleet,)) for fleet in ("OLD_FLEET", "NEW_FLEET", "PAIR_FLEET")))
        for mistake, (fleet, sign) in TWO_LEASE.items():
            check_mistake(two_lease, directory, mistake, sign, fleet)
        # Processes that know only the old Lease and such that know only the new one must never run together.
        check_mistake(two_lease, directory, "NEW_FLEET", ".valid>0", "OLD_FLEET")
    return 0


if __name__ == "__main__":
    sys.exit(main())
