/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * get, and what get and list (list.c) share: one read under way. It first waits until the cache
 * shows the state that the options ask for, and is then answered from the cache, or from the store
 * if the cache is too late.
 */
#include "server/cacher/consistent_read.h"
#include "server/registry/registry.h"
#include "server/registry/request.h"

/*
 * Receives the objects that a list selects, instead of a response. Takes the array and its
 * references. The request has not been answered.
 */
typedef void (*hfd_list_fn)(struct hfd_request *request, struct hfd_object **objects, size_t n,
                            uint64_t revision);

struct hfd_read {
        struct hfd_consistent_read wait; /* first: its ready is given this */
        struct hfd_registry *registry;
        struct hfd_request *request;     /* the caller's until done */
        char start[2 * HF_NAME_MAX + 4]; /* list: only objects after this path; "" = all */
        uint64_t at;            /* list: exactly this revision; 0 = any that is new enough */
        bool too_large_if_late; /* a cache that is too late is a 504, no reason to ask the store */
        hfd_list_fn take;       /* list: gets the objects; NULL = they are the response */
};

void hfd_read_get(struct hfd_registry *registry, struct hfd_request *request);

/* NULL: out of memory, and the request was answered. */
struct hfd_read *hfd_read_new(struct hfd_registry *registry, struct hfd_request *request,
                              void (*ready)(struct hfd_consistent_read *wait));
/* Calls ready when the cache shows the state that the options ask for, or will not in time. */
void hfd_read_start(struct hfd_read *read);
/* Each answers the request and frees read. */
void hfd_read_finish(struct hfd_read *read, struct hfd_response *response);
void hfd_read_finish_store_error(struct hfd_read *read, int error, const struct hf_status *status);
void hfd_read_finish_too_large(struct hfd_read *read);
