# SPDX-License-Identifier: Apache-2.0
"""A real systemd in namespaces of its own, for tests.

Process ids, mounts, host name, IPC and cgroups are private. The network is the machine's, so that
processes inside reach a private etcd on the loopback.

Between a test and that systemd is `unshare`, which ends everything inside when it ends. It runs
this file as a program (`stage`), which makes the mounts and then becomes systemd. Processes inside see the machine's files read-only. /etc is a copy; /run, /tmp, /var and
the directory of the installed program are private, in memory. So the shipped unit runs unchanged,
with its state in /var/lib and its program in its place, and nothing is left on the machine.

It also works in a plain chroot (a fresh machine of the CI). There the kernel refuses the user
namespaces that PrivateUsers= needs, so the stage first makes the chroot a root mount.
"""
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from holdfastd import LIMIT, wait_until

CLONE_NEWNS, CLONE_NEWCGROUP = 0x00020000, 0x02000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE, MS_SHARED = 1, 32, 4096, 16384, 1 << 18, 1 << 20
MNT_DETACH = 2
SYS_PIVOT_ROOT = 155 if os.uname().machine == "x86_64" else 41
TARGET = "holdfast-test.target"
UNIT_DIR = "/run/systemd/system"
SYSTEMD = "/lib/systemd/systemd"
PRIVATE = ("etc", "run", "tmp", "var", "bin")
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)


def checked(what, result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def mount(source, target, kind=None, flags=0, options=None):
    raw = [None if x is None else str(x).encode() for x in (source, target, kind, options)]
    result = libc.mount(raw[0], raw[1], raw[2], ctypes.c_ulong(flags), raw[3])
    checked(f"mount {kind or ''} on {target}", result)


# ---- the stage: runs as process 1 of the new namespaces ----

def own_cgroup():
    """This process's place in the cgroup2 hierarchy."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::"):
            return line[3:]
    raise OSError("no cgroup2 hierarchy")


def make_root(scratch):
    """Makes the root directory the root mount of the namespace.

    In a chroot it is not. Joining its own mount namespace takes a process out of the chroot.
    """
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    own = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    checked("setns", libc.setns(own, CLONE_NEWNS))
    os.fchdir(root)
    mount(None, "/", flags=MS_REC | MS_PRIVATE)
    mount(".", f".{scratch}", flags=MS_BIND | MS_REC)
    os.chdir(os.getcwd() + str(scratch))
    checked("pivot_root", libc.syscall(SYS_PIVOT_ROOT, b".", b"."))
    checked("umount", libc.umount2(b".", MNT_DETACH))
    os.chdir("/")
    os.close(own)
    os.close(root)


def enter_cgroup(scratch, name):
    """Enters a new cgroup, which is the root of the hierarchy for all inside."""
    top = scratch / "cgroup"
    top.mkdir()
    mount("cgroup2", top, "cgroup2")
    own = pathlib.Path(f"{top}{own_cgroup()}/{name}")
    own.mkdir()
    (own / "cgroup.procs").write_text("0")
    checked("umount", libc.umount2(str(top).encode(), MNT_DETACH))
    checked("unshare", libc.unshare(CLONE_NEWCGROUP))
    mount("cgroup2", "/sys/fs/cgroup", "cgroup2")


def fill(scratch, program):
    for name in PRIVATE:
        (scratch / name).mkdir()
    subprocess.run(["cp", "-a", "/etc/.", scratch / "etc"], check=True)
    shutil.copy2(program, scratch / "bin" / "holdfastd")
    for path in ("run/systemd/system", "etc/holdfast", "etc/systemd/journald.conf.d", "var/lib",
                 "var/log", "var/tmp"):
        (scratch / path).mkdir(parents=True, exist_ok=True)
    (scratch / "var/run").symlink_to("/run")
    for path in ("tmp", "var/tmp"):
        (scratch / path).chmod(0o1777)
    (scratch / "etc/machine-id").write_text("f" * 32 + "\n")
    # This systemd must not read the machine's kernel log and audit trail.
    (scratch / "etc/systemd/journald.conf.d/test.conf").write_text(
        "[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=no\n")
    # These are all its units (SYSTEMD_UNIT_PATH below), so it loads no modules, sets no sysctls and
    # makes no mounts, as the machine's systemd does when it boots.
    units = scratch / UNIT_DIR[1:]
    # A test may start dbus.service: `systemd-run --pipe` asks systemd through the bus.
    for name in ("systemd-journald.service", "systemd-journald.socket", "dbus.service", "dbus.socket"):
        shutil.copy2(f"/lib/systemd/system/{name}", units)
    for name in ("sysinit", "basic", "shutdown", "sockets", "multi-user", "network-online"):
        (units / f"{name}.target").write_text("[Unit]\nDefaultDependencies=no\n")
    (units / TARGET).write_text(
        "[Unit]\nDescription=Only what a test starts\nDefaultDependencies=no\n"
        "Requires=systemd-journald.socket systemd-journald.service\n")


def make_dev(scratch):
    """Makes a /dev without the machine's console and without its /dev/log."""
    (scratch / "dev" / "pts").mkdir(parents=True)
    (scratch / "dev" / "shm").mkdir()
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        (scratch / "dev" / name).touch()
        mount(f"/dev/{name}", scratch / "dev" / name, flags=MS_BIND)
    (scratch / "dev" / "console").touch()
    mount("/dev/null", scratch / "dev" / "console", flags=MS_BIND)
    links = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2",
             "ptmx": "pts/ptmx"}
    for name, to in links.items():
        (scratch / "dev" / name).symlink_to(to)
    mount("devpts", scratch / "dev" / "pts", "devpts",
          options="newinstance,ptmxmode=0666,mode=620")
    mount(scratch / "dev", "/dev", flags=MS_BIND | MS_REC)


def stage(scratch, program, bindir, cgroup):
    scratch = pathlib.Path(scratch)
    make_root(scratch)
    mount("proc", "/proc", "proc")
    if not os.path.isdir("/sys/fs/cgroup"):
        mount("sysfs", "/sys", "sysfs", MS_RDONLY)
    mount("tmpfs", scratch, "tmpfs", options="mode=755")
    enter_cgroup(scratch, cgroup)
    fill(scratch, program)
    make_dev(scratch)
    mount(scratch / "etc", "/etc", flags=MS_BIND)
    mount(scratch / "bin", bindir, flags=MS_BIND)
    mount(None, "/", flags=MS_REMOUNT | MS_BIND | MS_RDONLY)
    # These come last: one of them hides the scratch directory.
    held = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY)
    for name in ("var", "run", "tmp"):
        mount(f"/proc/self/fd/{held}/{name}", f"/{name}", flags=MS_BIND)
    os.close(held)
    # Shared, as in any container with systemd: it mounts credentials in a grandchild.
    mount(None, "/", flags=MS_REC | MS_SHARED)
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                   "LANG": "C.UTF-8", "container": "holdfast-test", "SYSTEMD_UNIT_PATH": UNIT_DIR}
    os.execve(SYSTEMD, [SYSTEMD, "--system", f"--unit={TARGET}", "--log-target=journal",
                        "--show-status=no"], environment)


def remove_cgroup(scratch, name):
    """Removes the cgroup, in a mount namespace of its own, when all processes in it have ended."""
    make_root(scratch)
    mount("cgroup2", scratch, "cgroup2")
    for directory, _, _ in os.walk(f"{scratch}{own_cgroup()}/{name}", topdown=False):
        os.rmdir(directory)


# ---- the test's side ----

def end_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


UNSHARE = ["unshare", "--mount", "--propagation=unchanged", "--pid", "--fork", "--kill-child",
           "--uts", "--ipc"]


def why_not():
    """Why it cannot run here, or None."""
    if os.geteuid() != 0:
        return "a systemd in namespaces needs root"
    tried = subprocess.run([*UNSHARE, "--cgroup", "true"], capture_output=True, text=True,
                           check=False)
    if tried.returncode == 0:
        return None
    return f"unshare is not permitted here: {tried.stderr.strip()}"


def child_of(parent):
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                return int(stat.parent.name)
        except OSError:
            pass
    return None


def ended(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


class Systemd:
    """One systemd.

    All that it runs ends when its `with` block ends, or when the process of the test is killed.
    """

    def __init__(self, program, bindir):
        assert not os.path.samefile(bindir, "/usr/bin"), \
            f"{bindir} cannot be replaced for a test: configure another prefix"
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-systemd-"))
        self.log = open(self.scratch / "log", "w+b")
        self.outer = subprocess.Popen(
            [*UNSHARE, sys.executable, "-B", __file__, "stage", self.scratch, program, bindir,
             self.scratch.name],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, preexec_fn=end_with_parent)
        self.pid = None
        try:
            wait_until("systemd to run", self.running)
        except BaseException:
            self.end()
            raise

    def running(self):
        assert self.outer.poll() is None, (self.scratch / "log").read_text()
        self.pid = self.pid or child_of(self.outer.pid)
        if not self.pid or not self.file("/run/systemd/private").exists():
            return False
        return self.systemctl("is-active", TARGET, check=False) == "active"

    def file(self, path):
        """The path by which the test reaches a file inside."""
        return pathlib.Path(f"/proc/{self.pid}/root{path}")

    def holds(self, process):
        """Whether /proc/<pid> belongs to a process inside."""
        return os.readlink(process / "ns" / "pid") == os.readlink(f"/proc/{self.pid}/ns/pid")

    def resolve(self, path):
        """As file(), for a path with symbolic links, which are followed inside.

        /var/lib/x, for example, is a link to /var/lib/private/x.
        """
        return self.file(self.run("readlink", "-e", path))

    def write(self, path, text):
        self.file(path).parent.mkdir(parents=True, exist_ok=True)
        self.file(path).write_text(text)

    def run(self, *args, check=True):
        """Runs a command inside, and returns its standard output."""
        args = [str(arg) for arg in args]
        done = subprocess.run(
            ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--uts", "--ipc", "--cgroup",
             *args],
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=LIMIT)
        assert not check or done.returncode == 0, \
            f"{' '.join(args)}: {done.returncode}\n{done.stdout}{done.stderr}\n{self.journal()}"
        return done.stdout.strip()

    def systemctl(self, *args, check=True):
        return self.run("systemctl", "--no-pager", *args, check=check)

    def show(self, unit, prop):
        return self.systemctl("show", "--value", f"--property={prop}", unit)

    def journal(self, unit=None):
        only = [f"--unit={unit}"] if unit else []
        return self.run("journalctl", "--no-pager", "--output=short-monotonic", *only, check=False)

    def end(self):
        if self.outer.poll() is None:
            self.outer.send_signal(signal.SIGKILL)  # --kill-child and the kernel end all inside
        self.outer.wait()
        if self.pid:
            wait_until("all inside to end", lambda: ended(self.pid))
        self.log.close()
        subprocess.run(["unshare", "--mount", "--propagation=unchanged", sys.executable, "-B",
                        __file__, "remove-cgroup", self.scratch, self.scratch.name], check=True)
        shutil.rmtree(self.scratch)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


if __name__ == "__main__":
    {"stage": stage, "remove-cgroup": remove_cgroup}[sys.argv[1]](*sys.argv[2:])
