/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The get verb, and the state of a read, which get and list (list.h) share.
 *
 * A read first waits until the cacher has the state that the options require; read.c lists the
 * cases. Then it is answered from the cacher, or from the store if the cacher is too late.
 *
 * Thread: a read belongs to the thread that drives it; the cacher and the store hand it from one to
 * the next. Nothing blocks. Invariant: a function that may answer the request or wait gives the
 * read away, and its caller must not touch it afterwards.
 */
#include "server/cacher/consistent_read.h"
#include "server/registry/registry.h"
#include "server/registry/request.h"

/*
 * Receives the objects that a list has selected. It owns the array and the references in it, and
 * must answer the request.
 */
typedef void (*hfd_list_objects_fn)(struct hfd_request *request, struct hfd_object **objects,
                                    size_t n, uint64_t revision);

struct hfd_read {
        struct hfd_consistent_read wait; /* first: its ready is given this */
        struct hfd_registry *registry;
        struct hfd_request *request; /* borrowed until done */
        bool too_large_if_late; /* if the cacher is too late: 504, and the store is not asked */

        /* Only used by a list. */
        char start[2 * HF_NAME_MAX + 4]; /* only objects after this path; "" = all */
        uint64_t at;                     /* exactly this revision; 0 = any that is new enough */
        hfd_list_objects_fn take;        /* receives the objects; NULL = send a response */
};

/* Carries out a get. The request is answered once, perhaps before this returns. Thread: any. */
void hfd_read_get(struct hfd_registry *registry, struct hfd_request *request);

/* hfd_read_start will call ready. NULL: out of memory, and the request has been answered. */
struct hfd_read *hfd_read_new(struct hfd_registry *registry, struct hfd_request *request,
                              void (*ready)(struct hfd_consistent_read *wait));
/* Calls ready when the cacher has the state that the options require, or the wait has failed. */
void hfd_read_start(struct hfd_read *read);

/* Each of the following answers the request and frees read. */

/* Empties response, which the caller has filled. */
void hfd_read_finish(struct hfd_read *read, struct hfd_response *response);
/* status: the store's message; NULL = none. */
void hfd_read_finish_store_error(struct hfd_read *read, int error, const struct hf_status *status);
/* 504: the revision of the read is newer than what the cacher, or the store, has reached. */
void hfd_read_finish_too_large(struct hfd_read *read);
