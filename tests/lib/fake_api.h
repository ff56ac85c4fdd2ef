/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A Kubernetes API server in memory, for unit tests of everything that uses an hf_client.
 *
 * Model. The server has one store (fake_store.h): objects by key in any number of collections, one
 * revision for all of them, which begins at 1, and the history of their changes. A test makes one
 * client per participant (fake_api_client.h). One thread of the server serves all requests and
 * sends all events, one at a time and without the lock. It sends all pending events that are not
 * held before it serves the next request.
 *
 *   get, create, update, delete   as in Kubernetes: an update with another resourceVersion than the
 *                                 stored one is a conflict, an update of a missing object is not
 *                                 found. The fence of a write is compared with the term records of
 *                                 the Leases that it names; a stale write is rejected.
 *   list                          a collection, or one namespace of it, in the order of creation;
 *                                 in pages of the query's limit or the server's, if that is less;
 *                                 without a limit in one page.
 *   watch                         with a resourceVersion: the history after it, then new events;
 *                                 HF_E_GONE once that revision is compacted. Without one: an added
 *                                 event for each existing object, then new events. Bookmarks are
 *                                 sent when the test requests them.
 *
 * The test decides what goes wrong. A client has a mode for its requests, and its requests, pages
 * and events can be held. A test can compact the server's history, roll it back to an older
 * revision (as a restored backup does), make one list fail, and end the watches.
 *
 * `store.commits` has every change in its order, with the fence of the write that made it.
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
        struct hf_host host; /* of all clients; a test may change it before it creates clients */
        pthread_mutex_t mu;
        pthread_cond_t changed; /* uses the system clock (hf_cond_init) */
        pthread_t thread;
        /* guarded by mu */
        bool is_stopping, delays_wakes;
        struct fake_store store;
        struct fake_api_request *requests; /* without a response yet, oldest first */
        struct fake_api_watch *watches;    /* open, oldest first */
        uint64_t last_id;
        size_t page; /* most objects in a page; 0 = only the query's limit counts */
        unsigned failing_list;
        int failing_list_error;
        /* Since the start. Watches are not counted as requests. */
        unsigned n_requests, n_lists, n_watches;
        unsigned n_open; /* open watches */
        char last_list_query[160];
};

struct fake_api *fake_api_new(void);
void fake_api_free(struct fake_api *api); /* after its clients are freed */

/* ---- changes of objects, as if another client made them ---- */

/* Creates or replaces an object (see fake_store_put). Both functions return the new revision. */
uint64_t fake_api_put(struct fake_api *api, const char *key, const char *text);
uint64_t fake_api_delete(struct fake_api *api, const char *key);
/* The object's text, or NULL; the caller frees it. */
char *fake_api_get(struct fake_api *api, const char *key);
/*
 * The same for an object of the collection "things": value becomes its member "v". For tests that
 * need objects of any kind.
 */
uint64_t fake_api_put_thing(struct fake_api *api, const char *ns, const char *name,
                            const char *value);
uint64_t fake_api_delete_thing(struct fake_api *api, const char *ns, const char *name);
/* Raises the revision by n without an event, as writes to other collections do. Returns it. */
uint64_t fake_api_raise_revision(struct fake_api *api, unsigned n);

/* ---- what the server does to watches and lists ---- */

void fake_api_compact(struct fake_api *api);
void fake_api_roll_back(struct fake_api *api,
                        uint64_t revision); /* open watches continue from that revision */
/* Ends the open watches after their pending events; held ones are lost. message: static; NULL = the
 * error's name. */
void fake_api_end_watches(struct fake_api *api, int error, const char *message);
void fake_api_send_bookmarks(struct fake_api *api); /* to the open watches that want them */
/*
 * Sends the open watches an event with this object, before their pending events. The stored objects
 * do not change; the revision grows.
 */
void fake_api_send_event(struct fake_api *api, enum hf_event_type type, const char *text);
void fake_api_set_page(struct fake_api *api, size_t n); /* most objects in a page; 0 = no limit */
/* From now on the server's thread delays the wakes of other threads until it has served all that is
 * due (base/mailbox.h), as the threads of the real clients do. */
void fake_api_delay_wakes(struct fake_api *api);
/* Makes list number `number` fail, counted from 1 over all lists. */
void fake_api_fail_list(struct fake_api *api, unsigned number, int error);

/* ---- what was requested ---- */

/* Counts since the start, except fake_api_n_open, which counts the watches that are open now. */
unsigned fake_api_n_requests(struct fake_api *api);
unsigned fake_api_n_lists(struct fake_api *api);
unsigned fake_api_n_watches(struct fake_api *api);
unsigned fake_api_n_open(struct fake_api *api);
void fake_api_last_list_query(struct fake_api *api, char text[160]); /* "" = no query */
/* Waits until at least n watches were started since the start of the server, and one is open. This
 * and the next two functions abort after PATIENCE_MSEC. */
void fake_api_await_watch(struct fake_api *api, unsigned n);
/* Waits until at least n lists were requested. */
void fake_api_await_list(struct fake_api *api, unsigned n);
/* Waits until there are at least n commits, which include deletions and the test's own writes.
 * Returns how many there are. */
size_t fake_api_await_commits(struct fake_api *api, size_t n);

/*
 * For a test that makes allocations fail: enter() is called when a thread enters the code of the
 * fake, and leave() when it leaves that code or makes a callback, so that only allocations of the
 * product fail. The test sets them before the first fake_api_new.
 */
struct fake_api_shield {
        void (*enter)(void), (*leave)(void);
};
extern struct fake_api_shield fake_api_shield;
