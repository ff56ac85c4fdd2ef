/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim [--schedules N] [--seed S] [--electors N] [--mutant NAME] [--trace]
 *
 * Runs N schedules from seed S on. Exit status 0: every promise was kept (and, from 10,000 schedules on, everything that
 * is to happen has happened often enough). With --mutant: 0 when the fault was caught, 1 when it was not.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/sim.h"

void sim_violate(struct sim *sim, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        vsnprintf(sim->violation, sizeof(sim->violation), format, ap);
        va_end(ap);
        TRACE(sim, "VIOLATION %s", sim->violation);
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

static const struct {
        const char *name;
        size_t offset;
} mutants[] = {
        {"skip_join", offsetof(struct hf__core_mutant, skip_join)},
        {"release_before_join", offsetof(struct hf__core_mutant, release_before_join)},
        {"gate_by_flag", offsetof(struct hf__core_mutant, gate_by_flag)},
        {"count_from_reply", offsetof(struct hf__core_mutant, count_from_reply)},
        {"skip_compare", offsetof(struct hf__core_mutant, skip_compare)},
};

static bool set_mutant(struct hf__core_mutant *mutant, const char *name) {
        for (size_t i = 0; i < sizeof(mutants) / sizeof(mutants[0]); i++)
                if (strcmp(mutants[i].name, name) == 0) {
                        *(bool *)((char *)mutant + mutants[i].offset) = true;
                        return true;
                }
        return false;
}

static bool print_counts(const struct sim_counts *counts, uint64_t n_schedules) {
        bool enough = true;

#define X(name, least)                                                                                                                     \
        printf("  %-26s %12" PRIu64 "\n", #name, counts->name);                                                                            \
        if (n_schedules >= 10000 && counts->name < (least) * (n_schedules / 10000)) {                                                      \
                printf("FAIL: %s: at least %" PRIu64 " were to happen\n", #name, (uint64_t)(least) * (n_schedules / 10000));               \
                enough = false;                                                                                                            \
        }
        SIM_COUNTS(X)
#undef X
        return enough;
}

static double seconds(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int usage(void) {
        fprintf(stderr, "usage: sim [--schedules N] [--seed S] [--electors 2..%d] [--mutant NAME] [--trace]\n", MAX_PROCS);
        return 2;
}

int main(int argc, char **argv) {
        static const struct option options[] = {{"schedules", required_argument, NULL, 'n'}, {"seed", required_argument, NULL, 's'},
                                                {"electors", required_argument, NULL, 'e'},  {"mutant", required_argument, NULL, 'm'},
                                                {"trace", no_argument, NULL, 't'},           {0}};
        static struct sim_counts counts;
        struct sim *sim = calloc(1, sizeof(*sim));
        uint64_t n_schedules = 0, seed = 1, i;
        const char *mutant = NULL;
        int c, electors = 0;
        double start = seconds();

        if (!sim)
                return 2;
        sim->counts = &counts;
        while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
                switch (c) {
                case 'n': n_schedules = strtoull(optarg, NULL, 10); break;
                case 's': seed = strtoull(optarg, NULL, 10); break;
                case 'e': electors = atoi(optarg); break;
                case 'm': mutant = optarg; break;
                case 't': sim->trace = true; break;
                default: free(sim); return usage();
                }
        }
        if ((electors != 0 && (electors < 2 || electors > MAX_PROCS)) || (mutant && !set_mutant(&sim->mutant, mutant))) {
                free(sim);
                return usage();
        }
        if (n_schedules == 0)
                n_schedules = sim->trace ? 1 : 1000;
        for (i = 0; i < n_schedules; i++)
                if (!sim_schedule(sim, seed + i, electors))
                        break;
        if (i < n_schedules)
                printf("%s at seed %" PRIu64 ", schedule %" PRIu64 ", %.4f s: %s\n", mutant ? "caught" : "FAIL", seed + i, i + 1,
                       (double)sim->now / 1e9, sim->violation);
        if (i < n_schedules && !mutant) {
                printf("replay: sim --seed %" PRIu64 " --trace", seed + i);
                if (electors)
                        printf(" --electors %d", electors);
                putchar('\n');
        }
        if (mutant) {
                c = i < n_schedules ? 0 : 1;
                if (c)
                        printf("FAIL: the mutant %s was not caught in %" PRIu64 " schedules\n", mutant, n_schedules);
        } else {
                printf("%" PRIu64 " schedules, %.0f per second\n", i, (double)i / (seconds() - start));
                c = print_counts(&counts, n_schedules) && i == n_schedules ? 0 : 1;
        }
        free(sim);
        return c;
}
