/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of the admission webhooks, which is made again whenever a configuration changes.
 *
 * Invariants: all that a webhook points to belongs to it, apart from its load, which counts its
 * calls and goes on from index to index. A configuration with the same revision as in the old index
 * has not changed, so its webhooks are used again, and their expressions are not compiled again.
 * Both indices are in the order of the configurations' names, so they are compared in one pass.
 */
#include "server/admission/webhooks/webhook.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "server/admission/expressions/match_conditions.h"
#include "server/cacher/cacher.h"
#include "server/cacher/watch/snapshot.h"
#include "server/outbound/https_url.h"
#include "server/outbound/service_resolver.h"
#include "server/resources/rows/resource_table.h"

#define TIMEOUT_DEFAULT 10 /* seconds, as in Kubernetes */

/* ---- loads ---- */

static struct hfd_webhook_load *load_unref(struct hfd_webhook_load *load) {
        assert(!load || atomic_load_explicit(&load->refs, memory_order_relaxed) > 0);
        if (load && atomic_fetch_sub_explicit(&load->refs, 1, memory_order_acq_rel) == 1)
                free(load);
        return NULL;
}

/* The loads of a configuration in the old index, sorted by key. */
struct loads {
        struct hfd_webhook_load **items; /* owned array; the loads are borrowed */
        size_t n;
};

static int compare_loads(const void *a, const void *b) {
        return strcmp((*(struct hfd_webhook_load *const *)a)->key,
                      (*(struct hfd_webhook_load *const *)b)->key);
}

/* Collects the loads of n webhooks. 0 or -ENOMEM. */
static int loads_init(struct loads *loads, struct hfd_webhook *const *hooks, size_t n) {
        *loads = (struct loads){.items = malloc((n + 1) * sizeof(struct hfd_webhook_load *))};
        if (!loads->items) /* + 1: never of 0 bytes */
                return -ENOMEM;
        for (; loads->n < n; loads->n++)
                loads->items[loads->n] = hooks[loads->n]->load;
        qsort((void *)loads->items, n, sizeof(struct hfd_webhook_load *), compare_loads);
        return 0;
}

/* The load of the same webhook in the old index, or a new load. NULL: out of memory. A webhook that
 * was changed keeps its load, so that calls of the old one still count against its limit. The
 * caller has a reference to the old index, so its loads and webhooks cannot be freed meanwhile. */
static struct hfd_webhook_load *load_of(const struct loads *old, const char *key) {
        size_t low = 0, high = old->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int order = strcmp(old->items[middle]->key, key);
                if (order == 0) {
                        assert(old->items[middle]->refs > 0);
                        atomic_fetch_add_explicit(&old->items[middle]->refs, 1,
                                                  memory_order_relaxed);
                        return old->items[middle];
                }
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        struct hfd_webhook_load *load = malloc(sizeof *load + strlen(key) + 1);
        if (!load)
                return NULL;
        atomic_init(&load->refs, 1);
        atomic_init(&load->n_calls, 0);
        (void)strcpy(load->key, key);
        return load;
}

/* ---- one webhook ---- */

static struct hfd_webhook *webhook_unref(struct hfd_webhook *hook) {
        assert(!hook || atomic_load_explicit(&hook->refs, memory_order_relaxed) > 0);
        if (!hook || atomic_fetch_sub_explicit(&hook->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        hfd_matcher_done(&hook->matcher);
        free(hook->conditions);
        hfd_expressions_free(hook->expressions);
        free(hook->configuration);
        free(hook->url);
        free(hook->connect_to);
        free(hook->ca_pem);
        load_unref(hook->load);
        hf__json_free(hook->json);
        free(hook);
        return NULL;
}

/* Sets url and connect_to. A webhook without an address keeps url NULL, and each call of it fails.
 * 0 or -ENOMEM. */
static int set_address(struct hfd_webhook *hook, const struct hfd_service_resolver *services) {
        const struct hf__json *client = hf__json_get(hook->json, "clientConfig"),
                              *service = hf__json_get(client, "service");
        const char *url = hf__json_string(client, "url"), *name = hf__json_string(service, "name"),
                   *ns = hf__json_string(service, "namespace");
        struct hfd_service_address address = {0};
        int64_t port = 443;

        if (url)
                return hfd_https_url_clean(url, &hook->url);
        if (!name || !ns)
                return 0;
        (void)hf__json_i64(service, "port", &port);
        int r = hfd_service_resolve(services, ns, name, (unsigned)port,
                                    hf__json_string(service, "path"), &address);
        if (r == 0) {
                hook->url = address.url;
                hook->connect_to = address.connect_to;
        }
        return r;
}

/* Without a bundle ca_pem stays NULL, and the system's CAs are trusted. A bundle that is not valid
 * base64 counts as a bundle without certificates, so no server is trusted. 0 or -ENOMEM. */
static int set_ca(struct hfd_webhook *hook) {
        const char *bundle = hf__json_string(hook->json, "clientConfig.caBundle");
        size_t n;

        if (!bundle || !*bundle)
                return 0;
        int r = hf__base64_decode(bundle, strlen(bundle), &hook->ca_pem, &n);
        if (r == HF_E_INVALID) {
                hook->ca_pem = strdup("invalid");
                r = hook->ca_pem ? 0 : -ENOMEM;
        }
        return r;
}

/* Compiles the matchConditions. 0 or -ENOMEM. */
static int set_conditions(struct hfd_webhook *hook) {
        const struct hf__json *conditions = hf__json_get(hook->json, "matchConditions");

        if (!hf__json_first(conditions))
                return 0;
        int r = hfd_expressions_new(HFD_EXPRESSION_AUTHORIZER, NULL, NULL, &hook->expressions);
        return r != 0 ? r
                      : hfd_match_conditions_new(hook->expressions, conditions,
                                                 HFD_EXPRESSION_AUTHORIZER, &hook->conditions);
}

static bool has_version(const struct hf__json *json, const char *version) {
        return hf__json_has_element(hf__json_get(json, "admissionReviewVersions"), version);
}

/* Fills hook. A timeout that is out of range, which validation refuses today, becomes the default.
 * After a failure, too, webhook_unref frees what was made. 0 or -ENOMEM. */
static int webhook_init(struct hfd_webhook *hook, const struct hf__json *json,
                        const char *configuration, const struct hfd_service_resolver *services,
                        const struct loads *old) {
        char *key = NULL;

        hook->json = hf__json_dup(json);
        hook->configuration = strdup(configuration);
        hook->timeout_s = TIMEOUT_DEFAULT;
        if (!hook->json || !hook->configuration)
                return -ENOMEM;
        const char *name = hf__json_string(hook->json, "name");
        hook->name = name ? name : "";
        (void)hf__json_i64(hook->json, "timeoutSeconds", &hook->timeout_s);
        if (hook->timeout_s < 1 || hook->timeout_s > 30)
                hook->timeout_s = TIMEOUT_DEFAULT;
        hook->ignores_failures = hf__json_has_text(hook->json, "failurePolicy", "Ignore");
        hook->allows_dry_run = hf__json_has_text(hook->json, "sideEffects", "None") ||
                               hf__json_has_text(hook->json, "sideEffects", "NoneOnDryRun");
        hook->is_reinvocable = hf__json_has_text(hook->json, "reinvocationPolicy", "IfNeeded");
        hook->knows_v1 = has_version(hook->json, "v1");
        int r = hfd_matcher_init(&hook->matcher, hook->json);
        hook->matcher.empty_matches = false; /* a webhook without rules has no requests */
        if (r == 0)
                r = set_conditions(hook);
        if (r == 0)
                r = set_address(hook, services);
        if (r == 0)
                r = set_ca(hook);
        if (r == 0 && asprintf(&key, "%s/%s", configuration, hook->name) < 0)
                r = -ENOMEM;
        if (r == 0) {
                hook->load = load_of(old, key);
                free(key);
                r = hook->load ? 0 : -ENOMEM;
        }
        return r;
}

/* ---- the index ---- */

struct hfd_webhook_index *hfd_webhook_index_ref(struct hfd_webhook_index *index) {
        assert(!index || atomic_load_explicit(&index->refs, memory_order_relaxed) > 0);
        if (index)
                atomic_fetch_add_explicit(&index->refs, 1, memory_order_relaxed);
        return index;
}

struct hfd_webhook_index *hfd_webhook_index_unref(struct hfd_webhook_index *index) {
        assert(!index || atomic_load_explicit(&index->refs, memory_order_relaxed) > 0);
        if (!index || atomic_fetch_sub_explicit(&index->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        for (size_t i = 0; i < index->n; i++)
                webhook_unref(index->items[i]);
        free(index);
        return NULL;
}

bool hfd_webhook_index_wants(const struct hfd_webhook_index *index,
                             const struct hfd_admission_attributes *of) {
        for (size_t i = 0; index && i < index->n; i++)
                if (hfd_matcher_may_match(&index->items[i]->matcher, of))
                        return true;
        return false;
}

/* Makes room for n more webhooks. 0 or -ENOMEM. */
static int grow_index(struct hfd_webhook_index **index, size_t n) {
        struct hfd_webhook_index *grown =
                realloc(*index, sizeof **index + ((*index)->n + n) * sizeof grown->items[0]);

        if (!grown)
                return -ENOMEM;
        *index = grown;
        return 0;
}

/* An index in the making. */
struct builder {
        struct hfd_webhook_index **index;
        const struct hfd_service_resolver *services;
        const struct hfd_webhook_index *old; /* NULL: there is none */
        /* The webhooks of old from `begin` to before `end` belong to the configuration that is
         * being added. */
        size_t begin, end;
};

/* Finds the webhooks of a configuration in the old index. The names of configurations ascend from
 * call to call, as they do in the index. */
static void find_old(struct builder *b, const char *name) {
        const size_t n = b->old ? b->old->n : 0;

        b->begin = b->end;
        while (b->begin < n && strcmp(b->old->items[b->begin]->configuration, name) < 0)
                b->begin++;
        b->end = b->begin;
        while (b->end < n && strcmp(b->old->items[b->end]->configuration, name) == 0)
                b->end++;
}

/* Shares the webhooks of a configuration that has not changed. 0 or -ENOMEM. */
static int share_configuration(const struct builder *b) {
        struct hfd_webhook_index **index = b->index;

        if (grow_index(index, b->end - b->begin) != 0)
                return -ENOMEM;
        for (size_t i = b->begin; i < b->end; i++) {
                assert(b->old->items[i]->refs > 0);
                atomic_fetch_add_explicit(&b->old->items[i]->refs, 1, memory_order_relaxed);
                (*index)->items[(*index)->n++] = b->old->items[i];
        }
        return 0;
}

/* Makes the webhooks of a configuration. A configuration that cannot be parsed has none, so that it
 * does not keep the others from being renewed. 0 or -ENOMEM. */
static int make_configuration(const struct builder *b, const struct hfd_object *object) {
        struct hfd_webhook_index **index = b->index;
        struct hf__json *json = NULL;
        struct loads loads = {0};
        int r = hf__json_parse(object->bytes->data, object->bytes->n, &json, NULL);

        if (r != 0)
                return r == -ENOMEM ? r : 0;
        const struct hf__json *hooks = hf__json_get(json, "webhooks");
        r = grow_index(index, hf__json_count(hooks));
        if (r == 0 && b->end > b->begin)
                r = loads_init(&loads, b->old->items + b->begin, b->end - b->begin);
        for (const struct hf__json *m = hf__json_first(hooks); m && r == 0; m = hf__json_next(m)) {
                struct hfd_webhook *hook = calloc(1, sizeof *hook);
                if (!hook) {
                        r = -ENOMEM;
                        break;
                }
                atomic_init(&hook->refs, 1);
                hook->revision = object->revision;
                (*index)->items[(*index)->n++] =
                        hook; /* added first, so that it is freed if webhook_init fails */
                r = webhook_init(hook, m, hfd_object_name(object), b->services, &loads);
        }
        free((void *)loads.items);
        hf__json_free(json);
        return r;
}

/* Adds the webhooks of a configuration. 0 or -ENOMEM. */
static int add_configuration(struct builder *b, const struct hfd_object *object) {
        if (!object->bytes)
                return 0;
        find_old(b, hfd_object_name(object));
        if (b->begin < b->end && b->old->items[b->begin]->revision == object->revision)
                return share_configuration(b);
        return make_configuration(b, object);
}

HF__CLEANUP_DEFINE(index_cleanup, struct hfd_webhook_index *, hfd_webhook_index_unref)

int hfd_webhook_index_new(struct hfd_cacher *cacher, const char *plural,
                          const struct hfd_service_resolver *services,
                          const struct hfd_webhook_index *old,
                          struct hfd_webhook_index **ret_index) {
        static const struct hfd_scope all = {.prefix = ""};
        const struct hfd_resource *resource = hfd_resource_find(HFD_ADMISSION_GROUP, "v1", plural);
        HF__CLEANUP(index_cleanup) struct hfd_webhook_index *index = calloc(1, sizeof *index);
        struct builder b = {.index = &index, .services = services, .old = old};
        struct hfd_object_iter iter;
        struct hfd_snapshot snapshot;
        struct hfd_object *object;

        assert(resource);
        if (!index)
                return -ENOMEM;
        atomic_init(&index->refs, 1);
        int r = hfd_snapshot_take_now(cacher, resource, &snapshot);
        if (r != 0)
                return r;
        hfd_object_iter_init(&iter, &snapshot.objects, &all, "");
        while (r == 0 && (object = hfd_object_iter_next(&iter)))
                r = add_configuration(&b, object);
        hfd_snapshot_done(&snapshot);
        if (r != 0)
                return r;
        *ret_index = HF__TAKE(index);
        return 0;
}
