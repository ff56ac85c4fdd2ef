/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decodes etcd's responses. Pure. Thread: any; an arena and its contents belong to one thread.
 * Private to server/storage/etcd.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "server/storage/store.h"

enum hfd_etcd_response {
        HFD_ETCD_RANGE,
        HFD_ETCD_RANGE_KEYS, /* the values are ignored */
        HFD_ETCD_TXN,
        HFD_ETCD_COMPACT
};

/*
 * Parses one message (without its gRPC prefix) into reply, which the caller has zeroed: revision,
 * cluster_id, kvs, more, and the error HF_E_CONFLICT for a transaction of which a compare failed.
 * The kvs are in the arena and hold references to their values: call hfd_etcd_release_reply
 * afterwards, also after an error. 0, -ENOMEM or -EPROTO.
 */
int hfd_etcd_parse(enum hfd_etcd_response kind, const void *data, size_t n, struct hf__arena *arena,
                   struct hfd_store_reply *reply);
void hfd_etcd_release_reply(struct hfd_store_reply *reply);

/* One message of a watch's stream: a change of the watch's state, events, or neither (a progress
 * notification, or the response to a progress request). */
struct hfd_etcd_watch_response {
        uint64_t revision; /* etcd's revision when it sent this */
        bool created, canceled;
        /* It concerns no watch: the response to a progress request or, if canceled is set, to a
         * create request that etcd refuses. */
        bool is_probed;
        uint64_t compact_revision; /* not 0: canceled, because the watch needs an older revision */
        const char *cancel_reason; /* never NULL; "" or in the arena */
        struct hfd_watch_event *events;
        size_t n_events;
};
/* Like hfd_etcd_parse. Call hfd_etcd_release_watch_response afterwards, also after an error. */
int hfd_etcd_parse_watch_response(const void *data, size_t n, struct hf__arena *arena,
                                  struct hfd_etcd_watch_response *ret_response);
void hfd_etcd_release_watch_response(struct hfd_etcd_watch_response *response);
