/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepares an elector's next term.
 *
 * Invariants:
 *  - next_term and term are never both set: a term is prepared only while the elector follows, and
 *    it is the next one to begin.
 *  - n_waiting_threads is the sum of the threads of all next terms of the set.
 */
#include "leader/next_term.h"

#include <assert.h>

#include "base/cleanup.h"

static void on_joined(void *ctx) { hf__elector_wake(ctx); }

struct hf__term_config hf__next_term_config(struct hf_elector *elector) {
        return (struct hf__term_config){.controllers = elector->controllers,
                                        .n_controllers = elector->n_controllers,
                                        .runs = HF_LEADER_ONLY,
                                        .label = elector->label,
                                        .joined = on_joined,
                                        .ctx = elector};
}

/* Whether a prepared term would be used. An elector that stops begins no other term. And before a
 * leader was seen, threads would be prepared in vain: a process that starts alone leads at once. */
static bool has_use(const struct hf_elector *elector) {
        const struct hf__core *core = &elector->core;

        return elector->n_controllers > 0 && core->state == HF_FOLLOWING && !elector->stop_sent &&
               core->observed.exists && core->observed.holder[0];
}

void hf__next_term_prepare(struct hf_elector *elector) {
        struct hf_electors *electors = elector->electors;

        if (elector->next_term || elector->cannot_prepare || !has_use(elector))
                return;
        assert(!elector->term);
        const struct hf__term_config config = hf__next_term_config(elector);
        size_t n = hf__term_n_threads(&config);
        if (n == 0 || electors->n_waiting_threads + n > HF__NEXT_TERM_THREADS_MAX)
                return;
        int r = hf__term_prepare(electors->host, &config, &elector->next_term);
        if (r == 0) {
                electors->n_waiting_threads += n;
                return;
        }
        elector->cannot_prepare = true;
        hf_log(&electors->host->log, HF_LOG_WARNING, "elector",
               "%s: the next term cannot be prepared (%s): its threads are started when it begins",
               elector->label, hf_strerror(r));
}

int hf__next_term_begin(struct hf_elector *elector, const struct hf__term_config *config) {
        assert(!elector->term);
        elector->cannot_prepare = false;
        if (!elector->next_term)
                return hf__term_new(elector->electors->host, config, &elector->term);
        int r = hf__term_begin(elector->next_term, config);
        if (r != 0) {
                hf__next_term_dismiss(elector);
                return r;
        }
        assert(elector->electors->n_waiting_threads >= hf__term_n_threads(config));
        elector->electors->n_waiting_threads -= hf__term_n_threads(config);
        elector->term = HF__TAKE(elector->next_term);
        return 0;
}

void hf__next_term_dismiss(struct hf_elector *elector) {
        const struct hf__term_config config = hf__next_term_config(elector);

        if (!elector->next_term)
                return;
        assert(elector->electors->n_waiting_threads >= hf__term_n_threads(&config));
        elector->electors->n_waiting_threads -= hf__term_n_threads(&config);
        elector->next_term = hf__term_free(elector->next_term);
}
