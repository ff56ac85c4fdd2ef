/* SPDX-License-Identifier: Apache-2.0 */
/* See defaults_pause.h. */
#include "server/controllers/base/defaults_pause.h"

#define PAUSE (20 * HF_NSEC_PER_MSEC) /* several times as long as a hand-over usually takes */

void hfd_defaults_pause(struct hf_term *term, struct hf_informer *informer) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));

        if (hf_informer_count(informer) > 0)
                (void)hf_cancel_wait(hf_term_drain(term), hf_now(clock) + PAUSE);
}
