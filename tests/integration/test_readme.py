# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of the README and of docs/embedding.md unchanged, in a copy of this machine without the packages that a bare Debian
lacks. Installations in the copy change nothing on the machine."""
import os
import shutil
import subprocess

import pytest
from holdfastd import ROOT, VERSION

COMMANDS = ROOT / "tests" / "lib" / "doc-commands"
# Makes the copy: all files of the machine, with changes in memory. It has its own network, because the README uses fixed ports.
STAGE = r"""
set -euo pipefail
directory=$1 source=$2
mount --make-rprivate / 2>&- || ! grep -q '^[0-9]* [0-9]* [0-9:]* [^ ]* / ' /proc/self/mountinfo    # in a chroot, / is no mount
mount -t tmpfs tmpfs "$directory"
mkdir "$directory"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$directory/upper,workdir=$directory/work" "$directory/root"
cd "$directory/root"
mkdir -p src
cp -a "$source/." src
mount -t proc proc proc
mount --rbind /dev dev
mount -t tmpfs tmpfs tmp
mount -t tmpfs tmpfs run
rm -f usr/bin/dpkg-architecture usr/bin/ccache            # from dpkg-dev and ccache, which a bare Debian lacks
rm -rf usr/lib/*/pkgconfig/cmocka.pc usr/lib/*/cmake/cmocka      # without it the tests are not built
rm -rf usr/local/lib/libholdfast* usr/local/lib/*/libholdfast* root
mkdir root
ip link set lo up
# Compiled without optimization, to save time: other tests compile with it.
exec env -i CFLAGS=-O0 HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
  chroot . bash -c 'cd /src && exec bash -euxo pipefail commands'
"""
# Checks of what the installations have changed.
CHECKS = r"""
test ! -e /usr/lib/systemd/system/holdfastd@.service
for unit in service socket; do test -e "/usr/local/lib/systemd/system/holdfastd@.$unit"; test -e "$HOME/holdfast/lib/systemd/system/holdfastd@.$unit"; done
ldd embed | grep /usr/local/lib/libholdfast
ldd $HOME/holdfast/embed | grep $HOME/holdfast/lib/libholdfast
$HOME/holdfast/bin/holdfastd --version
echo all done
"""


def commands(page, heading):
    return subprocess.run([COMMANDS, ROOT / page, heading], check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make the copy")
def test_the_commands_work_as_they_stand(tmp_path):
    source, directory = tmp_path / "source", tmp_path / "copy"
    directory.mkdir()
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, source], check=True)
    files = subprocess.run(["git", "-C", ROOT, "ls-files"], check=True, capture_output=True, text=True).stdout.splitlines()
    for name in files:  # changes that are not committed yet belong to the copy too
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, source / name)
    shutil.copytree(ROOT / ".cache", source / ".cache")  # downloaded once
    by_hand = commands("README.md", "By hand")
    first, stop, rest = by_hand.partition("kill $a && wait $a\n")
    assert stop, by_hand
    example = commands("docs/embedding.md", "The example")
    # The example uses the server of the README, in another terminal.
    (source / "commands").write_text(f"{first}({example})\n{stop}{rest}{commands('README.md', 'Install')}{CHECKS}")
    done = subprocess.run(["unshare", "--mount", "--propagation", "unchanged", "--pid", "--net", "--ipc", "--fork", "--kill-child", "bash", "-c", STAGE, "stage", directory, source],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
    lines = done.stdout.splitlines()
    assert lines[-1] == "all done" and lines.count(VERSION) == 1, done.stdout[-6000:]
    assert len([line for line in lines if line.startswith("ok")]) == 2
    assert lines.count(f"holdfastd {VERSION}") == 2
    # What `holdfastd status` shows of b, before and after the hand-over.
    shown = [line for line in lines if line.startswith("b/")]
    assert len(shown) == 2 and " following " in shown[0], done.stdout[-6000:]
