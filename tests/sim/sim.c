/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim [--schedules N] [--seed S] [--electors N] [--jobs N] [--sweep] [--stop PROC:STEP[:calm]]
 *     [--slow] [--queued] [--defect NAME] [--by-effect] [--expect PROMISES] [--trace]
 *     [--svg FILE [--last S]] [--steps]
 * sim --list-defects
 *
 * Runs schedules from seed S on, in several jobs (0 = one for each processor). It stops at the
 * first schedule that breaks a promise. Exit status 0: every promise was kept, and (from 10,000
 * schedules on) each kind of event happened often enough.
 *
 * --sweep      repeats each schedule for each step of one of its processes, and stops it there
 * --stop       runs one of the schedules of a sweep
 * --slow       in each schedule the leader dies while the server is slow, see slow.c
 * --queued     operations may have to wait before they are sent, see queued.c
 * --defect     makes what surrounds the core defective, see defects.h
 * --by-effect  leaves out the checks that notice a mistake before it does harm, see check.c
 * --expect     names promises (P1,P2). Exit status 0: one of them was broken; 1: none, or another
 * --trace      shows one schedule as text, --svg as a picture
 * --steps      prints what the model of the election (leader/model) knows of each schedule
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/process_mark.h"
#include "tests/sim/sim.h"

void sim_violate(struct sim *sim, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        vsnprintf(sim->violation, sizeof sim->violation, format, ap);
        va_end(ap);
        TRACE(sim, "VIOLATION %s", sim->violation);
        sim_mark(sim, MARK_VIOLATION, -1, sim->now, 0, sim->violation);
        longjmp(sim->violated, 1);
}

void sim_trace(struct sim *sim, const char *format, ...) {
        va_list ap;

        printf("%10.4f  ", (double)sim->now / 1e9);
        va_start(ap, format);
        vprintf(format, ap);
        va_end(ap);
        putchar('\n');
}

void sim_print_step(const char *identity, const char *format, ...) {
        va_list ap;

        printf("%s ", identity);
        va_start(ap, format);
        vprintf(format, ap);
        va_end(ap);
        putchar('\n');
}

static const struct {
        const char *name, *text;
        enum sim_defect defect;
} defects[] = {
#define X(name, text) {#name, text, SIM_DEFECT_##name},
        SIM_DEFECTS(X)
#undef X
};

static enum sim_defect find_defect(const char *name) {
        for (size_t i = 0; i < sizeof defects / sizeof defects[0]; i++)
                if (strcmp(defects[i].name, name) == 0)
                        return defects[i].defect;
        return SIM_DEFECT_NONE;
}

static const char *defect_name(enum sim_defect defect) {
        for (size_t i = 0; i < sizeof defects / sizeof defects[0]; i++)
                if (defects[i].defect == defect)
                        return defects[i].name;
        return "none";
}

static int list_defects(void) {
        for (size_t i = 0; i < sizeof defects / sizeof defects[0]; i++)
                printf("%-24s %s\n", defects[i].name, defects[i].text);
        return 0;
}

static bool print_counts(const struct sim_counts *counts, uint64_t n_schedules, bool check) {
        bool enough = true;

#define X(name, least)                                                                             \
        printf("  %-26s %12" PRIu64 "\n", #name, counts->name);                                    \
        if (check && n_schedules >= 10000 && counts->name < (least) * (n_schedules / 10000)) {     \
                printf("FAIL: %s: at least %" PRIu64 " must happen\n", #name,                      \
                       (uint64_t)(least) * (n_schedules / 10000));                                 \
                enough = false;                                                                    \
        }
        SIM_COUNTS(X)
#undef X
        return enough;
}

struct options {
        struct sim_plan plan;
        struct sim_sweep stop;
        const char *expect, *svg;
        hf_nsec last;
        bool trace, steps, list;
};

static int print_usage(void) {
        fprintf(stderr,
                "usage: sim [--schedules N] [--seed S] [--electors 2..%d] [--jobs N] [--sweep] "
                "[--stop PROC:STEP[:calm]]\n"
                "           [--slow] [--queued] [--defect NAME] [--by-effect] [--expect P1,P2...] "
                "[--trace]\n"
                "           [--svg FILE [--last SECONDS]] [--steps]\n"
                "       sim --list-defects\n",
                MAX_PROCS);
        return 2;
}

static bool parse_stop(struct sim_sweep *stop, const char *text) {
        char calm[8] = "";
        int n = sscanf(text, "%d:%u:%7s", &stop->proc, &stop->at, calm);

        stop->on = true;
        stop->calm = strcmp(calm, "calm") == 0;
        return n >= 2 && stop->proc >= 0 && stop->proc < MAX_PROCS && (n == 2 || stop->calm);
}

static const struct option long_options[] = {{"schedules", required_argument, NULL, 'n'},
                                             {"seed", required_argument, NULL, 's'},
                                             {"electors", required_argument, NULL, 'e'},
                                             {"jobs", required_argument, NULL, 'j'},
                                             {"sweep", no_argument, NULL, 'w'},
                                             {"slow", no_argument, NULL, 'o'},
                                             {"queued", no_argument, NULL, 'q'},
                                             {"stop", required_argument, NULL, 'p'},
                                             {"defect", required_argument, NULL, 'd'},
                                             {"list-defects", no_argument, NULL, 'l'},
                                             {"by-effect", no_argument, NULL, 'b'},
                                             {"expect", required_argument, NULL, 'x'},
                                             {"trace", no_argument, NULL, 't'},
                                             {"svg", required_argument, NULL, 'g'},
                                             {"last", required_argument, NULL, 'a'},
                                             {"steps", no_argument, NULL, 'm'},
                                             {0}};

static bool parse_options(int argc, char **argv, struct options *o) {
        int c;

        while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
                switch (c) {
                case 'n': o->plan.n_schedules = strtoull(optarg, NULL, 10); break;
                case 's': o->plan.seed = strtoull(optarg, NULL, 10); break;
                case 'e': o->plan.electors = atoi(optarg); break;
                case 'j':
                        o->plan.n_jobs =
                                atoi(optarg) ? atoi(optarg) : (int)sysconf(_SC_NPROCESSORS_ONLN);
                        break;
                case 'w': o->plan.sweep = true; break;
                case 'o': o->plan.slow = true; break;
                case 'q': o->plan.queued = true; break;
                case 'p':
                        if (!parse_stop(&o->stop, optarg))
                                return false;
                        break;
                case 'd':
                        o->plan.defect = find_defect(optarg);
                        if (o->plan.defect == SIM_DEFECT_NONE)
                                return false;
                        break;
                case 'b': o->plan.by_effect = true; break;
                case 'x': o->expect = optarg; break;
                case 'l': o->list = true; break;
                case 't': o->trace = true; break;
                case 'm': o->steps = true; break;
                case 'g': o->svg = optarg; break;
                case 'a': o->last = (hf_nsec)(atof(optarg) * (double)S); break;
                default: return false;
                }
        }
        return optind == argc && o->plan.n_jobs > 0 &&
               (o->plan.electors == 0 || (o->plan.electors >= 2 && o->plan.electors <= MAX_PROCS));
}

/* A violation begins with its promise: "P1: ...". */
static bool is_expected(const struct options *o, const char *violation) {
        size_t length = strcspn(violation, ":");

        for (const char *promise = o->expect; promise; promise = strchr(promise, ',')) {
                promise += *promise == ',';
                if (strcspn(promise, ",") == length && strncmp(promise, violation, length) == 0)
                        return true;
        }
        return false;
}

static void print_failure(const struct options *o, const struct sim_failure *failure) {
        bool expected = is_expected(o, failure->violation);

        printf("%s at seed %" PRIu64 ", schedule %" PRIu64 ", %.4f s: %s\n",
               expected ? "caught" : "FAIL", failure->seed, failure->nth + 1,
               (double)failure->at / 1e9, failure->violation);
        if (o->expect && !expected)
                printf("FAIL: expected was a violation of %s\n", o->expect);
        printf("replay: sim --seed %" PRIu64, failure->seed);
        if (o->plan.defect != SIM_DEFECT_NONE)
                printf(" --defect %s", defect_name(o->plan.defect));
        if (o->plan.by_effect)
                printf(" --by-effect");
        if (o->plan.slow)
                printf(" --slow");
        if (o->plan.queued)
                printf(" --queued");
        if (o->plan.electors)
                printf(" --electors %d", o->plan.electors);
        if (failure->sweep.on)
                printf(" --stop %d:%u%s", failure->sweep.proc, failure->sweep.at,
                       failure->sweep.calm ? ":calm" : "");
        printf(" --trace --svg timeline.svg\n");
}

/* Runs one schedule and shows it as text or as a picture. */
static int show_schedule(const struct options *o) {
        struct sim_counts counts = {0};
        struct sim *sim = calloc(1, sizeof *sim);
        int r = 0;
        bool good, expected;

        if (!sim)
                return 2;
        sim->counts = &counts;
        sim->trace = o->trace;
        sim->draw = o->svg != NULL;
        sim->sweep = o->stop;
        sim->slow = o->plan.slow;
        sim->queued = o->plan.queued;
        sim->defect = o->plan.defect;
        sim->by_effect = o->plan.by_effect;
        good = sim_schedule(sim, o->plan.seed, o->plan.electors);
        expected = !good && is_expected(o, sim->violation);
        if (!good)
                printf("%s at %.4f s: %s\n", expected ? "caught" : "FAIL", (double)sim->now / 1e9,
                       sim->violation);
        if (o->svg)
                r = sim_timeline_write(sim, o->svg, o->plan.seed, o->last);
        if (r != 0)
                fprintf(stderr, "sim: cannot write %s: %s\n", o->svg, strerror(-r));
        free(sim->marks);
        free(sim);
        if (r != 0)
                return 2;
        return (o->expect ? expected : good) ? 0 : 1;
}

/* Prints the steps of each schedule. A mistake ends a schedule early, which is not a failure
 * here. */
static int print_steps(const struct options *o) {
        struct sim_counts counts = {0};
        struct sim *sim = calloc(1, sizeof *sim);

        if (!sim)
                return 2;
        sim->counts = &counts;
        sim->steps = true;
        sim->defect = o->plan.defect;
        for (uint64_t i = 0; i < o->plan.n_schedules; i++) {
                printf("schedule %" PRIu64 "\n", o->plan.seed + i);
                (void)sim_schedule(sim, o->plan.seed + i, o->plan.electors);
        }
        free(sim);
        return 0;
}

static double seconds_now(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Whether the events for which this kind of schedules is made happened often enough. */
static bool has_done_enough(const struct options *o, const struct sim_counts *counts,
                            uint64_t n_run) {
        if (o->plan.sweep &&
            counts->stops_at_a_step * 10 <
                    n_run * 8) { /* the other runs had stopped before, or were stuck */
                printf("FAIL: only %" PRIu64 " stops at a step\n", counts->stops_at_a_step);
                return false;
        }
        if (o->plan.slow && (counts->slow_crashes_timed < n_run / 2 ||
                             counts->slow_crashes_near_bound < n_run / 2000)) {
                printf("FAIL: only %" PRIu64 " deaths of a leader, %" PRIu64 " near the bound\n",
                       counts->slow_crashes_timed, counts->slow_crashes_near_bound);
                return false;
        }
        if (o->plan.queued &&
            (counts->waits < n_run || counts->requests_while_waiting < n_run / 2)) {
                printf("FAIL: only %" PRIu64 " operations had to wait\n", counts->waits);
                return false;
        }
        return true;
}

int main(int argc, char **argv) {
        struct options o = {.plan = {.seed = 1, .n_jobs = 1}};
        struct sim_counts counts;
        struct sim_failure failure;
        double began = seconds_now();
        uint64_t n_run;
        int r;

        if (!parse_options(argc, argv, &o))
                return print_usage();
        if (hf__process_mark_init() != 0) { /* for the gates */
                fprintf(stderr, "sim: out of memory\n");
                return 1;
        }
        if (o.list)
                return list_defects();
        if (o.trace || o.svg || o.stop.on)
                return show_schedule(&o);
        if (o.plan.n_schedules == 0)
                o.plan.n_schedules = 1000;
        if (o.steps)
                return print_steps(&o);
        o.plan.progress = !o.expect;
        r = sim_run(&o.plan, &counts, &failure, &n_run);
        if (r != 0) {
                fprintf(stderr, "sim: %s\n", strerror(-r));
                return 2;
        }
        if (failure.found)
                print_failure(&o, &failure);
        if (o.expect) {
                if (!failure.found)
                        printf("FAIL: %s was not broken in %" PRIu64 " schedules\n", o.expect,
                               n_run);
                return failure.found && is_expected(&o, failure.violation) ? 0 : 1;
        }
        printf("%" PRIu64 " schedules, %.0f per second\n", n_run,
               (double)n_run / (seconds_now() - began));
        if (!has_done_enough(&o, &counts, n_run))
                return 1;
        bool is_mixed = !o.plan.sweep && !o.plan.slow; /* all kinds of events happen */
        return print_counts(&counts, n_run, !failure.found && is_mixed) && !failure.found ? 0 : 1;
}
