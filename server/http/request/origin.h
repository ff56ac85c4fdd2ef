/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The peer of a connection: its address and its client certificate. One object per connection,
 * shared by all of its requests.
 *
 * Threads: the worker fills it in until the handshake is done. It is immutable afterwards, so that
 * every thread may read it without a lock. Only `refused` and `expires`, which the worker sets, and
 * the count of references change.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "server/http/request/http_request.h"

struct hfd_origin {
        atomic_int refs;
        /* VERIFIED counts only while `refused` is false. BAD: the certificate is not usable, and no
         * verification can change that. */
        enum hfd_peer_cert kind;
        _Atomic int64_t expires; /* as in struct hfd_client_cert */
        /* When the certificate was last verified, the client CA did not verify it. */
        atomic_bool refused;
        char remote[64];      /* as text: "127.0.0.1:40112" */
        char *common_name;    /* owned; NULL = none */
        char **organisations; /* owned array of owned strings */
        size_t n_organisations;
        char *uid, *fingerprint; /* as in struct hfd_client_cert; owned; NULL = none */
};

/* 0 or -ENOMEM. */
int hfd_origin_new(const struct sockaddr_storage *address, struct hfd_origin **ret_origin);
struct hfd_origin *hfd_origin_ref(struct hfd_origin *origin);   /* accepts NULL */
struct hfd_origin *hfd_origin_unref(struct hfd_origin *origin); /* accepts NULL, returns NULL */
