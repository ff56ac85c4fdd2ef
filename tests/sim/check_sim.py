#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks of the simulator itself.

check_sim.py product SIM-MUTANTS FILE...   the switch of the deliberate faults is in SIM-MUTANTS and in no FILE
check_sim.py mutants SIM-MUTANTS MESON     each fault that the program knows is tried by a test, and at least twelve are
check_sim.py timeline SIM-MUTANTS          what a caught fault draws is well-formed, says what was broken and where
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def output(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True, timeout=240).stdout


def has_switch(path):
    return re.search(r"\bhf__mutant\b", output("nm", path)) is not None


def product(mutants, *files):
    assert has_switch(mutants), "the check itself finds nothing"
    for path in files:
        assert not has_switch(path), f"{path} has the switch of the deliberate faults in it"


def names(program):
    return [line.split()[0] for line in output(program, "--list").splitlines()]


def mutants(program, meson):
    known, tried = names(program), re.findall(r"'([a-z_]+)'", pathlib.Path(meson).read_text().split("foreach mutant :")[1].split("]")[0])
    assert sorted(known) == sorted(tried), f"known: {sorted(known)}, tried: {sorted(tried)}"
    assert len(known) >= 12, f"only {len(known)} faults"


def timeline(program):
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "timeline.svg"
        for mutant in ("keep_old_history", "fence_identity_only", "release_before_join"):
            caught = output(program, "--mutant", mutant, "--schedules", "20000")
            seed, what = re.search(r"caught at seed (\d+), .*? s: (.*)", caught).groups()
            output(program, "--mutant", mutant, "--seed", seed, "--svg", path)
            root = xml.etree.ElementTree.parse(path).getroot()
            assert root.tag == SVG + "svg"
            marked = [e for e in root.iter() if e.get("id") == "violation"]
            assert len(marked) == 1, f"{mutant}: the violation is marked {len(marked)} times"
            said = [e.text for e in root.iter(SVG + "text") if e.get("class") == "v"]
            assert len(said) == 1 and said[0].endswith(what), f"{mutant}: says {said}, caught {what}"
            bars = {e.get("class") for e in root.iter(SVG + "rect")}
            assert {"fo", "le", "va"} <= bars, f"{mutant}: bars {bars}"
            assert [e for e in root.iter(SVG + "path") if e.get("class") == "w"], f"{mutant}: no write is drawn"


if __name__ == "__main__":
    {"product": product, "mutants": mutants, "timeline": timeline}[sys.argv[1]](*sys.argv[2:])
