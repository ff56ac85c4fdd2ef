/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A Kubernetes API server in memory, for unit tests of everything that uses an hf_client.
 *
 * Model. The server has one store (fake_store.h): objects by key in any number of collections, one
 * revision for all of them, which begins at 1, and the history of their changes. A test makes one
 * client per participant (fake_api_client.h). One thread of the server answers all requests and
 * sends all events, one at a time and without the lock. Events that are due go out before the next
 * request is answered, so callbacks come in the same order in every run.
 *
 *   get, create, update, delete   as in Kubernetes: an update with another resourceVersion than the
 *                                 stored one is a conflict, an update of a missing object is not
 *                                 found. A fenced write is compared with the term records of the
 *                                 Leases that its fence names, and refused if it is stale.
 *   list                          a collection, or one namespace of it, in the order of creation;
 *                                 in pages of the query's limit, or of the server's if it is less.
 *   watch                         with a resourceVersion: the history after it, then what happens;
 *                                 HF_E_GONE once that revision is compacted. Without one: an added
 *                                 event for each object there is, then what happens. Bookmarks are
 *                                 sent when the test asks for them.
 *
 * The test decides what goes wrong. A client has a mode for its requests, and its requests, pages
 * and events can be held. The server can be compacted, set back to an older revision as after a
 * restore, let one list fail, and end its watches.
 *
 * `store.commits` is the witness: every change in its order, with the fence that it came with.
 *
 * Asserts instead of handling errors. Thread: any. A struct's fields marked "guarded" are read with
 * `mu` held; each change that a test may wait for is signalled by `changed`.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/client_port.h>

#include "fake_store.h"

struct fake_api {
        struct hf_host host; /* of its clients; a test may set its fields before it makes clients */
        pthread_mutex_t mu;
        pthread_cond_t changed; /* of the system's clock (hf_cond_init) */
        pthread_t thread;
        /* guarded by mu */
        bool is_stopping;
        struct fake_store store;
        struct fake_api_request *requests; /* under way, oldest first */
        struct fake_api_watch *watches;    /* open, oldest first */
        uint64_t last_id;
        size_t page; /* most objects in a page; 0 = only the query's limit counts */
        unsigned failing_list;
        int failing_list_error;
        unsigned n_requests, n_lists, n_watches; /* ever; watches are no requests */
        unsigned n_open;                         /* watches */
        char last_list_query[160];
};

struct fake_api *fake_api_new(void);
void fake_api_free(struct fake_api *api); /* after its clients are freed */

/* ---- changes of objects, as if another client made them ---- */

/* Creates or replaces; see fake_store_put. Both return the revision. */
uint64_t fake_api_put(struct fake_api *api, const char *key, const char *text);
uint64_t fake_api_delete(struct fake_api *api, const char *key);
/* The object's text, or NULL; the caller frees it. */
char *fake_api_get(struct fake_api *api, const char *key);
/* The same in the collection "things", for tests that need any objects: value is the field "v". */
uint64_t fake_api_put_thing(struct fake_api *api, const char *ns, const char *name,
                            const char *value);
uint64_t fake_api_delete_thing(struct fake_api *api, const char *ns, const char *name);
/* Raises the revision by n without an event, as writes of other collections do. Returns it. */
uint64_t fake_api_write_elsewhere(struct fake_api *api, unsigned n);

/* ---- what the server does to watches and lists ---- */

void fake_api_compact(struct fake_api *api);
void fake_api_set_back(struct fake_api *api, uint64_t revision); /* open watches go on */
/* Ends the open watches after the events that are due. message: static; NULL = the error's name. */
void fake_api_end_watches(struct fake_api *api, int error, const char *message);
void fake_api_send_bookmarks(struct fake_api *api); /* to the open watches that want them */
/* Sends the open watches an event with this text, before those that are due. No object changes. */
void fake_api_send_event(struct fake_api *api, enum hf_event_type type, const char *text);
void fake_api_set_page(struct fake_api *api, size_t n); /* most objects in a page; 0 = no limit */
/* Lets one list fail: the number-th of all, counted from 1. */
void fake_api_fail_list(struct fake_api *api, unsigned number, int error);

/* ---- what was requested ---- */

/* Ever, but for the last: watches that are open now. */
unsigned fake_api_n_requests(struct fake_api *api);
unsigned fake_api_n_lists(struct fake_api *api);
unsigned fake_api_n_watches(struct fake_api *api);
unsigned fake_api_n_open(struct fake_api *api);
void fake_api_last_list_query(struct fake_api *api, char text[160]); /* "" = it had none */
/*
 * Wait until n watches were ever started and one is open; until n lists were ever requested. They
 * abort when it takes too long.
 */
void fake_api_await_watch(struct fake_api *api, unsigned n);
void fake_api_await_list(struct fake_api *api, unsigned n);

/*
 * For a test that lets allocations fail: called when a thread enters the fake's own code, and when
 * it leaves it for a callback or for good. To be set before the first fake_api_new.
 */
struct fake_api_shield {
        void (*enter)(void), (*leave)(void);
};
extern struct fake_api_shield fake_api_shield;
