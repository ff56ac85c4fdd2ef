#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the scheduler of threads itself.

check_threads.py planted THREADS    passes when each planted mistake (planted.c) is found and its report says what it is
check_threads.py replay THREADS     passes when each seed repeats its schedule in another process
check_threads.py complete THREADS NAME...    passes when NAME... are all scenarios without planted mistakes
"""
import subprocess
import sys

# Texts that the report must contain: the reason, and for some the place where a thread is.
PLANTED = {
    "planted-lost-wake": ["a deadlock", "main: waits for a condition variable", "planted_lost_wake at planted.c"],
    "planted-late-signal": ["a condition variable is used after it was destroyed", "set_and_signal_late at planted.c"],
    "planted-lock-order": ["a deadlock", "main: waits for a mutex", "lock_backwards at planted.c"],
    "planted-flag": ["n_counted == 2"],
    "planted-thread-left": ["was not joined"],
    "planted-spin": ["the threads run without end", "never_set at planted.c"],
}


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True)


def scenarios(threads):
    return run(threads, "--list").stdout.split()


def planted(threads):
    known = [name for name in scenarios(threads) if name.startswith("planted-")]
    assert sorted(known) == sorted(PLANTED), f"there are {known}"
    for name, texts in PLANTED.items():
        found = run(threads, name)
        assert found.returncode == 1, f"{name} was not found: {found.stdout}"
        for text in texts:
            assert text in found.stderr, f"{name}: no '{text}' in\n{found.stderr}"
        # The seed in the report repeats the failure, with the same first line of the report.
        seed = found.stderr.partition("--seed ")[2].split()[0]
        again = run(threads, name, "--seed", seed)
        assert again.returncode == 1 and again.stderr.split("\n")[0] == found.stderr.split("\n")[0], again.stderr
        print(f"{name}: seed {seed}")


def replay(threads):
    for name in scenarios(threads):
        if name.startswith("planted-"):
            continue
        together = run(threads, name, "--seeds", "20", "--hash").stdout
        alone = "".join(run(threads, name, "--seed", str(seed), "--hash").stdout for seed in range(1, 21))
        assert together == alone, f"{name}:\n{together}\n{alone}"
        hashes = {line.split()[2] for line in together.splitlines()}
        assert len(hashes) == 20, f"{name}: several seeds make the same schedule"


def complete(threads, given):
    known = [name for name in scenarios(threads) if not name.startswith("planted-")]
    assert sorted(given) == sorted(known), f"there are {known}, and the tests run {given}"


if __name__ == "__main__":
    what, program, *names = sys.argv[1:]
    if what == "complete":
        complete(program, names)
    else:
        {"planted": planted, "replay": replay}[what](program)
