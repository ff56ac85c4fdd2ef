/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs millions of schedules. Job j of n runs the seeds S + j, S + j + n, and so on. If there are
 * several jobs, each is a process of its own, and shares only its counts and its failure with the
 * parent. The parent prints the progress, and stops all jobs at the first failure. If several jobs
 * have found a failure by then, the parent reports the one with the smallest seed. A single job
 * runs in the parent, which then prints no progress.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/sim.h"

#define MAX_JOBS 256

struct job {
        _Atomic uint64_t n_run; /* the parent reads this while the job runs */
        struct sim_counts counts;
        struct sim_failure failure; /* written before stop is set */
};

struct shared {
        _Atomic bool stop;
        struct job jobs[];
};

static void note_failure(const struct sim *sim, uint64_t seed, struct job *job) {
        job->failure = (struct sim_failure){.found = true,
                                            .seed = seed,
                                            .nth = atomic_load(&job->n_run),
                                            .sweep = sim->sweep,
                                            .at = sim->now};
        memcpy(job->failure.violation, sim->violation, sizeof sim->violation);
}

static bool run_one(struct sim *sim, const struct sim_plan *plan, uint64_t seed, struct job *job) {
        bool good = sim_schedule(sim, seed, plan->electors);

        if (!good)
                note_failure(sim, seed, job);
        atomic_fetch_add(&job->n_run, 1);
        return good;
}

/*
 * Runs a schedule without a stop, then once more for each step of one of its processes, which is
 * stopped there.
 */
static bool run_sweep(struct sim *sim, const struct sim_plan *plan, uint64_t seed,
                      struct job *job) {
        unsigned n_steps;

        sim->sweep =
                (struct sim_sweep){.on = true, .calm = seed % 2 == 0, .proc = (int)(seed / 2 % 2)};
        if (!run_one(sim, plan, seed, job))
                return false;
        n_steps = sim->sweep.n_steps;
        for (sim->sweep.at = 1; sim->sweep.at <= n_steps; sim->sweep.at++)
                if (!run_one(sim, plan, seed, job))
                        return false;
        return true;
}

static int run_job(const struct sim_plan *plan, struct shared *shared, int j) {
        struct sim *sim = calloc(1, sizeof *sim);
        struct job *job = &shared->jobs[j];

        if (!sim)
                return -ENOMEM;
        sim->counts = &job->counts;
        sim->slow = plan->slow;
        sim->queued = plan->queued;
        sim->defect = plan->defect;
        sim->by_effect = plan->by_effect;
        for (uint64_t i = (uint64_t)j; i < plan->n_schedules && !atomic_load(&shared->stop);
             i += (uint64_t)plan->n_jobs)
                if (!(plan->sweep ? run_sweep : run_one)(sim, plan, plan->seed + i, job))
                        atomic_store(&shared->stop, true);
        free(sim);
        return 0;
}

static double seconds_now(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static uint64_t count_runs(const struct sim_plan *plan, struct shared *shared) {
        uint64_t n = 0;

        for (int j = 0; j < plan->n_jobs; j++)
                n += atomic_load(&shared->jobs[j].n_run);
        return n;
}

/* On a terminal this updates one line, in a log it prints a line each minute. */
static void print_progress(const struct sim_plan *plan, struct shared *shared, double began,
                           double *printed_at) {
        bool terminal = isatty(2);
        double now = seconds_now();
        uint64_t n = count_runs(plan, shared);

        if (now - *printed_at < (terminal ? 0.5 : 60))
                return;
        *printed_at = now;
        if (plan->sweep)
                fprintf(stderr, "%s%" PRIu64 " runs, %.0f per second%s", terminal ? "\r" : "", n,
                        (double)n / (now - began), terminal ? "   " : "\n");
        else
                fprintf(stderr,
                        "%s%" PRIu64 " of %" PRIu64
                        " schedules (%.1f %%), %.0f per second, %.0f s to go%s",
                        terminal ? "\r" : "", n, plan->n_schedules,
                        100 * (double)n / (double)plan->n_schedules, (double)n / (now - began),
                        (double)(plan->n_schedules - n) * (now - began) / (double)(n + 1),
                        terminal ? "   " : "\n");
}

/* A job that dies is a failure too: the simulator has a bug, or an assertion of the core failed. */
static int await_jobs(const struct sim_plan *plan, struct shared *shared) {
        const struct timespec poll_interval = {.tv_sec = 1};
        sigset_t ended;
        double began = seconds_now(), printed_at = began;
        int n_left = plan->n_jobs, r = 0, status;

        sigemptyset(&ended);
        sigaddset(&ended, SIGCHLD);
        while (n_left > 0) {
                pid_t pid = waitpid(-1, &status, WNOHANG);

                if (pid > 0) {
                        n_left--;
                        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                                fprintf(stderr, "sim: a job ended with status %#x\n",
                                        (unsigned)status);
                                r = -ECHILD;
                                atomic_store(&shared->stop, true);
                        }
                        continue;
                }
                if (plan->progress)
                        print_progress(plan, shared, began, &printed_at);
                /* run_jobs() has blocked the signal, so none is missed. */
                (void)sigtimedwait(&ended, NULL, &poll_interval);
        }
        if (plan->progress && isatty(2))
                fputc('\n', stderr);
        return r;
}

/* A single job runs in this process, where a debugger can follow it. */
static int run_jobs(const struct sim_plan *plan, struct shared *shared) {
        pid_t pids[MAX_JOBS], parent = getpid();
        sigset_t ended;
        int n = 0, r;

        if (plan->n_jobs == 1)
                return run_job(plan, shared, 0);
        sigemptyset(&ended);
        sigaddset(&ended, SIGCHLD);
        sigprocmask(SIG_BLOCK, &ended, NULL);
        fflush(NULL);
        for (; n < plan->n_jobs; n++) {
                pids[n] = fork();
                if (pids[n] < 0)
                        break;
                if (pids[n] == 0) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL); /* no job outlives its parent */
                        _exit(getppid() != parent || run_job(plan, shared, n) != 0 ? 1 : 0);
                }
        }
        if (n == plan->n_jobs)
                return await_jobs(plan, shared);
        r = -errno;
        atomic_store(&shared->stop, true);
        for (int i = 0; i < n; i++)
                waitpid(pids[i], NULL, 0);
        return r;
}

int sim_run(const struct sim_plan *plan, struct sim_counts *counts, struct sim_failure *ret_failure,
            uint64_t *ret_n_run) {
        size_t size = sizeof(struct shared) + (size_t)plan->n_jobs * sizeof(struct job);
        struct shared *shared;
        int r;

        if (plan->n_jobs < 1 || plan->n_jobs > MAX_JOBS)
                return -EINVAL;
        shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED)
                return -errno;
        r = run_jobs(plan, shared);
        memset(ret_failure, 0, sizeof *ret_failure);
        memset(counts, 0, sizeof *counts);
        for (int j = 0; j < plan->n_jobs; j++) {
                const struct job *job = &shared->jobs[j];

                if (job->failure.found &&
                    (!ret_failure->found || job->failure.seed < ret_failure->seed))
                        *ret_failure = job->failure;
#define X(name, least) counts->name += job->counts.name;
                SIM_COUNTS(X)
#undef X
        }
        *ret_n_run = count_runs(plan, shared);
        munmap(shared, size);
        return r;
}
