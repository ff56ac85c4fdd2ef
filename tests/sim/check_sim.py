#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks of the simulator itself.

check_sim.py product ROOT FILE...        no source of the product, and no symbol of what is built
                                         (FILE...), contains the word "mutant"
check_sim.py defects SIM NAME...         NAME... are all the defects that the simulator knows
check_sim.py timeline BUILD SIM          the picture of a broken promise is well-formed, and says
                                         which promise was broken, and where
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"
HERE = pathlib.Path(__file__).resolve().parent
MUTANTS = HERE.parent / "mutants" / "run.py"
PRODUCT = ("base", "bootstrap", "client", "examples", "hooks", "leader", "server")


def output(*command, status=0):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=240)
    assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def says_mutant(path):
    return b"mutant" in pathlib.Path(path).read_bytes().lower()


def has_mutant_symbol(path):
    symbols = output("nm", path).lower()
    assert "hf__core_step" in symbols, f"nm finds no symbols in {path}"
    return "mutant" in symbols


def product(root, *built):
    assert says_mutant(__file__), "the check itself finds nothing"
    root = pathlib.Path(root)
    sources = [p for d in PRODUCT for p in (root / d).rglob("*") if p.is_file()]
    sources += [root / name for name in ("meson.build", "meson_options.txt", "libholdfast.sym")]
    assert len(sources) > 300, f"only {len(sources)} files of the product were found"
    found = [str(path) for path in sources if says_mutant(path)]
    found += [path for path in built if has_mutant_symbol(path)]
    assert not found, f"these files of the product speak of mutants: {found}"


def defects(program, *tried):
    known = [line.split()[0] for line in output(program, "--list-defects").splitlines()]
    assert sorted(known) == sorted(tried), f"known: {sorted(known)}, tried: {sorted(tried)}"
    assert len(known) >= 7, f"only {len(known)} defects"


def check_timeline(command, path):
    caught = output(*command, "--schedules", "20000", status=1)
    seed, what = re.search(r"FAIL at seed (\d+), .*? s: (.*)", caught).groups()
    output(*command, "--seed", seed, "--svg", path, status=1)
    root = xml.etree.ElementTree.parse(path).getroot()
    assert root.tag == SVG + "svg"
    marked = [e for e in root.iter() if e.get("id") == "violation"]
    assert len(marked) == 1, f"{command}: the violation is marked {len(marked)} times"
    said = [e.text for e in root.iter(SVG + "text") if e.get("class") == "v"]
    assert len(said) == 1 and said[0].endswith(what), f"{command}: says {said}, caught {what}"
    bars = {e.get("class") for e in root.iter(SVG + "rect")}
    assert {"fo", "le", "va"} <= bars, f"{command}: bars {bars}"
    writes = [e for e in root.iter(SVG + "path") if e.get("class") == "w"]
    assert writes, f"{command}: no write is drawn"


def timeline(build, program):
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "timeline.svg"
        check_timeline([program, "--defect", "fence_identity_only"], path)
        for mutant in ("keep_old_history", "release_before_join"):
            check_timeline([MUTANTS, "sim", build, mutant], path)


if __name__ == "__main__":
    {"product": product, "defects": defects, "timeline": timeline}[sys.argv[1]](*sys.argv[2:])
