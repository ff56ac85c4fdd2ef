#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""replay.py MODEL SIM BUILD: what the code does in the simulator, the model must be able to do too.

The simulator prints the steps of some hundred schedules (`sim --steps`): requests that were sent, writes of the Lease that
were applied, terms that began, went on and ended, kills and restarts. For each schedule spin looks for a way in which the
model makes exactly these steps in this order. When none exists, model and code have drifted apart.

Then it shows that it can fail: the steps of cores with mistakes (tests/mutants) must not be possible. Exit status 77 (skipped, for meson): spin is not installed.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
N_SCHEDULES, SEED = 250, 5000001
# Cores with mistakes that make steps which the model cannot make, within a few schedules.
MUTANTS = ["gate_by_flag", "release_before_join", "skip_compare", "skip_join", "trust_timestamps"]
N_MUTANT_SCHEDULES = 20

# The numbers are those of the model.
KINDS = {"an acquire": 1, "a renewal": 2, "a release": 3}
STEPS = {"leads": 7, "extends": 8, "drains": 9, "aborts": 10, "joined": 11, "stops": 12, "stopped": 13, "stuck": 14, "dies": 15, "starts": 16, "acts": 17}
WRITE = 3  # more than the kind of the operation
FORMER = 3  # the process of the model that stands for all that have died


def schedules(text):
    """The lines of each schedule, by its seed."""
    found = {}
    for part in text.split("schedule ")[1:]:
        seed, *lines = part.splitlines()
        found[int(seed)] = lines
    return found


def steps_of(lines):
    """The steps as the model numbers them: pairs of a step and a process.

    A request that is never applied leaves no trace in the model. The steps of a process that has ended are left out, too: the
    simulator may ask it to stop, or kill what is stuck."""
    applied = {line.split()[2] for line in lines if line.startswith("store writes ")}
    sent, running, newest, steps = {}, {}, {}, []

    def add(step, process):
        repeated = (step, process) == steps[-1] if steps else False
        if not (repeated and step == STEPS["acts"]):  # the last one in a row says the same
            steps.append((step, process))

    for line in lines:
        name, what = line.split(" ", 1)
        if name == "store":
            kind, sender = sent[what.split()[1]]
            # A process that has ended keeps its requests in the model until it is started again.
            add(WRITE + kind, int(sender[1]) if newest[int(sender[1])] == sender else FORMER)
            continue
        process = int(re.fullmatch(r"e(\d)-\d+", name)[1])
        if what == "starts":
            if process in running:
                add(STEPS["starts"], process)
            running[process] = newest[process] = name
        elif running.get(process) != name:
            continue
        elif what.startswith("sends "):
            _, kind, op = re.fullmatch(r"(sends) (.*) (\d+)", what).groups()
            if op in applied:
                sent[op] = KINDS[kind], name
                add(KINDS[kind], process)
        elif what == "aborts" and steps[-1] == (STEPS["joined"], process):
            steps.insert(-1, (STEPS["aborts"], process))  # the core ends a term that is over before it handles an event
        elif what == "drains" and steps[-1] == (STEPS["stops"], process):
            continue  # one step in the model
        else:
            add(STEPS[what], process)
            if what in ("stopped", "stuck", "dies"):
                running[process] = None
    return steps


class Model:
    def __init__(self, model, directory):
        self.directory = directory
        subprocess.run(["spin", "-a", "-DREPLAY", model], cwd=directory, check=True, capture_output=True, timeout=60)
        subprocess.run([shutil.which("gcc") or "cc", "-O1", "-w", "-DNOREDUCE", "-DSAFETY", "-DMEMLIM=1000", "-o", "pan", "pan.c"],
                       cwd=directory, check=True, timeout=120)

    def can_do(self, steps):
        """Returns whether the model has a way of making the steps, and how many it could make."""
        text = subprocess.run(["./pan", "-n", "-w16", "-m100000"], cwd=self.directory, capture_output=True, text=True, timeout=120,
                              input="".join(f"{step} {process}\n" for step, process in steps)).stdout
        done = re.search(r"replay: complete, (\d+)", text)
        reached = re.search(r"replay: stuck, (\d+)", text)
        assert done or (reached and "errors: 0" in text and not re.search(r"not completed|too small|out of memory|memory limit", text)), text
        return bool(done), int((done or reached)[1])


def simulate(command, n, seed=SEED):
    text = subprocess.run([*command, "--steps", "--electors", "3", "--schedules", str(n), "--seed", str(seed)], check=True,
                          capture_output=True, text=True, timeout=300).stdout
    return {seed: steps_of(lines) for seed, lines in schedules(text).items()}


def describe(steps, at):
    names = {number: name for name, number in STEPS.items()}
    for kind, number in KINDS.items():
        names[number], names[WRITE + number] = f"sends {kind}", f"applied: {kind}"
    return "\n".join(f"{'-->' if i == at else '   '} process {process} {names[step]}" for i, (step, process) in list(enumerate(steps))[max(0, at - 12):at + 2])


def check_code(model, sim):
    found = simulate([sim], N_SCHEDULES)
    assert len(found) == N_SCHEDULES
    for seed, steps in found.items():
        done, reached = model.can_do(steps)
        if not done:
            sys.exit(f"FAIL: the model cannot make step {reached + 1} of\n{describe(steps, reached)}\n"
                     f"replay: sim --seed {seed} --electors 3 --steps --schedules 1")
    print(f"{len(found)} schedules, {sum(map(len, found.values()))} steps: the model can make all", flush=True)


def check_mutant(model, build, name):
    steps = simulate([HERE.parent / "mutants/run.py", "sim", build, name], N_MUTANT_SCHEDULES).values()
    n = next((i for i, s in enumerate(steps) if not model.can_do(s)[0]), None)
    assert n is not None, f"the model can make all steps of {name} in {N_MUTANT_SCHEDULES} schedules"
    print(f"{name}: schedule {n + 1} has a step that the model cannot make", flush=True)


def main():
    model_file, sim, build = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
    if not shutil.which("spin"):
        print("spin is not installed (see tools/deps test): no schedule was replayed")
        return 77
    with tempfile.TemporaryDirectory(prefix="hf-replay-") as directory:
        model = Model(model_file, directory)
        check_code(model, sim)
        for name in MUTANTS:
            check_mutant(model, build, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
