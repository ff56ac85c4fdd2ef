/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The state of a registry, which all verbs use. registry.c makes and frees it.
 *
 * Thread: immutable once requests are served, apart from n_conversions, which is atomic, and from
 * members whose types have a lock of their own: cacher, pool, renderings, both kinds of turns,
 * shared conversions.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include <holdfast/host.h>

#include "server/cacher/cacher.h"
#include "server/registry/base/convert_turns.h"
#include "server/registry/base/quota_turns.h"
#include "server/registry/base/shared_table.h"

/* Default time limits: of a request, and of a deletecollection. */
#define HFD_REGISTRY_DEADLINE                   (10 * HF_NSEC_PER_SEC)
#define HFD_REGISTRY_DELETE_COLLECTION_DEADLINE (60 * HF_NSEC_PER_SEC)
/* The deadline of a write that waits for webhooks, as in Kubernetes. */
#define HFD_REGISTRY_ADMISSION_DEADLINE (34 * HF_NSEC_PER_SEC)

struct hfd_admission_chain;
struct hfd_outbound;
struct hfd_renderings;
struct hfd_service_resolver;
struct hfd_work_pool;

struct hfd_registry {
        const struct hf_host *host;        /* borrowed */
        struct hfd_cacher *cacher;         /* borrowed */
        struct hfd_work_pool *work;        /* owned; for lists, large writes and other long work */
        struct hfd_renderings *renderings; /* owned; lists and initial events that are being read */
        struct hfd_quota_turns turns;      /* of writes that the same quotas count */
        const char *prefix;                /* of all keys: "/registry"; borrowed from the cacher */
        /* Borrowed; set before requests are served; NULL = there is no admission. */
        struct hfd_admission_chain *admission;
        /* New pods get a service account; set before requests are served. */
        bool assigns_accounts;
        /* Borrowed; for calls of webhooks. outbound NULL = webhooks cannot be called; services NULL
         * = no service has an address of its own. */
        struct hfd_outbound *outbound;
        const struct hfd_service_resolver *services;
        /* Calls of conversion webhooks that are under way for requests. */
        atomic_uint n_conversions;
        struct hfd_convert_turns convert_turns; /* of watches, to call conversion webhooks */
        struct hfd_shared_table shared; /* conversions for watches and for params of policies */
};

/* The current boot time; deadlines of requests are boot times. */
static inline hf_nsec hfd_registry_now(const struct hfd_registry *registry) {
        return hf_now(hf_host_clock(registry->host));
}
