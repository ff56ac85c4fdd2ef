/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holdfastd with an additional leader-only controller, `test-writer`. From the first moment of its
 * term it writes the ConfigMap default/test-writer again and again, each time with its term and a
 * count, until its tokens fire. Tests look at the first write of a new term, and at the writes of a
 * leader that was paused.
 *
 *      WRITER_PAUSE_MS          the time between two writes (20)
 *      WRITER_LINGER_MS         how long it goes on after a drain was requested (0), as a
 *                               controller with unfinished work does
 *      WRITER_IGNORES_TOKENS=1  it never returns
 *      WRITER_GATE_OFF=1        the gate is off, so that only the fence stops late writes
 *      WRITER_OFF=1             there is no such controller
 *
 * stderr gets a line `writer: refused: <error>` for the first refusal of each kind in a term.
 *
 * For the tests of the bootstrap:
 *
 *      BOOTSTRAP_VERSION        the version that it bootstraps as
 *      BOOTSTRAP_PHASE_0        a directory of further manifests of phase 0
 *      BOOTSTRAP_PAUSE          a point "<phase>/<what>/<steps settled>" ("phase-1/applied/2"): it
 *                               writes `bootstrap: paused at <point>` to stderr and waits there,
 *                               until the file BOOTSTRAP_GO exists, or forever
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leader/gate.h"
#include "server/main/program.h"
#include "server/server.h"

static int write_once(struct hf_term *term, unsigned long long count, bool *exists) {
        static const struct hf_resource configmaps = {"", "v1", "configmaps"};
        const struct hf_fence *fence = hf_term_fence(term);
        struct hf_status status;
        char body[640];
        int n = snprintf(body, sizeof body,
                         "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                         "\"test-writer\",\"namespace\":\"default\"},"
                         "\"data\":{\"term\":\"%llu\",\"count\":\"%llu\",\"identity\":\"%s\"}}",
                         (unsigned long long)fence->term, count, fence->identity);
        struct hf_request request = {.size = sizeof request,
                                     .verb = *exists ? HF_VERB_UPDATE : HF_VERB_CREATE,
                                     .resource = configmaps,
                                     .ns = "default",
                                     .name = *exists ? "test-writer" : NULL,
                                     .body = body,
                                     .n_body = (size_t)n};
        int r = hf_client_do(hf_term_client(term), &request, hf_cancel_never(), NULL, NULL,
                             &status);

        if (r == HF_E_EXISTS || r == HF_E_NOT_FOUND) {
                *exists = r == HF_E_EXISTS;
                return write_once(term, count, exists);
        }
        return r;
}

static hf_nsec from_environment(const char *name, int otherwise_ms) {
        const char *text = getenv(name);
        return (text ? atoi(text) : otherwise_ms) * HF_NSEC_PER_MSEC;
}

/* Called after the drain: waits for the next write. Returns whether there is unfinished work. */
static bool wait_while_lingering(struct hf_term *term, hf_nsec every, hf_nsec *until) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));

        if (*until == 0)
                *until = hf_now(clock) + from_environment("WRITER_LINGER_MS", 0);
        return hf_now(clock) < *until &&
               hf_cancel_wait(hf_term_abort(term), hf_now(clock) + every) != HF_E_CANCELED;
}

/* Waits for the next write. Returns true if the writer has to end. */
static bool pause_or_end(struct hf_term *term, hf_nsec every, unsigned *n_more,
                         hf_nsec *linger_until) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        bool ignores_tokens = getenv("WRITER_IGNORES_TOKENS") != NULL;

        if (ignores_tokens ||
            hf_cancel_wait(hf_term_drain(term), hf_now(clock) + every) != HF_E_CANCELED) {
                if (ignores_tokens)
                        (void)hf_cancel_wait(hf_cancel_never(), hf_now(clock) + every);
                return false;
        }
        if (wait_while_lingering(term, every, linger_until))
                return false;
        return (*n_more)-- == 0;
}

static int run_writer(struct hf_term *term, void *ctx) {
        bool exists = true, reported[64] = {0};
        hf_nsec every = from_environment("WRITER_PAUSE_MS", 20), linger_until = 0;
        /*
         * With the gate off, the writer makes a few more writes after its end was requested. Only
         * the fence can reject those.
         */
        unsigned n_more = getenv("WRITER_GATE_OFF") ? 5 : 0;

        (void)ctx;
        for (unsigned long long count = 1;; count++) {
                int r = write_once(term, count, &exists);
                int kind = r > 0 && r < 64 ? r : 0;
                if (r != 0 && !reported[kind]) {
                        reported[kind] = true;
                        fprintf(stderr, "writer: refused: %s\n", hf_strerror(r));
                }
                if (pause_or_end(term, every, &n_more, &linger_until))
                        return 0;
        }
}

static void on_bootstrap(enum hf_bootstrap_point point, const struct hf_bootstrap_info *info) {
        static const char *const points[] = {"begun",    "applied", "recorded",
                                             "complete", "failing", "gave-way"};
        const char *pause = getenv("BOOTSTRAP_PAUSE");
        char here[96];

        (void)snprintf(here, sizeof here, "%s/%s/%zu", info->phase, points[point], info->n_settled);
        if (!pause || strcmp(pause, here) != 0)
                return;
        fprintf(stderr, "bootstrap: paused at %s\n", here);
        const char *go = getenv("BOOTSTRAP_GO");
        while (!go || access(go, F_OK) != 0)
                (void)hf_cancel_wait(hf_cancel_never(),
                                     hf_now(hf_clock_system()) + 10 * HF_NSEC_PER_MSEC);
}

/* Stands in for the gate's decision about a write, see meson.build: with the gate off, late writes
 * reach the server, even those after the abort of the term. */
int __real_hf__gate_admit(struct hf__gate *gate, hf_nsec now, bool is_over, hf_nsec *deadline,
                          const char **ret_why);
int __wrap_hf__gate_admit(struct hf__gate *gate, hf_nsec now, bool is_over, hf_nsec *deadline,
                          const char **ret_why);

int __wrap_hf__gate_admit(struct hf__gate *gate, hf_nsec now, bool is_over, hf_nsec *deadline,
                          const char **ret_why) {
        if (getenv("WRITER_GATE_OFF"))
                return 0;
        return __real_hf__gate_admit(gate, now, is_over, deadline, ret_why);
}

int main(int argc, char **argv) {
        struct hf_controller writer = {.size = sizeof writer,
                                       .name = "test-writer",
                                       .runs = HF_LEADER_ONLY,
                                       .run = run_writer};
        const char *phase_0[] = {getenv("BOOTSTRAP_PHASE_0")};
        struct hfd_extra extra = {.controllers = &writer,
                                  .n_controllers = getenv("WRITER_OFF") ? 0 : 1,
                                  .version = getenv("BOOTSTRAP_VERSION"),
                                  .phase_0_directories = phase_0,
                                  .n_phase_0_directories = phase_0[0] ? 1 : 0,
                                  .on_bootstrap = on_bootstrap};

        return hfd_program_main(argc, argv, &extra);
}
