/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives a snapshot of etcd a new epoch, so that every holdfastd that uses an etcd restored from it
 * notices that the history is another one. A private etcd is started from the snapshot, gets the
 * epoch, and its new snapshot is the result:
 *
 *      restore the snapshot -> start etcd -> check the prefix -> put the epoch -> save a snapshot
 *
 * Invariants: every child is reaped before the function returns, and dies with this process. The
 * temporary directory is removed, unless this process is killed.
 */
#include "server/store/snapshot_stamp.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <holdfast/clock.h>

#include "server/storage/epoch.h"
#include "server/storage/key_prefixes.h"
#include "server/storage/keys.h"
#include "server/storage/new_file.h"

#define ENDPOINT      "--endpoints=unix://client:1" /* in the temporary directory */
#define START_TIMEOUT (60 * HF_NSEC_PER_SEC)        /* for the private etcd to respond */
#define STOP_TIMEOUT  (10 * HF_NSEC_PER_SEC)
#define RETRY_PAUSE   (100 * HF_NSEC_PER_MSEC)
#define NOT_FOUND     127 /* exit status of a child whose program does not exist */

/* One run of the command. */
struct stamping {
        char directory[PATH_MAX]; /* the temporary one */
        sigset_t signals;         /* blocked: SIGCHLD, and those that end the command */
        sigset_t before;          /* the signals that were blocked before */
        pid_t etcd;               /* 0: not running */
        bool canceled;            /* a signal has ended the command */
        struct hf_status *status;
};

static hf_nsec now(void) { return hf_now(hf_clock_system()); }

static int out_of_memory(struct stamping *stamping) {
        return hf_fail(stamping->status, -ENOMEM, "out of memory");
}

/* ---- children ---- */

/* Runs in the child, and replaces it by the program. */
static void run_child(const struct stamping *stamping, pid_t parent, const char *log,
                      char *const argv[]) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || chdir(stamping->directory) != 0)
                _exit(1);
        int fd = open(log, O_CREAT | O_WRONLY | O_TRUNC, 0600);
        if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
                _exit(1);
        (void)sigprocmask(SIG_SETMASK, &stamping->before, NULL);
        (void)signal(SIGPIPE, SIG_DFL);
        (void)execvp(argv[0], argv);
        _exit(NOT_FOUND);
}

/* Starts a program in the temporary directory. Its output goes to the file `log` there. */
static int start_command(struct stamping *stamping, const char *log, const char *const argv[],
                         pid_t *ret_pid) {
        pid_t parent = getpid(), pid = fork();

        assert(argv[0]);
        if (pid < 0)
                return hf_fail(stamping->status, -errno, "cannot start %s: %s", argv[0],
                               strerror(errno));
        if (pid == 0)
                run_child(stamping, parent, log, (char *const *)argv);
        *ret_pid = pid;
        return 0;
}

/* Waits for a signal: SIGCHLD, or one that ends the command. False: the deadline has passed.
 * Without a deadline it returns after an hour at the latest, and the caller calls it again. */
static bool await_signal(struct stamping *stamping, hf_nsec deadline) {
        hf_nsec left = deadline == HF_NSEC_NEVER ? 3600 * HF_NSEC_PER_SEC : deadline - now();
        struct timespec timeout = {.tv_sec = left > 0 ? left / HF_NSEC_PER_SEC : 0,
                                   .tv_nsec = left > 0 ? left % HF_NSEC_PER_SEC : 0};
        int number = sigtimedwait(&stamping->signals, NULL, &timeout);

        if (number > 0 && number != SIGCHLD)
                stamping->canceled = true;
        return number > 0 || deadline == HF_NSEC_NEVER || now() < deadline;
}

/* Waits for a child. Kills it after the deadline, or when a signal has ended the command. Returns
 * its exit status, or 1 if a signal killed it. SIGCHLD is blocked, so one that comes between the
 * test and the wait stays pending and ends the wait. */
static int await_child(struct stamping *stamping, pid_t pid, hf_nsec deadline) {
        bool killed = false, in_time = true;
        int status = 0;
        pid_t ended;

        while ((ended = waitpid(pid, &status, WNOHANG)) == 0) {
                if (!killed && (stamping->canceled || !in_time)) {
                        (void)kill(pid, SIGKILL);
                        killed = true;
                }
                in_time = await_signal(stamping, killed ? HF_NSEC_NEVER : deadline);
        }
        return ended == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int run_command(struct stamping *stamping, const char *log, const char *const argv[],
                       int *ret_exit_status) {
        pid_t pid = -1;
        int r = start_command(stamping, log, argv, &pid);

        if (r == 0)
                *ret_exit_status = await_child(stamping, pid, HF_NSEC_NEVER);
        if (r == 0 && stamping->canceled)
                r = hf_fail(stamping->status, HF_E_CANCELED, "a signal has ended the command");
        return r;
}

static void print_log(const struct stamping *stamping, const char *name) {
        char path[PATH_MAX + 16], text[4096];
        size_t n;

        (void)snprintf(path, sizeof path, "%s/%s", stamping->directory, name);
        FILE *log = fopen(path, "re");
        while (log && (n = fread(text, 1, sizeof text, log)) > 0)
                (void)fwrite(text, 1, n, stderr);
        if (log)
                (void)fclose(log);
}

/* Prints the output of a program that has failed, and returns the error. what: its task. */
static int fail_program(struct stamping *stamping, const char *log, const char *program,
                        const char *what, int exit_status) {
        if (exit_status == NOT_FOUND)
                return hf_fail(stamping->status, HF_E_UNAVAILABLE, "%s cannot be run: install it",
                               program);
        print_log(stamping, log);
        return hf_fail(stamping->status, HF_E_UNAVAILABLE,
                       "%s cannot %s; its own messages precede this one", program, what);
}

/* Runs a program that must succeed. */
static int run_successfully(struct stamping *stamping, const char *what, const char *const argv[]) {
        int exit_status, r = run_command(stamping, "run.log", argv, &exit_status);

        return r == 0 && exit_status != 0
                       ? fail_program(stamping, "run.log", argv[0], what, exit_status)
                       : r;
}

/* ---- the steps ---- */

/* In newer versions of etcd only etcdutl restores snapshots. */
static int restore_snapshot(struct stamping *stamping, const char *snapshot) {
        const char *argv[] = {"etcdutl", "snapshot", "restore", snapshot, "--data-dir=data", NULL};
        int exit_status, r = run_command(stamping, "run.log", argv, &exit_status);

        if (r != 0 || exit_status == 0)
                return r;
        if (exit_status != NOT_FOUND)
                return fail_program(stamping, "run.log", argv[0], "restore the snapshot",
                                    exit_status);
        argv[0] = "etcdctl";
        return run_successfully(stamping, "restore the snapshot", argv);
}

static int start_etcd(struct stamping *stamping) {
        static const char *const argv[] = {"etcd",
                                           "--data-dir=data",
                                           "--listen-client-urls=unix://client:1",
                                           "--advertise-client-urls=unix://client:1",
                                           "--listen-peer-urls=unix://peer:1",
                                           "--logger=zap",
                                           "--log-level=error",
                                           NULL};

        return start_command(stamping, "etcd.log", argv, &stamping->etcd);
}

/* Whether the private etcd has ended. If so, sets *ret_exit_status; 1 = a signal has killed it. */
static bool has_ended(struct stamping *stamping, int *ret_exit_status) {
        int status;

        assert(stamping->etcd > 0);
        if (waitpid(stamping->etcd, &status, WNOHANG) != stamping->etcd)
                return false;
        stamping->etcd = 0;
        *ret_exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        return true;
}

/* Runs etcdctl until the private etcd responds or ends, for START_TIMEOUT at most. The output of
 * etcdctl is in the file run.log. */
static int ask_etcd(struct stamping *stamping, const char *what, const char *const argv[]) {
        hf_nsec give_up = now() + START_TIMEOUT;

        for (;;) {
                int exit_status, r = run_command(stamping, "run.log", argv, &exit_status);

                if (r != 0 || exit_status == 0)
                        return r;
                if (has_ended(stamping, &exit_status))
                        return fail_program(stamping, "etcd.log", "etcd", "start from the snapshot",
                                            exit_status);
                if (now() >= give_up)
                        return fail_program(stamping, "run.log", argv[0], what, exit_status);
                (void)await_signal(stamping, now() + RETRY_PAUSE);
        }
}

/* Adds the keys that etcdctl has printed, one on each line. */
static int read_keys(struct stamping *stamping, struct hfd_key_prefixes *prefixes) {
        char path[PATH_MAX + 16], *line = NULL;
        size_t space = 0;
        ssize_t n;

        (void)snprintf(path, sizeof path, "%s/run.log", stamping->directory);
        FILE *log = fopen(path, "re");
        if (!log)
                return hf_fail(stamping->status, -errno, "%s: %s", path, strerror(errno));
        while ((n = getline(&line, &space, log)) > 0) {
                line[strcspn(line, "\n")] = '\0';
                if (line[0])
                        hfd_key_prefixes_add(prefixes, line);
        }
        free(line);
        (void)fclose(log);
        return 0;
}

/* Refuses a prefix that no key of the snapshot has, unless the snapshot has no keys at all. If no
 * key has the prefix, all keys are listed, for the message. */
static int check_prefix(struct stamping *stamping, const char *snapshot, const char *prefix) {
        char objects[HFD_KEY_MAX], own[HFD_KEY_MAX];
        const char *const lists[][3] = {{own, "--limit=1"}, {objects, "--limit=1"}, {""}};
        struct hfd_key_prefixes prefixes = {.wanted = prefix};
        int r = hfd_key_own(own, prefix, "");

        if (r != 0)
                return hf_fail(stamping->status, r, "the prefix is too long");
        (void)snprintf(objects, sizeof objects, "%s/", prefix); /* shorter than own */
        for (size_t i = 0; i < sizeof lists / sizeof lists[0] && r == 0; i++) {
                const char *const argv[] = {"etcdctl",  ENDPOINT,      "get",       lists[i][0],
                                            "--prefix", "--keys-only", lists[i][1], NULL};

                r = ask_etcd(stamping, "list the keys", argv);
                if (r == 0)
                        r = read_keys(stamping, &prefixes);
                if (prefixes.has_wanted)
                        break;
        }
        return r == 0 ? hfd_key_prefixes_check(&prefixes, snapshot, stamping->status) : r;
}

/* Writes the epoch, as a restored store has it (storage/keys.h). */
static int put_epoch(struct stamping *stamping, const char *prefix) {
        char key[HFD_KEY_MAX], value[HFD_EPOCH_MAX];
        const char *const argv[] = {"etcdctl", ENDPOINT, "put", key, value, NULL};
        int r = hfd_key_own(key, prefix, "epoch");

        if (r != 0)
                return hf_fail(stamping->status, r, "the prefix is too long");
        r = hfd_epoch_make(value, stamping->status);
        return r == 0 ? ask_etcd(stamping, "write the epoch", argv) : r;
}

static int save_snapshot(struct stamping *stamping, const char *temporary) {
        const char *const argv[] = {"etcdctl", ENDPOINT, "snapshot", "save", temporary, NULL};
        int r = run_successfully(stamping, "take a snapshot", argv);

        if (r == 0 && chmod(temporary, 0600) != 0)
                r = hf_fail(stamping->status, -errno, "%s: %s", temporary, strerror(errno));
        return r;
}

/* Lets etcd stop by itself, and kills it if it does not. */
static void stop_etcd(struct stamping *stamping) {
        if (stamping->etcd == 0)
                return;
        stamping->canceled = false; /* so that etcd is not killed before it could stop */
        (void)kill(stamping->etcd, SIGTERM);
        (void)await_child(stamping, stamping->etcd, now() + STOP_TIMEOUT);
        stamping->etcd = 0;
}

static int stamp_snapshot(struct stamping *stamping, const char *snapshot, const char *temporary,
                          const char *prefix) {
        int r = restore_snapshot(stamping, snapshot);

        if (r == 0)
                r = start_etcd(stamping);
        if (r == 0)
                r = check_prefix(stamping, snapshot, prefix);
        if (r == 0)
                r = put_epoch(stamping, prefix);
        if (r == 0)
                r = save_snapshot(stamping, temporary);
        stop_etcd(stamping);
        return r;
}

/* ---- before and after the steps ---- */

/* Removes the variables ETCD*, because the programs would take them for flags. */
static void forget_etcd_environment(void) {
        extern char **environ;

        for (char **at = environ; *at;) {
                char name[64];
                size_t n = strcspn(*at, "=");

                if (strncmp(*at, "ETCD", 4) != 0 || n >= sizeof name) {
                        at++;
                        continue;
                }
                memcpy(name, *at, n);
                name[n] = '\0';
                (void)unsetenv(name);
                at = environ;
        }
        (void)setenv("ETCDCTL_API", "3", 1);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *ftw) {
        (void)remove(path);
        return 0;
}

static char *absolute_path(const char *path) {
        char directory[PATH_MAX], *joined = NULL;

        if (path[0] == '/')
                return strdup(path);
        return getcwd(directory, sizeof directory) &&
                               asprintf(&joined, "%s/%s", directory, path) >= 0
                       ? joined
                       : NULL;
}

/* TMPDIR may be set because the snapshot does not fit into /tmp. */
static int make_directory(struct stamping *stamping) {
        const char *parent = getenv("TMPDIR");
        int n = snprintf(stamping->directory, sizeof stamping->directory,
                         "%s/holdfast-snapshot-XXXXXX", parent && parent[0] ? parent : "/tmp");

        if (n < 0 || (size_t)n >= sizeof stamping->directory)
                return hf_fail(stamping->status, HF_E_TOO_LARGE, "TMPDIR is too long");
        return mkdtemp(stamping->directory)
                       ? 0
                       : hf_fail(stamping->status, -errno, "%s cannot be created: %s",
                                 stamping->directory, strerror(errno));
}

/* Removes the temporary file, and the file <temporary>.part, which etcdctl writes and then renames
 * to it. */
static void remove_temporary(const char *temporary) {
        char part[PATH_MAX + 8];

        (void)snprintf(part, sizeof part, "%s.part", temporary);
        (void)unlink(part);
        (void)unlink(temporary);
}

/* Both paths must be absolute, because the children work in another directory. */
static int stamp_paths(struct stamping *stamping, const char *snapshot, const char *target,
                       const char *prefix) {
        char temporary[PATH_MAX];
        int r = access(snapshot, R_OK) == 0
                        ? hfd_new_file_begin(target, temporary, stamping->status)
                        : hf_fail(stamping->status, -errno, "%s cannot be read: %s", snapshot,
                                  strerror(errno));

        if (r != 0)
                return r;
        r = make_directory(stamping);
        if (r == 0) {
                r = stamp_snapshot(stamping, snapshot, temporary, prefix);
                (void)nftw(stamping->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        }
        if (r == 0)
                r = hfd_new_file_publish(temporary, target, stamping->status);
        if (r != 0)
                remove_temporary(temporary);
        return r;
}

int hfd_snapshot_stamp(const char *snapshot, const char *target, const char *prefix,
                       struct hf_status *reterr_status) {
        struct stamping stamping = {.status = reterr_status};
        char *from = absolute_path(snapshot), *to = absolute_path(target);
        int r = from && to ? 0 : out_of_memory(&stamping);

        (void)sigemptyset(&stamping.signals);
        (void)sigaddset(&stamping.signals, SIGCHLD);
        (void)sigaddset(&stamping.signals, SIGINT);
        (void)sigaddset(&stamping.signals, SIGTERM);
        (void)sigaddset(&stamping.signals, SIGHUP);
        (void)sigprocmask(SIG_BLOCK, &stamping.signals, &stamping.before);
        (void)signal(SIGCHLD, SIG_DFL); /* if it is ignored, children cannot be waited for */
        forget_etcd_environment();
        if (r == 0)
                r = stamp_paths(&stamping, from, to, prefix);
        (void)sigprocmask(SIG_SETMASK, &stamping.before, NULL);
        free(from);
        free(to);
        return r;
}
