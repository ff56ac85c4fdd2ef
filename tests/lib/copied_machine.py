# SPDX-License-Identifier: Apache-2.0
"""Runs a script as root in a copy of this machine, with a network of its own. So commands of the documentation run as they stand, with
their fixed paths, addresses and ports, and change nothing here. Needs root."""
import subprocess

from holdfastd import BUILD, ROOT

# All files of the machine, with changes in memory. The source tree is at /src, the build at /build.
STAGE = r"""
set -euo pipefail
directory=$1 source=$2 build=$3
mount --make-rprivate / 2>&- || ! grep -q '^[0-9]* [0-9]* [0-9:]* [^ ]* / ' /proc/self/mountinfo    # in a chroot, / is no mount
mount -t tmpfs tmpfs "$directory"
mkdir "$directory"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$directory/upper,workdir=$directory/work" "$directory/root"
cat >"$directory/root/script"
cd "$directory/root"
rm -rf var/lib/holdfast var/lib/etcd var/log/holdfast etc/holdfast
mkdir -p src build root srv backup var/log/holdfast etc/holdfast
# A minimal machine may have no such file, and etcd's default addresses are those of localhost.
grep -qs localhost etc/hosts || echo "127.0.0.1 localhost" >>etc/hosts
mount --bind "$source" src
mount --bind "$build" build
for path in root srv backup; do mount -t tmpfs -o mode=755 tmpfs $path; done
mount -t proc proc proc
mount --rbind /dev dev
mount -t tmpfs tmpfs tmp
mount -t tmpfs tmpfs run
ip link set lo up
for address in 10.0.0.1 10.0.0.2; do ip address add $address/32 dev lo; done
exec env -i HOME=/root PATH=/build/server:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 ETCDCTL_API=3 \
  chroot . bash -c 'cd /root && exec bash -euxo pipefail /script'
"""


def run(script, directory, limit=300):
    """`directory` is empty. Returns what the script printed; fails with its end if the script fails."""
    command = ["unshare", "--mount", "--propagation", "unchanged", "--pid", "--net", "--ipc", "--fork", "--kill-child", "bash", "-c", STAGE, "stage",
               directory, ROOT, BUILD.resolve()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        try:
            output, _ = child.communicate(script, timeout=limit)
        except subprocess.TimeoutExpired:
            child.kill()
            output, _ = child.communicate()
            raise AssertionError(f"the script took more than {limit} s:\n{output[-6000:]}") from None
    assert child.returncode == 0, output[-6000:]
    return output
