# SPDX-License-Identifier: Apache-2.0
"""link_order.py FUNCTIONS SCRIPT COMPILER...: writes the linker's own script, with the listed functions at the begin of .text.

They stay in one section, because valgrind knows no functions outside of .text. COMPILER has the arguments that choose among the linker's
scripts. Exits with status 1 if the linker does not tell its script, as others than GNU ld do: then it keeps its order."""
import pathlib
import subprocess
import sys

PLACE = "*(.text.unlikely"  # where .text begins in the script


def main():
    names = pathlib.Path(sys.argv[1]).read_text().split()
    told = subprocess.run([*sys.argv[3:], "-x", "c", "/dev/null", "-o", "/dev/null", "-Wl,--verbose"], capture_output=True, text=True, check=False)
    parts = told.stdout.split("=" * 50 + "\n")
    if len(parts) != 3 or PLACE not in parts[1]:
        return 1
    sections = "\n".join(f"*(.text.{name} .text.{name}.*)" for name in names)
    pathlib.Path(sys.argv[2]).write_text(parts[1].replace(PLACE, f"{sections}\n    {PLACE}", 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
