/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Converts objects of custom resources between versions by the webhook of their definition
 * (strategy Webhook). A verb calls this before it shows objects in the version of a request, and
 * before it stores one; all code after it then finds objects that need no conversion
 * (resources/forms/conversion.h).
 *
 * Nothing blocks: the caller continues in a callback. The objects go to the webhook in batches, one
 * call for each. The results belong to the request; nothing is cached here (watches share results,
 * shared_conversions.h). The number of calls under way is limited, for each kind and in total.
 * Requests beyond the limit are refused at once, so that a webhook that hangs cannot hold all the
 * requests that the server may have in flight; watches take turns (convert_turns.h).
 *
 * Thread: any. After a call the callback runs on a thread of outbound calls, or on the pool if the
 * response is large. If a call cannot be made, the callback runs on the thread that would have
 * made the call: the one that starts the conversion or has read the response to the previous batch,
 * or a thread of the pool if a watch has waited for its turn. If the watch still waits, the
 * callback runs on the thread that cancels the conversion or, if the pool is stopping, on the
 * thread that ends the turn of another conversion.
 */
#include "server/registry/base/registry_state.h"
#include "server/resources/objects/object.h"
#include "server/resources/response.h"

/* How long one call may take, as in Kubernetes; a request's deadline may be earlier. */
#define HFD_CONVERT_TIMEOUT (30 * HF_NSEC_PER_SEC)
/* The largest number of calls under way for requests: of one kind, and of all kinds. */
#define HFD_CONVERT_MAX_OF_KIND 64
#define HFD_CONVERT_MAX         192

/* failure NULL: all objects are converted. Otherwise the response for the client (500, or 429 if
 * there were too many calls; empty after hfd_convert_cancel), borrowed, and no object has changed
 * its version. */
typedef void hfd_convert_done(void *ctx, const struct hfd_response *failure);

struct hfd_convert {
        const struct hfd_resource
                *row; /* the version that the client wants; a reference is taken */
        /* Borrowed until done: n references, each of which is replaced by one to an object in the
         * version of row. */
        struct hfd_object **objects;
        size_t n;
        hf_nsec deadline; /* boot time; HF_NSEC_NEVER = only that of each call counts */
        uint64_t owner;   /* for turns in the pool of threads */
        /* For a watch: it waits for its turn, and is not refused. Zero at first, and used by one
         * conversion at a time; lives until done. NULL: a request. */
        struct hfd_convert_turn *turn;
        hfd_convert_done *done;
        void *ctx;
};

/* The number of objects that may have another version, so that they need a conversion. */
size_t hfd_convert_count_pending(const struct hfd_convert *convert);
/* Calls done because memory is exhausted. Returns false. */
bool hfd_convert_fail_no_memory(const struct hfd_convert *convert);
/*
 * True: no webhook is needed. The objects have the version, and done is not called. False: done is
 * called once, perhaps before this returns.
 */
bool hfd_convert_start(struct hfd_registry *registry, const struct hfd_convert *convert);
/* The watch has ended. If its conversion waits for its turn now, or asks for one later, done is
 * called with a failure that is empty (its code is 0). A call that is under way is not stopped. The
 * turn must live until this returns. */
void hfd_convert_cancel(struct hfd_registry *registry, struct hfd_convert_turn *turn);
