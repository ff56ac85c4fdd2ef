# SPDX-License-Identifier: Apache-2.0
"""The indented blocks of the README and of docs/: commands, files, code, output.

A block is named by its page, its heading and its number below that heading, from 0. It begins after an empty line, and is indented by four
spaces, or by seven in a numbered list.
"""
import re

from holdfastd import ROOT

PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]


def blocks():
    """Returns {(page, heading, number): text}."""
    found = {}
    for page in PAGES:
        heading, number, current, before = "", 0, None, ""
        for line in (ROOT / page).read_text().splitlines():
            if line.startswith("#"):
                heading, number, current = line.lstrip("# "), 0, None
            elif current is not None and (line.startswith("    ") or not line):
                found[current].append(line)
            elif line.startswith("    ") and not before.strip():
                current = (page, heading, number)
                number += 1
                found[current] = [line]
            else:
                current = None
            before = line
    return {name: text_of(lines) for name, lines in found.items()}


def text_of(lines):
    indent = len(re.match(" *", lines[0])[0])
    return "\n".join(line[indent:] for line in lines).strip("\n") + "\n"


BLOCKS = blocks()


def block(page, heading, number=0):
    return BLOCKS[page, heading, number]


def substituted(text, *pairs):
    """Replaces each part, which must be there: what a document leaves to its reader, and the comments that say what to do by hand."""
    for old, new in pairs:
        assert old in text, f"the document no longer has: {old}"
        text = text.replace(old, new)
    return text
