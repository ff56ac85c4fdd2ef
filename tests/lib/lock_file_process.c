/* SPDX-License-Identifier: Apache-2.0 */
/* See lock_file_process.h. Invariant: the process ends with the test, even with one that fails. */
#undef NDEBUG
#include "lock_file_process.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The process: locks the file, sends its description, and waits until it is killed. */
static void run(const char *path, int to_parent, bool with_child) {
        struct hf__holder_lock *lock = NULL;

        if (hf__holder_lock_new(path, &lock, NULL) != 0)
                _exit(1);
        if (with_child && fork() == 0)
                for (;;)
                        (void)pause();
        const char *process = hf__holder_lock_process(lock);
        if (write(to_parent, process, strlen(process) + 1) < 0)
                _exit(1);
        for (;;)
                (void)pause();
}

pid_t lock_file_process_start(const char *path, bool with_child,
                              char process[HF__HOLDER_PROCESS_MAX]) {
        size_t n = 0;
        int fds[2];
        int r = pipe2(fds, O_CLOEXEC);
        assert(r == 0);
        pid_t pid = fork();

        assert(pid >= 0);
        if (pid == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing */
                (void)setpgid(0, 0); /* so that its child can be killed with it */
                run(path, fds[1], with_child);
        }
        (void)setpgid(pid, pid);
        while (n == 0 || process[n - 1] != '\0') {
                ssize_t got = read(fds[0], process + n, HF__HOLDER_PROCESS_MAX - n);
                assert(got > 0);
                n += (size_t)got;
        }
        close(fds[0]);
        close(fds[1]);
        return pid;
}

void lock_file_process_kill(pid_t pid) {
        int r = kill(pid, SIGKILL);
        assert(r == 0);
        pid_t waited = waitpid(pid, NULL, 0);
        assert(waited == pid);
}
