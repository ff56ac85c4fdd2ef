# SPDX-License-Identifier: Apache-2.0
"""`holdfastd --check` prints the faults that a start would print, and changes nothing."""
import os
import sqlite3
import subprocess

from holdfastd import HOLDFASTD, LIMIT


def check(*flags, cwd=None):
    env = {k: v for k, v in os.environ.items() if k not in ("STATE_DIRECTORY", "RUNTIME_DIRECTORY")}
    return subprocess.run([HOLDFASTD, "--check", *flags], capture_output=True, text=True, timeout=LIMIT, check=False, cwd=cwd, env=env)


def good(*flags, cwd=None):
    done = check(*flags, cwd=cwd)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", ""), done


def faults(*flags):
    """Runs the check. Returns its lines in order, without their prefix, which is the name of the program."""
    done = check(*flags)
    assert done.returncode == 2 and done.stdout == "", done
    lines = done.stderr.splitlines()
    assert lines and all(line.startswith("holdfastd: ") for line in lines), lines
    return [line.removeprefix("holdfastd: ") for line in lines]


def state(directory):
    """Returns every file below the directory, with the attributes that a write would change."""
    found = {}
    for path in [directory, *directory.rglob("*")]:
        stat = path.lstat()
        found[path] = (stat.st_ino, stat.st_mode, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    return found


def make_certificate(directory, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", directory / f"{name}.key", "-out", directory / f"{name}.crt",
                    "-subj", f"/CN={name}"], check=True, capture_output=True)
    return directory / f"{name}.crt", directory / f"{name}.key"


def test_a_first_start_is_checked_and_nothing_is_written(tmp_path):
    before = state(tmp_path)
    good(cwd=tmp_path)
    good(f"--data-dir={tmp_path / 'data'}", f"--cert-dir={tmp_path / 'a' / 'b'}", f"--leader-elect-lock-dir={tmp_path / 'locks'}")
    good(f"--data-dir={tmp_path / 'data'}", "--etcd-servers=http://127.0.0.1:1")
    good("--storage=memory", f"--write-kubeconfig={tmp_path / 'kubeconfig'}")
    good("--etcd-servers=http://127.0.0.1:2", f"--data-dir={tmp_path / 'later'}/")
    good(f"--data-dir={tmp_path / 'data'}", f"--shared-dir={tmp_path / 'shared'}")
    assert state(tmp_path) == before
    cert, key = make_certificate(tmp_path, "mine")
    (tmp_path / "tokens").write_text("secret,alice,1\n")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n")
    before = state(tmp_path)
    good(f"--data-dir={tmp_path / 'data'}", f"--tls-cert-file={cert}", f"--tls-private-key-file={key}", f"--client-ca-file={cert}",
         f"--token-auth-file={tmp_path / 'tokens'}", f"--bootstrap-manifests={tmp_path / 'manifests'}")
    assert state(tmp_path) == before


def test_a_running_server_is_checked_and_not_disturbed(cluster):
    a = cluster.instance("a").wait_ready()
    before = state(cluster.directory / "pki")
    good(*a.args[4:])
    assert state(cluster.directory / "pki") == before and a.get("/readyz")[0] == 200
    log = a.log_text()
    good(*a.args[4:])
    assert a.log_text() == log


def test_a_running_store_in_a_file_is_checked_and_not_changed(tmp_path):
    from holdfastd import Cluster, SqliteFile
    with Cluster(with_witness=False, etcd=SqliteFile) as cluster:
        a = cluster.instance("a").wait_ready()
        good(*a.args[4:])
        a.end()
        before = state(cluster.directory)
        good(*a.args[4:])
        assert state(cluster.directory) == before


def test_missing_parents_are_no_fault_because_the_start_makes_them(tmp_path):
    flags = [f"--{name}-dir={tmp_path / name / 'missing' / 'directory'}" for name in ("data", "shared", "runtime", "cert", "leader-elect-lock")]
    good(*flags)
    assert not list(tmp_path.iterdir())


def test_directories_must_be_writable(tmp_path):
    """Root may write everywhere, so it gives up that right here."""
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    without = [] if os.geteuid() else ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-all"]
    for name in ("data", "runtime", "leader-elect-lock"):
        flags = {"data": tmp_path / "d", "runtime": tmp_path / "r", "leader-elect-lock": tmp_path / "l", "shared": tmp_path / "s"} | {name: locked}
        done = subprocess.run([*without, HOLDFASTD, "--check", *(f"--{k}-dir={v}" for k, v in flags.items()), f"--store={tmp_path / 'store.db'}"],
                              capture_output=True, text=True, timeout=LIMIT, check=False)
        assert done.returncode == 2 and f"flag --{name}-dir: cannot write to directory {locked}: Permission denied" in done.stderr, done
    assert not list(locked.iterdir())


def test_a_directory_is_no_place_for_the_kubeconfig(tmp_path):
    data = tmp_path / "data"
    (data / "admin.kubeconfig").mkdir(parents=True)
    data.chmod(0o700)
    for path in (data / "admin.kubeconfig", f"{tmp_path}/new/", tmp_path):
        assert faults(f"--data-dir={data}", f"--write-kubeconfig={path}") == [f"flag --write-kubeconfig: {path} is a directory"]
    assert faults(f"--data-dir={data}") == [f"flag --write-kubeconfig: {data}/admin.kubeconfig is a directory"]


def test_the_store_and_the_kubeconfig_may_be_in_any_directory_that_the_start_makes(tmp_path):
    directories = [f"--{name}-dir={tmp_path / name / 'new'}" for name in ("data", "shared", "runtime", "cert")]
    for name in ("data", "shared", "runtime", "cert"):
        for parent in (tmp_path / name, tmp_path / name / "new"):
            good(*directories, f"--store={parent}/store.db", f"--write-kubeconfig={parent}/kubeconfig")
    assert not list(tmp_path.iterdir())
    # It makes no directory in them.
    deep = tmp_path / "shared" / "new" / "missing"
    store, kubeconfig = sorted(faults(*directories, f"--store={deep}/store.db", f"--write-kubeconfig={deep}/kubeconfig"))
    assert store.startswith("flag --store: ") and "cannot be created" in store
    assert kubeconfig.startswith("flag --write-kubeconfig: ") and kubeconfig.endswith("No such file or directory")


def test_files_of_plugins_are_checked_but_not_loaded(tmp_path):
    (tmp_path / "plugin.so").write_text("not a shared object\n")
    plugin = f"--admission-plugin={tmp_path / 'plugin.so'}"
    flags = [f"--data-dir={tmp_path / 'data'}"]
    good(*flags, plugin)
    (tmp_path / "plugin.so").chmod(0o777)
    [line] = faults(*flags, plugin)
    assert line.startswith("flag --admission-plugin: ") and "chmod go-w" in line
    [line] = faults(*flags, f"--admission-plugin={tmp_path / 'missing.so'}")
    assert line.startswith("flag --admission-plugin: ") and "missing.so" in line
    [line] = faults(*flags, "--admission-plugin=plugin.so")
    assert line == "flag --admission-plugin: plugin.so is not an absolute path"


def test_each_fault_has_a_line(tmp_path):
    cert, _ = make_certificate(tmp_path, "one")
    _, key = make_certificate(tmp_path, "two")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "tokens").write_text("secret,alice,1\nnonsense\n")
    (tmp_path / "text").write_text("nonsense\n")
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE t(a)")
    other.close()
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "a.yaml").write_text("kind: [\n")
    found = faults(f"--data-dir={tmp_path / 'open' / 'missing' / 'data'}", f"--runtime-dir={tmp_path / 'open'}", f"--cert-dir={tmp_path / 'text'}",
                   f"--shared-dir={tmp_path / 'open'}", f"--tls-cert-file={cert}", f"--tls-private-key-file={key}", f"--client-ca-file={tmp_path / 'text'}",
                   f"--token-auth-file={tmp_path / 'tokens'}", f"--store={tmp_path / 'other.db'}", f"--bootstrap-manifests={tmp_path / 'manifests'}",
                   f"--leader-elect-lock-dir={tmp_path / 'open' / 'locks'}", "--bind-address=192.0.2.1")
    expected = [("flag --data-dir: ", "chmod go-w"), ("flag --shared-dir: ", "chmod go-w"), ("flag --runtime-dir: ", "chmod go-w"), ("flag --leader-elect-lock-dir: ", "chmod go-w"),
                ("flag --cert-dir: ", "Not a directory"), ("flags --tls-cert-file and --tls-private-key-file: ", "key values mismatch"),
                ("flag --client-ca-file: ", "not usable"), ("flag --token-auth-file: ", "line 2"), ("flag --store: ", "another program"),
                ("flag --bootstrap-manifests: ", "a.yaml"), ("flag --bind-address: ", "192.0.2.1")]
    assert len(found) == len(expected), found
    for line, (flag, what) in zip(found, expected):
        assert line.startswith(flag) and what in line, (line, flag, what)
    # When a flag cannot be parsed, no other fault is looked for.
    assert faults("--secure-port=x", f"--cert-dir={tmp_path / 'text'}") == ['flag --secure-port: "x" is not a whole number from 0 to 65535']
    assert faults("--controllers=nonsense")[0].startswith("flag --controllers: ")


def test_files_of_etcd_and_of_the_store_are_checked(tmp_path):
    (tmp_path / "text").write_text("nonsense\n")
    [line] = faults(f"--data-dir={tmp_path / 'data'}", "--etcd-servers=https://127.0.0.1:1", f"--etcd-cafile={tmp_path / 'text'}")
    assert line.startswith("flags --etcd-*: "), line
    [line] = faults(f"--data-dir={tmp_path / 'data'}", f"--write-kubeconfig={tmp_path / 'missing' / 'kubeconfig'}")
    assert line.startswith("flag --write-kubeconfig: ") and line.endswith("No such file or directory"), line
    [line] = faults(f"--data-dir={tmp_path / 'data'}", f"--store={tmp_path / 'text'}")
    assert line.endswith("text is not a file of SQLite"), line
    [line] = faults(f"--data-dir={tmp_path / 'data'}", f"--store={tmp_path / 'missing' / 'store.db'}")
    assert line.startswith("flag --store: ") and "cannot be created" in line, line


def test_a_fault_in_the_made_certificates_is_found_as_at_the_start(cluster):
    a = cluster.instance("a").wait_ready()
    a.end()
    key = cluster.directory / "pki" / "server.key"
    key.write_text("nonsense\n")
    [line] = faults(*a.args[4:])
    assert line.startswith("flag --cert-dir: ") and "server.key is not usable" in line, line
    start = subprocess.run(a.args, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert start.returncode != 0 and line.removeprefix("flag --cert-dir: ") in start.stderr
    # A missing file that a start would create again is not a fault.
    key.unlink()
    (cluster.directory / "pki" / "server.crt").unlink()
    good(*a.args[4:])
    assert not key.exists()
