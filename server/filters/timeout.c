/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks `timeout` for every request, because the handlers of documents, such as /version, do not
 * read the query.
 *
 * Invariant: behind this filter a `timeout` is a duration, empty, or ignored.
 */
#include "server/filters/timeout.h"

#include <stdio.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/time_format.h"
#include "server/filters/request/query.h"
#include "server/filters/request_context.h"
#include "server/filters/status_response.h"

bool hfd_timeout_filter(struct hfd_request_context *context) {
        char text[200] = "";
        char message[320];
        hf_nsec timeout;

        if (context->info.watch)
                return true;
        int r = hfd_query_get(hfd_http_request_query(context->request), "timeout", text,
                              sizeof text);
        if (r == HF_E_NOT_FOUND)
                return true;
        const char *amount = text + (*text == '-'); /* a negative one counts as absent */
        if (r == 0 && (!*text || hf__duration_parse(amount, &timeout) == 0))
                return true;
        /* The messages of Go for the two most common mistakes. A text that cannot be decoded is not
         * shown. */
        bool no_unit = r == 0 && *amount && amount[strspn(amount, "0123456789.")] == '\0';
        (void)snprintf(message, sizeof message,
                       "invalid timeout specified in the request URL - time: %s duration \"%s\"",
                       no_unit ? "missing unit in" : "invalid", r == 0 ? text : "");
        hfd_status_response_code(context->request, 400, 0, message);
        return false;
}
