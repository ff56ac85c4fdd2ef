/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The get verb, and the state of a read, which get and list (list.h) share.
 *
 * Most reads first wait until the cacher has the state that the options require; read.c lists the
 * cases. A read returns objects of the cacher, or of the store if the cacher cannot serve it.
 *
 * Thread: a read belongs to one thread at a time: the caller's, or the one that runs its current
 * callback. Nothing blocks. Invariant: after a function that may send the response or start to
 * wait, the caller must not touch the read: it may be freed or belong to another thread.
 */
#include "server/cacher/sync/consistent_read.h"
#include "server/registry/base/registry_state.h"
#include "server/registry/base/request.h"
#include "server/resources/forms/conversion.h"

/*
 * Receives the objects that a list has selected. It owns the array and the references in it, and
 * must send the response.
 */
typedef void (*hfd_list_objects_fn)(struct hfd_request *request, struct hfd_object **objects,
                                    size_t n, uint64_t revision);

/* The objects that a list looks at. */
struct hfd_read_range {
        struct hfd_scope scope;          /* the selectors choose among the objects in it */
        char start[2 * HF_NAME_MAX + 4]; /* only objects after this path; "" = all */
};

struct hfd_read {
        struct hfd_consistent_read wait; /* first member: ready casts it back to the read */
        struct hfd_registry *registry;
        struct hfd_request *request; /* borrowed until done */
        bool is_borrowed;            /* its memory is request->read_space */
        bool too_large_if_late;      /* respond 504 if the filled cache, or the store, is behind */
        struct hfd_object *object;   /* owned; of a get, while a webhook converts it */

        /* Only used by a list. */
        uint64_t at;                    /* exactly this revision; 0 = any that is new enough */
        hfd_list_objects_fn on_objects; /* receives the objects; NULL = send a response */
        struct hfd_read_range range[];  /* one for a list; a get saves the memory and has none */
};

/* Whether a webhook may have to convert the objects before the response shows them
 * (convert/convert.h). Metadata alone is shown as it is stored. */
static inline bool hfd_read_needs_version(const struct hfd_request *request) {
        return hfd_conversion_is_elsewhere(request->resource) &&
               request->format != HFD_AS_PARTIAL && !request->takes_any_version;
}

/* Carries out a get. request->done is called once, perhaps before this returns. Thread: any. */
void hfd_read_get(struct hfd_registry *registry, struct hfd_request *request);

/* Creates a read; hfd_read_start will call ready. n_ranges: 1 for a list, 0 for a get. NULL: out of
 * memory; the response was sent. */
struct hfd_read *hfd_read_new(struct hfd_registry *registry, struct hfd_request *request,
                              size_t n_ranges, void (*ready)(struct hfd_consistent_read *wait));
/* Calls ready when the cacher has the state that the options require, or the wait has failed. */
void hfd_read_start(struct hfd_read *read);
/* For `ready`: goes on with the cacher if it has the required state, otherwise with the store, or
 * finishes the read with an error. */
void hfd_read_continue(struct hfd_read *read, void (*from_cacher)(struct hfd_read *read),
                       void (*from_store)(struct hfd_read *read));

/* Each of the following functions sends the response and frees read, unless it is borrowed. */

/* Sends response, and frees what it owns. */
void hfd_read_finish(struct hfd_read *read, struct hfd_response *response);
/* status: the store's message; NULL = none. */
void hfd_read_finish_store_error(struct hfd_read *read, int error, const struct hf_status *status);
/* Responds 500: the value that is stored under the key cannot be decrypted. */
void hfd_read_finish_sealed(struct hfd_read *read, const char *key, const char *why);
/* Responds 504: the cacher, or the store, has not reached the revision that the client named, or
 * the cacher still has the objects of a replaced store. current: the revision of the cacher, or of
 * the store. */
void hfd_read_finish_too_large(struct hfd_read *read, uint64_t current);
