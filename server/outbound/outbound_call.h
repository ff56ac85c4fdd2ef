/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A call, from hfd_outbound_send until its callback has returned. It has a reference count: the
 * list of calls has one reference, and the thread that sends the call has one. Private to
 * server/outbound.
 */
#include <stdatomic.h>

#include "server/outbound/outbound.h"

struct hfd_outbound_call {
        atomic_int refs;
        /* immutable once the call is in the list; the request's strings, headers and body are in
         * the same block of memory as the call */
        struct hfd_outbound *outbound;
        struct hfd_outbound_request request;
        uint64_t id;

        /* guarded by the outbound's lock */
        struct hfd_outbound_call *next_in_bucket;
        struct hfd_outbound_call *next_waiting; /* for the module */
        uint64_t engine_id;                     /* 0 = not handed to the module yet */
        bool canceled;
};

/* Copies the request. The caller owns one reference. NULL = out of memory. Thread: any. */
struct hfd_outbound_call *hfd_outbound_call_new(const struct hfd_outbound_request *request);
void hfd_outbound_call_ref(struct hfd_outbound_call *call);
void hfd_outbound_call_unref(struct hfd_outbound_call *call);
