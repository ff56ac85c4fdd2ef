/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pause at the beginning of a term, before a controller compares its default objects.
 *
 * Invariant: the pause is a wait for the drain token, so a term that ends meanwhile ends the pause
 * too. The result of the wait does not matter: the controller's loop looks at the token itself.
 */
#include "server/controllers/base/defaults_pause.h"

#define PAUSE (20 * HF_NSEC_PER_MSEC) /* several times as long as a hand-over usually takes */

void hfd_defaults_pause(struct hf_term *term, struct hf_informer *informer) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));

        if (hf_informer_count(informer) > 0)
                (void)hf_cancel_wait(hf_term_drain(term), hf_now(clock) + PAUSE);
}
