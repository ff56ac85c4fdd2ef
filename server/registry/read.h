/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What get (read.c) and list (list.c) share: one read under way. */
#include "server/cacher/cacher.h"

/* Takes the array and its references. The call was not answered. */
typedef void (*hfd_list_fn)(struct hfd_request *request, struct hfd_object **objects, size_t n,
                            uint64_t revision);

struct hfd_read {
        struct hfd_consistent_read reader; /* first: ready is given this */
        struct hfd_api *api;
        struct hfd_request *request;     /* the adapter's until done */
        char start[2 * HF_NAME_MAX + 4]; /* list: what comes after this path; "" = all */
        uint64_t at;            /* list: exactly this revision; 0 = any that is new enough */
        bool too_large_if_late; /* NotOlderThan: late is a 504, not a reason to ask the store */
        hfd_list_fn
                take; /* list: is given what was selected, in place of an answer; NULL = answer */
};

/* Lists for take; a failure is answered. */
void hfd_list_for(struct hfd_api *api, struct hfd_request *request, hfd_list_fn take);
/* The body of a list of these objects; meta is the inside of its metadata. NULL = out of memory. */
struct hf__buf *hfd_list_render(struct hfd_api *api, const struct hfd_request *request,
                                struct hfd_object *const *objects, size_t n, const char *meta);

/* NULL: out of memory, answered. */
struct hfd_read *hfd_read_new(struct hfd_api *api, struct hfd_request *request,
                              void (*ready)(struct hfd_consistent_read *reader));
/* Goes on with ready when the state that the options ask for is there. */
void hfd_read_start(struct hfd_read *read);
/* Each answers, and frees read. */
void hfd_read_finish(struct hfd_read *read, struct hfd_response *response);
void hfd_read_finish_store_error(struct hfd_read *read, int error, const struct hf_status *status);
void hfd_read_finish_too_large(struct hfd_read *read);
