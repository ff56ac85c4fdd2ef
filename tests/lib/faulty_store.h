/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A store in front of a memory store that misbehaves as the test sets it: its watch ends or loses
 * events, its replies are lost, late or untrue, or something happens while it serves a request.
 *
 * It has one watch at a time. Fields marked so are guarded by mu; the others are set by the test
 * while no request is under way.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/storage/store.h"

struct faulty_store {
        struct hfd_store base; /* first */
        struct hfd_store *inner;
        int txn_error;            /* transactions are done, but this is their result; 0 = none */
        uint64_t answer_revision; /* returned as the store's revision; 0 = the true one */
        bool hold;                /* the next request for the revision is not answered but kept: */
        hfd_store_fn held;
        void *held_ctx;
        pthread_mutex_t mu;
        /* guarded by mu */
        bool is_deaf;          /* events of the watch are dropped, until it is suspected */
        bool is_deaf_for_good; /* also after that, as on a store whose every member hangs */
        int n_suspected;       /* how often the watch was opened anew because it seemed to hang */
        void (*once_amid_list)(void *ctx);  /* called in the next list; then NULL */
        void (*once_amid_watch)(void *ctx); /* called when the next watch has begun; then NULL */
        void *amid_ctx;                     /* of both */
        int n_gets, n_lists, n_revisions;   /* requests; gets of objects only */
        int end_as;                         /* the error with which the watch ends */
        uint64_t watch_id;
        const struct hfd_watch_handler *handler; /* of the watch */
        void *ctx;
};

void faulty_store_init(struct faulty_store *store, const struct hf_host *host);
void faulty_store_deinit(struct faulty_store *store);
void faulty_store_set_deaf(struct faulty_store *store, bool is_deaf);
/* Ends the watch with this error. */
void faulty_store_end_watch(struct faulty_store *store, int error);
/* The watch stays deaf when it is opened anew, as on a store whose every member hangs. */
void faulty_store_set_deaf_for_good(struct faulty_store *store);
int faulty_store_n_suspected(struct faulty_store *store);
int faulty_store_n_lists(struct faulty_store *store);
