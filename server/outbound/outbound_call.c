/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates calls, counts references to them and frees them.
 *
 * Invariants: the call, the strings of its request and its body are in one block of memory, so that
 * a call is one allocation. The value of the header Authorization is wiped before the block is
 * freed.
 */
#include "server/outbound/outbound_call.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

#define AUTHORIZATION "Authorization:"

static size_t size_of(const char *text) { return text ? strlen(text) + 1 : 0; }

/* The bytes behind the struct: the array of headers, then the strings, then the body. */
static size_t count_bytes(const struct hfd_outbound_request *request) {
        size_t n = size_of(request->method) + size_of(request->url) + size_of(request->connect_to) +
                   size_of(request->ca_pem) + request->n_body;

        for (size_t i = 0; i < request->n_headers; i++)
                n += sizeof(char *) + size_of(request->headers[i]);
        return n;
}

struct hfd_outbound_call *hfd_outbound_call_new(const struct hfd_outbound_request *request) {
        struct hfd_outbound_call *call = malloc(sizeof *call + count_bytes(request));

        assert(request->method && request->url && request->done);
        if (!call)
                return NULL;
        *call = (struct hfd_outbound_call){.request = *request};
        atomic_init(&call->refs, 1);
        const char **headers = (const char **)(call + 1);
        char *end = (char *)(headers + request->n_headers);
        for (size_t i = 0; i < request->n_headers; i++)
                headers[i] = hf__text_copy(&end, request->headers[i]);
        call->request.headers = headers;
        call->request.method = hf__text_copy(&end, request->method);
        call->request.url = hf__text_copy(&end, request->url);
        call->request.connect_to = hf__text_copy(&end, request->connect_to);
        call->request.ca_pem = hf__text_copy(&end, request->ca_pem);
        if (request->n_body > 0)
                call->request.body = memcpy(end, request->body, request->n_body);
        return call;
}

void hfd_outbound_call_ref(struct hfd_outbound_call *call) { atomic_fetch_add(&call->refs, 1); }

void hfd_outbound_call_unref(struct hfd_outbound_call *call) {
        assert(atomic_load_explicit(&call->refs, memory_order_relaxed) > 0);
        if (atomic_fetch_sub(&call->refs, 1) != 1)
                return;
        for (size_t i = 0; i < call->request.n_headers; i++) {
                const char *header = call->request.headers[i];
                if (strncasecmp(header, AUTHORIZATION, strlen(AUTHORIZATION)) == 0)
                        explicit_bzero((char *)(uintptr_t)header, strlen(header));
        }
        free(call);
}
