# SPDX-License-Identifier: Apache-2.0
"""link_order.py LIST SCRIPT COMPILER...: writes the linker's own script, with the listed functions at the begin of .text and the listed
read-only data at the begin of .rodata. A line of the list names an object and a section of it.

The functions stay in one section, because valgrind knows no functions outside of .text. COMPILER has the arguments that choose among the
linker's scripts. Exits with status 1 if the linker does not tell its script, as others than GNU ld do: then it keeps its order."""
import pathlib
import subprocess
import sys

PLACES = {".text": "*(.text.unlikely", ".rodata": "*(.rodata .rodata."}  # where each begins in the script


def statement(member, section):
    """A line of the list, for the script. gcc gives the parts that it makes of a function suffixes."""
    pattern = f"*{member}" if member.startswith("_") else f"*/{member}"
    return f"{pattern}({section} {section}.*)" if section.startswith(".text") else f"{pattern}({section})"


def main():
    listed = [line.split() for line in pathlib.Path(sys.argv[1]).read_text().splitlines()]
    told = subprocess.run([*sys.argv[3:], "-x", "c", "/dev/null", "-o", "/dev/null", "-Wl,--verbose"], capture_output=True, text=True, check=False)
    parts = told.stdout.split("=" * 50 + "\n")
    if len(parts) != 3 or any(place not in parts[1] for place in PLACES.values()):
        return 1
    script = parts[1]
    for output, place in PLACES.items():
        first = [statement(*names) for names in listed if names[1].startswith(output)]
        script = script.replace(place, "\n    ".join([*first, place]), 1)
    pathlib.Path(sys.argv[2]).write_text(script)
    return 0


if __name__ == "__main__":
    sys.exit(main())
