/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backoff of the reflector: 0.1 s, doubling to 30 s, or longer if the response has a longer
 * Retry-After.
 *
 * While a thread waits at the barrier (informer_barrier.h), the delay grows only to 0.8 s, again
 * unless Retry-After is longer. Otherwise the controllers of a new leader could wait for a long
 * delay that grew during an outage before their term.
 */
#include "client/reflector_backoff.h"

#include <assert.h>

#include "base/thread.h"
#include "client/informer_private.h"

#define FIRST_DELAY (100 * HF_NSEC_PER_MSEC)
#define LAST_DELAY  (30 * HF_NSEC_PER_SEC)
/* Limits Retry-After, so that a mistake of the server cannot stop an informer for years. */
#define MAX_RETRY_AFTER (300 * HF_NSEC_PER_SEC)
/* While a thread waits, the delay stops growing after this many failures. */
#define URGENT_FAILURES 3

static hf_nsec delay_after(unsigned failures, uint32_t retry_after_s) {
        hf_nsec delay = FIRST_DELAY, requested = (hf_nsec)retry_after_s * HF_NSEC_PER_SEC;

        while (failures-- > 0 && delay < LAST_DELAY)
                delay *= 2;
        if (delay > LAST_DELAY)
                delay = LAST_DELAY;
        if (requested > MAX_RETRY_AFTER)
                requested = MAX_RETRY_AFTER;
        return requested > delay ? requested : delay;
}

hf_nsec hf__reflector_probe_delay_locked(struct hf_informer *informer, uint32_t retry_after_s) {
        unsigned failures = informer->probe_failures;

        hf__mutex_assert_held(&informer->mu);
        if (failures < URGENT_FAILURES)
                informer->probe_failures++;
        return delay_after(failures, retry_after_s);
}

hf_nsec hf__reflector_retry_at(struct hf_informer *informer, unsigned failures,
                               uint32_t retry_after_s) {
        unsigned urgent_failures = failures < URGENT_FAILURES ? failures : URGENT_FAILURES;
        hf_nsec now = hf_now(informer->clock);

        assert(hf__reflector_on_thread(&informer->reflector));
        informer->reflector.urgent_at = now + delay_after(urgent_failures, retry_after_s);
        return now + delay_after(failures, retry_after_s);
}

void hf__reflector_log_failure(const struct hf_informer *informer, const char *verb, bool is_first,
                               int error, const struct hf_status *status) {
        const char *reason = status && status->message[0] ? status->message : hf_strerror(error);

        hf_log(&informer->host->log, is_first ? HF_LOG_WARNING : HF_LOG_DEBUG, "informer",
               "%s of %s%s%s failed: %s", verb, informer->resource.plural,
               informer->ns[0] ? " in " : "", informer->ns, reason);
}
