/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Webhooks, compiled from the configurations in the cacher into an immutable index with a reference
 * count. Thread: any.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/admission/matching/matcher.h"

struct hf__json;
struct hfd_expressions;
struct hfd_match_conditions;
struct hfd_service_resolver;
struct hfd_webhooks;

/* The number of calls of a webhook that are under way. Later indexes share it for the same webhook.
 */
struct hfd_webhook_load {
        atomic_int refs;
        atomic_size_t n_calls;
        char key[]; /* "configuration/name" */
};

/* Immutable, with a reference count: later indexes share it while its configuration does not
 * change. */
struct hfd_webhook {
        atomic_int refs;
        uint64_t revision;     /* of the configuration */
        struct hf__json *json; /* owned; texts point into it */
        const char *name;
        char *configuration; /* owned, as are url, connect_to and ca_pem */
        struct hfd_matcher matcher;
        struct hfd_expressions *expressions;     /* owned */
        struct hfd_match_conditions *conditions; /* owned; NULL = none */
        char *url;        /* without "?timeout=..."; NULL = the webhook has no address */
        char *connect_to; /* "host:port"; NULL = the URL's */
        char *ca_pem;     /* NULL = the system's */
        int64_t timeout_s;
        bool ignores_failures;         /* failurePolicy Ignore */
        bool allows_dry_run;           /* it has no side effects in a dry run */
        bool is_reinvocable;           /* reinvocationPolicy IfNeeded */
        bool knows_v1;                 /* it accepts AdmissionReviews of admission.k8s.io/v1 */
        struct hfd_webhook_load *load; /* owned reference */
};

struct hfd_webhook_index {
        atomic_int refs;
        size_t n;
        /* Owned references, sorted by configuration; within one, in the order of its list. */
        struct hfd_webhook *items[];
};

/*
 * Makes an index of all configurations of a plural in the cacher, sorted by name. old: the index
 * that it replaces, whose unchanged webhooks it shares; NULL = none. services: borrowed for the
 * call. 0, -ENOMEM, or -EAGAIN: the cacher is not filled yet. A configuration that cannot be parsed
 * has no webhooks.
 */
int hfd_webhook_index_new(struct hfd_cacher *cacher, const char *plural,
                          const struct hfd_service_resolver *services,
                          const struct hfd_webhook_index *old,
                          struct hfd_webhook_index **ret_index);
/* Both accept NULL; unref returns NULL. Whoever takes a reference has one already, or holds the
 * lock of the owner of one. */
struct hfd_webhook_index *hfd_webhook_index_ref(struct hfd_webhook_index *index);
struct hfd_webhook_index *hfd_webhook_index_unref(struct hfd_webhook_index *index);
/* A new reference to the current index of a plug-in (webhooks.h). NULL: there is none yet. */
struct hfd_webhook_index *hfd_webhooks_index(struct hfd_webhooks *webhooks);
/* Whether any webhook may apply to the request. index NULL = none. */
bool hfd_webhook_index_wants(const struct hfd_webhook_index *index,
                             const struct hfd_admission_attributes *of);
