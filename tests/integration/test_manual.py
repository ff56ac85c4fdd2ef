# SPDX-License-Identifier: Apache-2.0
"""The manual pages and the completions that holdfastd makes from the tables of its command line."""
import os
import pty
import re
import select
import shutil
import subprocess

import pytest
from holdfastd import BUILD, HOLDFASTD, LIMIT

SHARE = BUILD / "share"


def run(*args, **kwargs):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=LIMIT, check=False, **kwargs)


def output(*args):
    done = run(HOLDFASTD, *args)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout


def commands():
    """Returns the commands that `holdfastd --help` lists and that have flags. [] is the server itself."""
    words = [line.split("  ")[0].split()[1:] for line in output("--help").splitlines() if line.startswith("holdfastd ")]
    return [[w for w in line if w.islower() and not w.startswith(("[", "-"))] for line in words if line != ["version"]]


def flags(command):
    return [f for f in re.findall(r"^  --([a-z-]+)", output(*command, "--help"), re.M) if f != "help"]


def letters(command):
    return re.findall(r"^  --[a-z-]+ \S+, (-[a-z]) ", output(*command, "--help"), re.M)


def pages():
    return [(command, SHARE / ("-".join(["holdfastd", *command]) + ".8")) for command in commands()]


def test_each_command_has_a_page_with_its_flags():
    assert [] in commands() and ["release"] in commands() and ["status"] in commands()
    for command, page in pages():
        text = page.read_text()
        assert text == output("help", "--man", *command)
        for flag in flags(command):
            escaped = flag.replace("-", r"\-")
            assert re.search(rf"^(\\fB\\-.\\fR, )?\\fB\\-\\-{re.escape(escaped)}\\fR", text, re.M), (page, flag)
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"):
            assert f"\n.SH {section}\n" in text, (page, section)


def test_there_is_no_page_of_what_is_no_command():
    done = run(HOLDFASTD, "help", "--man", "nonsense")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done
    assert run(HOLDFASTD, "help", "--man", "store copy").returncode == 2
    assert run(HOLDFASTD, "help", "--completion", "fish").returncode == 2


def test_help_takes_precedence():
    assert output("release", "--man", "--help") == output("release", "--help")
    assert output("help", "--man", "--help") == output("--help")
    assert output("help", "nonsense", "--version") == output("version")


@pytest.mark.skipif(not shutil.which("man"), reason="needs man-db")
def test_the_pages_are_formatted_without_a_warning():
    for _, page in pages():
        done = run("man", "--warnings", "-E", "UTF-8", "-Tutf8", "-l", page, env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
        assert done.returncode == 0 and done.stderr == "" and "EXIT STATUS" in re.sub(".\b", "", done.stdout), done.stderr


@pytest.mark.skipif(not shutil.which("mandoc"), reason="needs mandoc")
def test_the_pages_please_mandoc():
    for _, page in pages():
        found = run("mandoc", "-Tlint", page).stdout.splitlines()
        # The pages have no date, so that builds are reproducible. Long lines are not wrapped.
        assert [line for line in found if "missing date" not in line and "longer than 80 bytes" not in line] == []


def complete(line, directory):
    """Returns what bash offers at the end of the line. Like readline, this divides words at '=' too."""
    words = [w for word in line.split(" ") for w in re.split("(=)", word) if w or word == ""]
    script = f"""
        source {SHARE / "holdfastd"}
        complete -p holdfastd >&2
        COMP_WORDS=({" ".join(f"'{w}'" for w in words)})
        COMP_CWORD={len(words) - 1}
        _holdfastd
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = run("bash", "--norc", "-c", script, cwd=directory)
    assert done.stderr == "complete -F _holdfastd holdfastd\n" and done.returncode == 0, done
    return sorted(done.stdout.split())


def test_bash_completes_commands_flags_and_values(tmp_path):
    (tmp_path / "one.pem").touch()
    (tmp_path / "two").mkdir()
    assert complete("holdfastd ", tmp_path) == sorted([*(c[0] for c in commands() if c), "version", "help"])
    assert complete("holdfastd rel", tmp_path) == ["release"]
    assert complete("holdfastd --", tmp_path) == sorted([*(f"--{f}" for f in flags([])), "--help"])
    for command in (c for c in commands() if c):
        expected = sorted([*(f"--{f}" for f in flags(command)), "--help"])
        assert complete(f"holdfastd {' '.join(command)} --", tmp_path) == expected
        assert complete(f"holdfastd {' '.join(command)} -", tmp_path) == sorted(expected + letters(command))
    assert complete("holdfastd status -o ", tmp_path) == complete("holdfastd status --output=", tmp_path) == ["json", "text"]
    assert complete("holdfastd store ", tmp_path) == ["backup", "check", "compact", "copy", "restore"]
    assert complete("holdfastd store backup o", tmp_path) == ["one.pem"]
    assert complete("holdfastd store copy --", tmp_path) == sorted([*(f"--{f}" for f in flags(["store", "copy"])), "--help"])
    assert complete("holdfastd --tls-cert-file=", tmp_path) == ["one.pem", "two"]
    assert complete("holdfastd --tls-cert-file o", tmp_path) == ["one.pem"]
    assert complete("holdfastd --data-dir=", tmp_path) == ["two"]
    assert complete("holdfastd --leader-elect=", tmp_path) == ["false", "true"]
    assert complete("holdfastd --leader-elect=t", tmp_path) == ["true"]
    assert complete("holdfastd --instance=", tmp_path) == []
    assert complete("holdfastd status --kubeconfig o", tmp_path) == ["one.pem"]


# Completion works only in an interactive shell. This shell prints the matches in place of its list of them. A compadd with -O,
# -A or -D adds nothing: it filters.
ZSHRC = r"""
PS1=; unsetopt beep prompt_sp
fpath=($SHARE $fpath)
autoload -Uz compinit; compinit -u -D
compadd() {
        local -a found
        if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
                builtin compadd -A found "$@"
                matches+=($found)
        fi
        builtin compadd "$@"
}
capture() {
        local -a matches
        _main_complete
        compstate[insert]= compstate[list]=
        print -rn -- "<<${(j: :)matches}>>"
}
zle -C capture complete-word capture
bindkey "^I" capture
print rea""dy
"""


class Zsh:
    def __init__(self, directory):
        (directory / "rc").write_text(ZSHRC)
        master, slave = pty.openpty()
        env = {"PATH": "/usr/bin:/bin", "SHARE": str(SHARE), "HOME": str(directory), "TERM": "xterm"}
        self.child = subprocess.Popen(["zsh", "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, cwd=directory, env=env, start_new_session=True)
        os.close(slave)
        self.master = master
        self.type("source ./rc\n", r"ready\r")

    def type(self, keys, answer):
        """Types keys and returns what the shell writes up to a match of answer."""
        os.write(self.master, keys.encode())
        text = ""
        while not re.search(answer, text):
            assert select.select([self.master], [], [], LIMIT)[0], text
            text += os.read(self.master, 65536).decode()
        return re.search(answer, text)

    def complete(self, line):
        """Returns what zsh offers at the end of the line. Ctrl-U empties the line first."""
        return set(self.type(f"\x15{line}\t", r"<<([^>]*)>>")[1].split())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()
        os.close(self.master)


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh_completes_commands_flags_and_values(tmp_path):
    assert run("zsh", "-n", SHARE / "_holdfastd").stderr == ""
    (tmp_path / "files" / "two").mkdir(parents=True)
    (tmp_path / "files" / "one.pem").touch()
    with Zsh(tmp_path) as zsh:
        assert {c[0] for c in commands() if c} | {"version", "help"} <= zsh.complete("holdfastd ")
        for command in commands():
            offered = zsh.complete(f"holdfastd {' '.join([*command, '--'])}")
            assert {f"--{f}" for f in flags(command)} <= {w.rstrip("=") for w in offered}
        assert zsh.complete("holdfastd store ") == {"backup", "check", "compact", "copy", "restore"}
        assert {f"--{f}" for f in flags(["store", "copy"])} <= {w.rstrip("=") for w in zsh.complete("holdfastd store copy --")}
        assert zsh.complete("holdfastd store backup files/o") == {"one.pem"}
        assert zsh.complete("holdfastd --store=files/") == {"one.pem", "two"}
        assert zsh.complete("holdfastd status --kubeconfig files/o") == {"one.pem"}
        assert zsh.complete("holdfastd --data-dir files/") == {"two"}
        assert zsh.complete("holdfastd status -o ") == zsh.complete("holdfastd status --output=") == {"json", "text"}
        assert zsh.complete("holdfastd --leader-elect=") == {"true", "false"}
