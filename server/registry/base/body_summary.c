/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the beginning of a body in a message.
 *
 * Invariant: SHOWN_MAX bytes as two digits each, the dots and the NUL fit into
 * HFD_BODY_SUMMARY_MAX. A body that does not begin like an object may be protobuf, so its bytes are
 * shown as digits, as Kubernetes does.
 */
#include "server/registry/base/body_summary.h"

#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 30 /* bytes */

void hfd_body_summary(const char *body, size_t n, char out[HFD_BODY_SUMMARY_MAX]) {
        const char *dots = n > SHOWN_MAX ? " ..." : "";
        int n_shown = n > SHOWN_MAX ? SHOWN_MAX : (int)n, at = 0;

        if (n == 0) {
                (void)snprintf(out, HFD_BODY_SUMMARY_MAX, "<empty>");
                return;
        }
        if (body[0] == '{') {
                (void)snprintf(out, HFD_BODY_SUMMARY_MAX, "%.*s%s", n_shown, body, dots);
                return;
        }
        for (int i = 0; i < n_shown; i++)
                at += snprintf(out + at, (size_t)(HFD_BODY_SUMMARY_MAX - at), "%02x",
                               (unsigned char)body[i]);
        (void)snprintf(out + at, (size_t)(HFD_BODY_SUMMARY_MAX - at), "%s", dots);
}
