#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""replay.py ELECTION TWO_LEASE SIM FLEETS BUILD: what the code does in simulations, the models must be able to do too.

The simulator prints the steps of some hundred schedules (`sim --steps`): requests that were sent, writes of the Lease that
were applied, terms that began, went on and ended, kills and restarts. For each schedule spin looks for a way in which the
model ELECTION makes exactly these steps in this order. When none exists, model and code have drifted apart. `fleets` does the
same for the lock of two Leases and its model.

Then it shows that it can fail: the steps of code with mistakes (tests/mutants) must not be possible. Exit status 77 (skipped, for meson): spin is not installed.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "mutants"))
sys.dont_write_bytecode = True
import run  # noqa: E402

N_SCHEDULES, SEED = 250, 5000001
N_FLEETS = 30  # of each of the two kinds
# Cores with mistakes that make steps which the model cannot make, within a few schedules.
MUTANTS = ["gate_by_flag", "release_before_join", "skip_compare", "skip_join", "trust_timestamps"]
N_MUTANT_SCHEDULES = 20

# The numbers are those of the models.
FORMER = 3  # the process of a model that stands for all that have died


class Election:
    kinds = {"an acquire": 1, "a renewal": 2, "a release": 3}
    write = 3  # more than the kind of the operation
    steps = {"leads": 7, "extends": 8, "drains": 9, "aborts": 10, "joined": 11, "stops": 12, "stopped": 13, "stuck": 14, "dies": 15,
             "starts": 16, "acts": 17}
    first_start_is_a_step = False


class TwoLeases:
    kinds = {f"{kind} {side}": 2 * n + 1 + m for n, kind in enumerate(["an acquire", "a renewal", "a release", "a return"])
             for m, side in enumerate(["old", "new"])}
    write = 8
    steps = {"leads": 17, "extends": 18, "drains": 19, "aborts": 20, "joined": 21, "stops": 22, "stopped": 23, "released": 24, "dies": 25,
             "starts old": 26, "starts both": 27, "starts new": 28}
    first_start_is_a_step = True


def schedules(text):
    """The lines of each schedule, by its seed."""
    found = {}
    for part in text.split("schedule ")[1:]:
        seed, *lines = part.splitlines()
        found[int(seed)] = lines
    return found


def steps_of(lines, numbers):
    """The steps as the model numbers them: pairs of a step and a process.

    A request that is never applied leaves no trace in the model. The steps of a process that has ended are left out, too: the
    simulator may ask it to stop, or kill what is stuck."""
    applied = {line.split()[2] for line in lines if line.startswith("store writes ")}
    sent, running, newest, steps = {}, {}, {}, []

    def add(step, process):
        repeated = (step, process) == steps[-1] if steps else False
        if not (repeated and step == numbers.steps.get("acts")):  # the last one in a row says the same
            steps.append((step, process))

    for line in lines:
        name, what = line.split(" ", 1)
        if name == "store":
            kind, sender = sent[what.split()[1]]
            # A process that has ended keeps its requests in the model until it is started again.
            add(numbers.write + kind, int(sender[1]) if newest[int(sender[1])] == sender else FORMER)
            continue
        process = int(re.fullmatch(r"e(\d)-\d+", name)[1])
        if what.startswith("starts"):
            if process in running or numbers.first_start_is_a_step:
                add(numbers.steps[what], process)
            running[process] = newest[process] = name
        elif running.get(process) != name:
            continue
        elif what.startswith("sends "):
            _, kind, op = re.fullmatch(r"(sends) (.*) (\d+)", what).groups()
            if op in applied:
                sent[op] = numbers.kinds[kind], name
                add(numbers.kinds[kind], process)
        elif what == "aborts" and steps[-1] == (numbers.steps["joined"], process):
            steps.insert(-1, (numbers.steps["aborts"], process))  # the core ends a term that is over before it handles an event
        elif what == "drains" and steps[-1] == (numbers.steps["stops"], process):
            continue  # one step in the model
        else:
            add(numbers.steps[what], process)
            if what in ("stopped", "released", "stuck", "dies"):
                running[process] = None
    return steps


class Model:
    def __init__(self, model, numbers, directory):
        self.numbers = numbers
        self.program = pathlib.Path(directory) / f"{model.stem}.pan"
        subprocess.run(["spin", "-a", "-DREPLAY", model], cwd=directory, check=True, capture_output=True, timeout=60)
        subprocess.run([shutil.which("gcc") or "cc", "-O1", "-w", "-DNOREDUCE", "-DSAFETY", "-DMEMLIM=1000", "-o", self.program, "pan.c"],
                       cwd=directory, check=True, timeout=120)

    def can_do(self, steps):
        """Returns whether the model has a way of making the steps, and how many it could make."""
        text = subprocess.run([self.program, "-n", "-w16", "-m1000000"], cwd=self.program.parent, capture_output=True, text=True, timeout=120,
                              input="".join(f"{step} {process}\n" for step, process in steps)).stdout
        done = re.search(r"replay: complete, (\d+)", text)
        reached = re.search(r"replay: stuck, (\d+)", text)
        assert done or (reached and "errors: 0" in text and not re.search(r"not completed|too small|out of memory|memory limit", text)), text
        return bool(done), int((done or reached)[1])

    def simulate(self, command, n, good=True):
        """The steps of each schedule, by its seed. Code with a mistake (not good) may end early."""
        text = subprocess.run([*command, "--schedules", str(n), "--seed", str(SEED)], check=good, capture_output=True, text=True, timeout=300).stdout
        return {seed: steps_of(lines, self.numbers) for seed, lines in schedules(text).items()}

    def describe(self, steps, at):
        names = {number: name for name, number in self.numbers.steps.items()}
        for kind, number in self.numbers.kinds.items():
            names[number], names[self.numbers.write + number] = f"sends {kind}", f"applied: {kind}"
        return "\n".join(f"{'-->' if i == at else '   '} process {process} {names[step]}"
                         for i, (step, process) in list(enumerate(steps))[max(0, at - 12):at + 2])

    def check_code(self, command, n):
        found = self.simulate(command, n)
        assert len(found) == n
        for seed, steps in found.items():
            done, reached = self.can_do(steps)
            if not done:
                sys.exit(f"FAIL: the model cannot make step {reached + 1} of\n{self.describe(steps, reached)}\n"
                         f"replay: {' '.join(map(str, command))} --schedules 1 --seed {seed}")
        print(f"{n} schedules, {sum(map(len, found.values()))} steps: the model can make all", flush=True)

    def check_mutant(self, build, name, arguments):
        steps = self.simulate([HERE.parent / "mutants/run.py", "sim", build, name, *arguments], N_MUTANT_SCHEDULES, good=False).values()
        assert steps, name
        n = next((i for i, s in enumerate(steps) if not self.can_do(s)[0]), None)
        assert n is not None, f"the model can make all steps of {name} in {N_MUTANT_SCHEDULES} schedules"
        print(f"{name}: schedule {n + 1} has a step that the model cannot make", flush=True)


def main():
    election, two_lease, sim, fleets, build = (pathlib.Path(a).resolve() for a in sys.argv[1:6])
    if not shutil.which("spin"):
        print("spin is not installed (see tools/deps test): no schedule was replayed")
        return 77
    with tempfile.TemporaryDirectory(prefix="hf-replay-") as directory:
        model = Model(election, Election, directory)
        arguments = ["--steps", "--electors", "3"]
        model.check_code([sim, *arguments], N_SCHEDULES)
        for name in MUTANTS:
            model.check_mutant(build, name, arguments)
        model = Model(two_lease, TwoLeases, directory)
        for fleet in ("old", "new"):
            model.check_code([fleets, fleet], N_FLEETS)
        for name in run.names("fleets"):
            model.check_mutant(build, name, [run.Mutant(name).expect])
    return 0


if __name__ == "__main__":
    sys.exit(main())
