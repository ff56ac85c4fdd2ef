# SPDX-License-Identifier: Apache-2.0
"""tools/quickstart as a newcomer runs it, in directories of its own and on free ports, without a terminal."""
import os
import pathlib
import re
import subprocess

from holdfastd import BUILD, ROOT

# The acts in their order, and what each must say. A number in pointed brackets must be the same wherever its name comes again.
ACTS = [
    ("holdfastd alone: its objects are in a file",
     [r"store: .*/store\.db", r"instance a: https://127\.0\.0\.1:\d+, ready after \d+ ms",
      r"workspace first, created through a while a leads: created -> .*Ready", r"it has its namespace ws-first; "]),
    ("a second instance on the same file", [r"instance b: https://", r"leader: a, term \d+; a: leading, b: following"]),
    ("hand-over: the leader is told to stop",
     [r"kill -TERM \d+ +\(instance a\)", r"a released the Lease at revision \d+ and ended with status 0", r"b leads at revision \d+: \d+\.\d ms without a leader",
      r"workspace second, created through b while b leads: created -> .*Ready"]),
    ("a comes back, as a follower", [r"instance a: https://", r"leader: b, term \d+; a: following, b: leading"]),
    ("take-over: the leader is killed",
     [r"kill -KILL \d+ +\(instance b\)", r"a leads at revision \d+: \d+\.\d{3} s after the last renewal, \d+\.\d ms after its expiry",
      r"workspace third, created through a while a leads: created -> .*Ready"]),
    ("the same objects in etcd, for instances on several machines",
     [r"holdfastd store copy --from=sqlite:\S+ --to=etcd:http\S+", r"holdfastd store copy: copied \d+ keys of revision \d+ to etcd:http", r"etcd: http://127\.0\.0\.1:\d+",
      r"instance a: https://", r"instance b: https://", r"leader: a, term \d+; a: leading, b: following",
      r"all \d+ objects are there, with the uids that they had; workspaces: default, first, second, third$",
      r"kill -TERM \d+ +\(instance a\)", r"b leads at revision \d+: \d+\.\d ms without a leader",
      r"workspace fourth, created through b while b leads: created -> .*Ready"]),
    ("done; nothing is left behind", []),
]


def quickstart(tmp_path, path=os.environ["PATH"]):
    done = subprocess.run([ROOT / "tools" / "quickstart"], cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False,
                          env={**os.environ, "HOLDFAST_BUILD": str(BUILD.resolve()), "TMPDIR": str(tmp_path), "PATH": path})
    assert list(tmp_path.iterdir()) == [], "files are left behind"
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert str(tmp_path) not in entry.read_text(), f"a process is left behind: {entry}"
        except OSError:  # it has ended meanwhile
            continue
    return done


def acts(output):
    """Splits the output: [(heading, lines)]."""
    _, *parts = re.split(r"^== (.*)$", output, flags=re.M)
    return [(heading, [line.strip() for line in text.splitlines() if line.strip()]) for heading, text in zip(parts[::2], parts[1::2])]


def test_each_act_of_the_quickstart(tmp_path):
    done = quickstart(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    seen = acts(done.stdout)
    assert [heading for heading, _ in seen] == [heading for heading, _ in ACTS], done.stdout
    for (heading, lines), (_, wanted) in zip(seen, ACTS):
        rest = iter(lines)
        for pattern in wanted:
            assert any(re.match(pattern, line) for line in rest), f"{heading}: nothing like {pattern} (in this order)\n{done.stdout}"
    # More objects than the roles alone, so that the comparison of the uids compares something.
    assert int(re.search(r"all (\d+) objects", done.stdout)[1]) > 80
    in_the_readme(done.stdout)


def in_the_readme(output):
    """The README shows lines of this output: those are there, in that order, with other numbers."""
    def shape(line):
        return re.sub(r"\d+", "N", line.strip())
    page = (ROOT / "README.md").read_text()
    block = re.search(r"((?:^(?:    == .*|       \S.*|)\n)+)", page[page.index("    == "):], re.M)[1]
    shown = [shape(line) for line in block.splitlines() if line.strip()]
    assert len(shown) > 10
    rest = iter([shape(line) for line in output.splitlines()])
    for line in shown:
        assert any(line == other for other in rest), f"the quickstart does not print what the README shows, at least not there: {line}\n{output}"


def test_all_acts_on_a_file_need_no_etcd(tmp_path):
    """An etcd that does not start: the acts before it are shown, and it is named."""
    programs, directory = tmp_path / "programs", tmp_path / "files"
    programs.mkdir()
    directory.mkdir()
    (programs / "etcd").write_text("#!/bin/sh\necho no etcd here >&2\nexit 1\n")
    (programs / "etcd").chmod(0o755)
    done = quickstart(directory, path=f"{programs}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert [heading for heading, _ in acts(done.stdout)] == [heading for heading, _ in ACTS[:-1]], done.stdout
    assert "\nquickstart: failed: no etcd here\n" in done.stdout, done.stdout[-2000:]
