#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_operators.py COMPILER: checks that operators.py finds the expected mistakes in a small program, and that each changes its output.

The schema of the program is compiled once. Without a mistake it must print the same as the original. With each mistake it must
print something else.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import operators  # noqa: E402

PROGRAM = r"""
#include <stdbool.h>
#include <stdio.h>

#define TWICE(x) ((x) * 2) /* if (x == 2) is no condition of the program */

struct pair {
        int a, b;
};

static const int table[] = {1, 2, 3};

static bool between(int low, int x, int high) {
        return low <= x && x < high;
}

static int check(int x) {
        if (x < 0)
                return -5;
        return 0;
}

static int sum(const struct pair *pair) {
        int total = 0;

        total += pair->a + pair->b;
        total += table[1];
        return total;
}

static int walk(int limit, bool odd) {
        int total = limit < 3 ? 1000 : 0;

        for (int x = 1; x < 6; x++) {
                if (odd && x % 2 == 0)
                        continue;
                total += odd ? x : 10 * x + 1;
                if (total > limit)
                        break;
        }
        return total;
}

static int product(struct pair pair) {
        return pair.a > pair.b ? pair.a * pair.b : pair.a + pair.b;
}

int main(void) {
        struct pair pair = {.a = 3, .b = 4};
        int r, n = 0;

        for (int x = -1; x <= 2; x++)
                printf("%d", between(0, x, 2));
        r = check(-1);
        printf(" %d %d", r, check(2));
        pair.a += 2;
        while (n < 3) {
                n++;
                printf(".");
        }
        if (n == 3 || pair.a == 1)
                printf(" three");
        else
                printf(" other");
        printf(" %d %d %d %d", walk(999, false), walk(2, true), walk(3, true), walk(4, 1));
        printf(" %d %d", product((struct pair){.a = 7, .b = n}), product((struct pair){.a = n, .b = n}));
        printf(" %d %d %s\n", sum(&pair), TWICE(n), "a == b; c < d");
        return 0;
}
"""
# Mistakes that must be found: the operator, and a part of the text that it changes.
EXPECTED = {
    ("return: <= -> <", "low <= x"), ("return: && -> ||", "low <= x"), ("return: < -> <=", "low <= x"),
    ("condition negated", "x < 0"), ("< -> <=", "x < 0"), ("return: false error", "0"),
    ("statement removed", "total += pair->a + pair->b;"), ("value: + -> -", "pair->a + pair->b"), ("statement removed", "total += table[1];"),
    ("statement removed", "r = check(-1);"), ("statement removed", "pair.a += 2;"), ("condition negated", "n < 3"), ("< -> <=", "n < 3"),
    ("condition negated", "n == 3 ||"), ("== -> !=", "n == 3 ||"), ("|| -> &&", "n == 3 ||"), ("statement removed", "printf(\" three\");"),
    ("statement removed", "printf(\" %d %d\""), ("statement removed", "printf(\" %d %d %s"), ("statement removed", "n++;"),
    ("for: < -> <=", "x < 6"), ("for: condition negated", "x < 6"), ("first value: 0 -> 1", "0"), ("jump removed", "continue;"), ("jump removed", "break;"),
    ("value: arms swapped", "odd ? x : 10"), ("return: arms swapped", "pair.a > pair.b"), ("first value: arms swapped", "limit < 3"),
    ("argument: true -> false", "true"), ("argument: 1 -> 0", "1"), ("argument: 0 -> 1", "0"), ("member: left out", "7"), ("member: left out", "n"),
}
# Mistakes that are not tried. In this order: the loop would not end, the branch is not taken, x is never 0, the other half of the condition decides.
WITHOUT_EFFECT = {("n++;", ""), ("printf(\" other\");", ""), ("x < 0", "x <= 0"), ("n == 3 || pair.a == 1", "n == 3 || pair.a != 1")}


def main():
    compiler = sys.argv[1:]
    found = operators.find(PROGRAM)
    for operator, part in EXPECTED:
        assert any(m.operator == operator and part in m.original for m in found), f"not found: {operator} in {part}"
    assert not any("no condition" in m.original or "TWICE(x)" in m.original for m in found), "a macro or a comment was read as a statement"
    with tempfile.TemporaryDirectory(prefix="hf-mutant-") as directory:
        def compiled(name, text):
            source = pathlib.Path(directory) / f"{name}.c"
            source.write_text(text)
            subprocess.run([*compiler, "-w", "-include", pathlib.Path(__file__).with_name("hf_mutant.h"), "-o", source.with_suffix(""), source],
                           check=True)
            return source.with_suffix("")

        def output(program, number=0):
            done = subprocess.run([program], env={**os.environ, "HF_MUTANT": str(number)}, capture_output=True, text=True, timeout=60)
            return done.stdout, done.returncode

        right = output(compiled("original", PROGRAM))
        program = compiled("schema", operators.schema(PROGRAM, list(enumerate(found, 1))))
        assert output(program) == right, "the schema behaves differently without a mistake"
        for number, mutation in enumerate(found, 1):
            if (mutation.original, mutation.changed) in WITHOUT_EFFECT:
                continue
            assert output(program, number) != right, f"{mutation.operator} in {mutation.original} changes nothing"
    return 0


if __name__ == "__main__":
    sys.exit(main())
