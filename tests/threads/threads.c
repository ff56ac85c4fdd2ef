/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads SCENARIO... [--seed N] [--seeds N] [--trace] [--hash]
 * threads --list
 *
 * Runs each scenario with the seeds N, N + 1, ... The first schedule that fails ends the program:
 * it prints why and how to repeat that schedule, and exits with status 1.
 */
#undef NDEBUG
#include "threads.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/cancel.h>
#include <holdfast/error.h>

#include "base/process_mark.h"
#include "base/thread.h"

#define N_SEEDS 1000

static const struct scenario {
        const char *name;
        void (*run)(void);
} scenarios[] = {
        {"cancel-wait", cancel_wait},
        {"cancel-waker", cancel_waker},
        {"hooks-stop", hooks_stop},
        {"queue-keys", queue_keys},
        {"informer-end", informer_end},
        {"informers-share", informers_share},
        {"controller-order", controller_order},
        {"custom-kinds", custom_kinds},
        {"lock-end", lock_end},
        {"loop-client", loop_client},
        {"reconciler-workers", reconciler_workers},
        {"cacher-life", cacher_life},
        {"elector-start-stop", elector_start_stop},
        {"elector-terms", elector_terms},
        {"elector-late-refusal", elector_late_refusal},
        {"elector-last-answer", elector_last_answer},
        {"planted-lost-wake", planted_lost_wake},
        {"planted-late-signal", planted_late_signal},
        {"planted-lock-order", planted_lock_order},
        {"planted-flag", planted_flag},
        {"planted-thread-left", planted_thread_left},
        {"planted-spin", planted_spin},
};
#define N_SCENARIOS (sizeof scenarios / sizeof *scenarios)

static struct {
        unsigned long long first, n;
        int trace, hash, list;
} options = {.first = 1, .n = N_SEEDS};

const struct hf_host scenario_host = {.size = sizeof scenario_host};

pthread_t scenario_thread(const char *name, void *(*fn)(void *ctx), void *ctx) {
        pthread_t thread;
        int r = hf__thread_start(&scenario_host, name, fn, ctx, &thread);

        assert(r == 0);
        return thread;
}

void scenario_sleep(hf_nsec duration) {
        int r = hf_cancel_wait(hf_cancel_never(), hf_now(hf_clock_system()) + duration);

        assert(r == HF_E_TIMEOUT);
}

static void run_scenario(const struct scenario *scenario) {
        struct baton_result result;
        unsigned long long n_steps = 0, n_switches = 0;

        for (unsigned long long seed = options.first; seed < options.first + options.n; seed++) {
                char command[128];
                (void)snprintf(command, sizeof command, "threads %s --seed %llu --trace",
                               scenario->name, seed);
                baton_run(seed, options.trace, command, scenario->run, &result);
                n_steps += result.n_steps;
                n_switches += result.n_switches;
                if (options.hash)
                        (void)printf("%s %llu %016llx\n", scenario->name, seed,
                                     (unsigned long long)result.hash);
        }
        if (!options.hash)
                (void)printf("%s: %llu schedules, on average %llu steps and %llu switches\n",
                             scenario->name, options.n, n_steps / options.n,
                             n_switches / options.n);
}

static void usage(void) {
        (void)fprintf(stderr,
                      "usage: threads SCENARIO... [--seed N] [--seeds N] [--trace] [--hash]\n"
                      "       threads --list\n");
        exit(2);
}

static void read_options(int argc, char **argv) {
        static const struct option known[] = {
                {"seed", required_argument, NULL, 's'},    {"seeds", required_argument, NULL, 'n'},
                {"trace", no_argument, &options.trace, 1}, {"hash", no_argument, &options.hash, 1},
                {"list", no_argument, &options.list, 1},   {NULL, 0, NULL, 0},
        };
        bool has_first = false, has_n = false;
        int option;

        while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
                if (option == 's') {
                        options.first = strtoull(optarg, NULL, 10);
                        has_first = true;
                } else if (option == 'n') {
                        options.n = strtoull(optarg, NULL, 10);
                        has_n = true;
                } else if (option != 0) {
                        usage();
                }
        }
        if (has_first && !has_n)
                options.n = 1;
        if (options.n == 0 || (!options.list && optind == argc))
                usage();
}

static const struct scenario *find_scenario(const char *name) {
        for (size_t i = 0; i < N_SCENARIOS; i++)
                if (strcmp(scenarios[i].name, name) == 0)
                        return &scenarios[i];
        usage();
        return NULL;
}

int main(int argc, char **argv) {
        read_options(argc, argv);
        for (size_t i = 0; options.list && i < N_SCENARIOS; i++)
                (void)printf("%s\n", scenarios[i].name);
        /* Work that a process does only once must not fall into the first schedule. Otherwise that
         * seed would make another schedule when it does not come first. */
        int r = hf__process_mark_init();
        assert(r == 0);
        (void)hf__process_mark();
        for (int i = optind; i < argc; i++)
                run_scenario(find_scenario(argv[i]));
        return 0;
}
