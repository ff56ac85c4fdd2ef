/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Says why a call failed, in the words of Kubernetes' client, which is written in Go. Messages of
 * the API contain these words, and people search for them. Pure. Thread: any. */
#include <stdbool.h>

#include "base/strbuf.h"
#include "server/outbound/outbound.h"

struct hfd_outbound_failure {
        enum hfd_outbound_end end;
        const char *method, *url;
        const char *connect_to; /* NULL = the URL's host */
        int os_error;           /* errno of connecting; 0 = unknown */
        int verify_error;       /* OpenSSL's X509_V_ERR_*; 0 = none */
        bool no_such_host;
        const char *detail; /* what the client said; used where Go's words are unknown */
};

/* Appends `Post "https://...": context deadline exceeded` and the like. */
void hfd_outbound_failure_text(const struct hfd_outbound_failure *failure, struct hf__strbuf *text);
