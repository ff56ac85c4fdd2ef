/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The webhook that a definition names (spec.conversion.webhook). Pure. Thread: any. */
#include <stdbool.h>

struct hfd_custom_kind;

/* Texts are borrowed from the kind, except ca_pem. */
struct hfd_webhook_config {
        const char *url;                                      /* NULL = the service */
        const char *service_ns, *service_name, *service_path; /* the path may be NULL */
        unsigned service_port;
        char *ca_pem;  /* owned; NULL = the system's CAs */
        bool takes_v1; /* it reads ConversionReviews of v1 */
};

/* False: the kind has no usable webhook, or memory has run out; then ca_pem is NULL. The caller
 * frees ca_pem. */
bool hfd_webhook_config_read(const struct hfd_custom_kind *kind,
                             struct hfd_webhook_config *ret_config);
