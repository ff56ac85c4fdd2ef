/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Between rest.c and rest_watch.c: a request that has become a call. */
#include "server/cacher/cacher.h"

struct hfd_rest_request {
        struct hfd_request request; /* first: done is given this */
        struct hfd_api *api;
        struct hfd_http_request *http_request; /* a reference; its body is the call's */
        struct hf_fence *fence;                /* owned; the call's; NULL = none */
        struct hf__strbuf translated; /* the call's body instead, when it came as protobuf */
};

void hfd_rest_reply(struct hfd_http_request *http_request, const struct hfd_response *response);
/* Takes rest. */
void hfd_rest_watch(struct hfd_rest_request *rest);
void hfd_rest_free(struct hfd_rest_request *rest); /* drops the request, too */
