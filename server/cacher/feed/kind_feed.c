/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the definitions on the thread of a feed: takes a snapshot of them, and makes a set of
 * kinds: the old kind where a definition has not changed, a new one where it has.
 *
 *      snapshot -> kinds -> the cached objects get their form -> the set is replaced -> watches of
 *      retired kinds end
 *
 * Invariant: a change between two snapshots wakes the thread again, so the last set has the last
 * state. A filling of the cache wakes it too, because the new objects may have old forms.
 *
 * The cached objects get their form before a kind is served, so that requests need not convert
 * them. Only speed depends on that: readers look at the form of each object
 * (resources/forms/conversion.h).
 */
#include "server/cacher/feed/kind_feed.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "server/cacher/cacher.h"
#include "server/cacher/feed/feed.h"
#include "server/cacher/sync/slot_forms.h"
#include "server/cacher/watch/snapshot.h"
#include "server/resources/custom/custom_table.h"
#include "server/resources/packed.h"
#include "server/resources/rows/resource_table.h"

struct hfd_kind_feed {
        /* Immutable. */
        const struct hf_host *host;
        struct hfd_cacher *cacher;
        struct hfd_custom_table *table;
        struct hfd_feed *feed; /* owned */
        /* For make_kinds only, whose calls do not overlap. */
        uint64_t fill; /* the last filling whose objects have their forms */
        /* Set by make_kinds, read by any thread. */
        atomic_bool synced;
};

/* NULL: this server does not serve CustomResourceDefinitions. */
static const struct hfd_resource *definitions_resource(void) {
        return hfd_resource_find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
}

bool hfd_kind_feed_observes(const struct hfd_resource *resource) {
        return resource == definitions_resource();
}

/* ---- making a set ---- */

/* The kind of a definition in the old set, borrowed. NULL = it had none. */
static struct hfd_custom_kind *find_old(const struct hfd_custom_set *old, const char *name) {
        char plural[HF_NAME_MAX + 1];
        const char *dot = strchrnul(name, '.'); /* "PLURAL.GROUP" */

        (void)snprintf(plural, sizeof plural, "%.*s", (int)(dot - name), name);
        return hfd_custom_set_find(old, *dot ? dot + 1 : "", plural); /* no kind has group "" */
}

/* Says which versions have lost their schemas: their objects are neither validated nor pruned. */
static void report_lost_schemas(const struct hfd_kind_feed *feed, const struct hfd_object *object,
                                const struct hfd_custom_kind *kind) {
        for (size_t i = 0; i < kind->n_versions; i++)
                if (kind->versions[i].lacks_schema)
                        hf_log(&feed->host->log, HF_LOG_ERROR, "definitions",
                               "%s is served without the schema of %s: the stored schema is not "
                               "valid",
                               object->path, kind->versions[i].row.version);
}

/* Makes the kind of a definition that is new or has changed; *ret_kind NULL = it is not served. 0
 * or -ENOMEM. */
static int make_kind(struct hfd_kind_feed *feed, const struct hfd_object *object,
                     struct hf__json *definition, struct hfd_custom_kind **ret_kind) {
        const char *group = hf__json_string(definition, "spec.group"),
                   *plural = hf__json_string(definition, "spec.names.plural");
        const struct hfd_resource *slot = NULL;
        int r = HF_E_INVALID;

        /* The keys of a group without a dot could be taken for those of built-in resources. */
        if (group && plural && strchr(group, '.'))
                r = hfd_custom_table_slot(feed->table, group, plural, &slot);
        if (r == 0 && !slot) {
                hf_log(&feed->host->log, HF_LOG_ERROR, "definitions",
                       "%s is not served: there are more than %d custom resources", object->path,
                       HFD_CUSTOM_SLOTS_MAX);
                return 0;
        }
        if (r == 0)
                r = hfd_custom_kind_new(definition, object->bytes, slot, object->revision,
                                        ret_kind);
        if (r == 0)
                report_lost_schemas(feed, object, *ret_kind);
        if (r == HF_E_INVALID)
                hf_log(&feed->host->log, HF_LOG_ERROR, "definitions",
                       "%s is not served: the stored definition is not valid", object->path);
        return r == HF_E_INVALID ? 0 : r;
}

/* Adds the kind of one definition to the set, if it is served. The old kind is kept if the hash of
 * what it depends on is the same, so that a change of the status ends no watches. 0 or -ENOMEM. */
static int add_kind(struct hfd_kind_feed *feed, const struct hfd_custom_set *old,
                    const struct hfd_object *object, struct hfd_custom_set *set) {
        struct hfd_custom_kind *kind = find_old(old, object->path), *made = NULL;
        unsigned char hash[HFD_CUSTOM_HASH];
        struct hf__json *definition = NULL;
        int r = 0;

        if (kind && kind->revision == object->revision) {
                set->kinds[set->n++] = hfd_custom_kind_ref(kind);
                return 0;
        }
        struct hf__buf *bytes = hfd_unpack(object->bytes);
        r = bytes ? hf__json_parse(bytes->data, bytes->n, &definition, NULL) : -ENOMEM;
        hf__buf_unref(bytes);
        if (r != 0)
                return r == -ENOMEM ? r : 0;
        if (hfd_custom_kind_is_established(definition)) {
                r = hfd_custom_kind_hash(definition, hash);
                if (r == 0 && kind && memcmp(kind->hash, hash, sizeof hash) == 0) {
                        hfd_custom_kind_update(kind, definition, object->bytes, object->revision);
                        made = hfd_custom_kind_ref(kind);
                } else if (r == 0) {
                        r = make_kind(feed, object, definition, &made);
                }
        }
        if (made)
                set->kinds[set->n++] = made;
        hf__json_free(definition);
        return r;
}

HF__CLEANUP_DEFINE(set_cleanup, struct hfd_custom_set *, hfd_custom_set_unref)

/* 0, -ENOMEM, or -EAGAIN: the cacher is not filled yet; its filling will wake the feed. */
static int make_set(struct hfd_kind_feed *feed, const struct hfd_custom_set *old,
                    uint64_t *ret_fill, struct hfd_custom_set **ret_set) {
        static const struct hfd_scope all = {.prefix = ""};
        struct hfd_object_iter iter;
        struct hfd_snapshot snapshot;
        struct hfd_object *object;
        int r = hfd_snapshot_take_now(feed->cacher, definitions_resource(), &snapshot);

        if (r != 0)
                return r;
        HF__CLEANUP(set_cleanup)
        struct hfd_custom_set *set = hfd_custom_set_new(hfd_object_tree_size(&snapshot.objects));
        if (!set)
                r = -ENOMEM;
        hfd_object_iter_init(&iter, &snapshot.objects, &all, "");
        while (r == 0 && (object = hfd_object_iter_next(&iter)))
                r = add_kind(feed, old, object, set);
        *ret_fill = snapshot.fill;
        hfd_snapshot_done(&snapshot);
        if (r != 0)
                return r;
        hfd_custom_set_sort(set);
        *ret_set = HF__TAKE(set);
        return 0;
}

/* ---- serving it ---- */

static struct hfd_custom_kind *find_same(const struct hfd_custom_set *set,
                                         const struct hfd_custom_kind *kind) {
        return hfd_custom_set_find(set, kind->storage->row.group, kind->storage->row.plural);
}

/* Retires the kinds that the new set has replaced or does not have. The slots (custom_table.h) of
 * those that it does not have lose their forms. */
static void retire_old(struct hfd_kind_feed *feed, const struct hfd_custom_set *old,
                       const struct hfd_custom_set *set) {
        for (size_t i = 0; old && i < old->n; i++) {
                struct hfd_custom_kind *now = find_same(set, old->kinds[i]);
                if (now == old->kinds[i])
                        continue;
                hfd_slot_form_retire_kind(feed->cacher, old->kinds[i]);
                if (!now)
                        hfd_slot_form_clear(feed->cacher, &old->kinds[i]->storage->row);
        }
}

/* Does one round. Returns as make_set does. */
static int follow_kinds(struct hfd_kind_feed *feed) {
        struct hfd_custom_set *old = hfd_custom_table_set(feed->table), *set = NULL;
        uint64_t fill = 0;
        int r = make_set(feed, old, &fill, &set);

        for (size_t i = 0; r == 0 && i < set->n; i++)
                if (fill != feed->fill || find_same(old, set->kinds[i]) != set->kinds[i])
                        r = hfd_slot_form_set(feed->cacher, &set->kinds[i]->storage->row);
        if (r == 0) {
                feed->fill = fill;
                assert(atomic_load_explicit(&set->refs, memory_order_relaxed) > 0);
                /* For the table, which consumes a reference. */
                atomic_fetch_add_explicit(&set->refs, 1, memory_order_relaxed);
                hfd_custom_table_replace(feed->table, set);
                /* Afterwards, so that a client whose watch ends finds the new kind. */
                retire_old(feed, old, set);
        }
        hfd_custom_set_unref(set);
        hfd_custom_set_unref(old);
        return r;
}

/* ---- the feed ---- */

static int make_kinds(void *ctx, struct hfd_cacher *cacher) {
        struct hfd_kind_feed *feed = ctx;
        int r = definitions_resource() ? follow_kinds(feed) : 0;

        (void)cacher;
        if (r == 0)
                atomic_store(&feed->synced, true);
        return r;
}

int hfd_kind_feed_new(const struct hf_host *host, struct hfd_cacher *cacher,
                      struct hfd_custom_table *table, struct hfd_kind_feed **ret_feed) {
        struct hfd_kind_feed *feed = calloc(1, sizeof *feed);

        if (!feed)
                return -ENOMEM;
        *feed = (struct hfd_kind_feed){.host = host,
                                       .cacher = cacher,
                                       .table = table,
                                       .synced = definitions_resource() == NULL};
        /* No pause: clients wait until what they have defined is served. */
        const struct hfd_feed_config config = {.cacher = cacher,
                                               .thread = "hf-kinds",
                                               .component = "definitions",
                                               .make = make_kinds,
                                               .ctx = feed};
        int r = hfd_feed_new(host, &config, &feed->feed);
        if (r != 0)
                free(feed);
        else
                *ret_feed = feed;
        return r;
}

void hfd_kind_feed_stop(struct hfd_kind_feed *feed) {
        if (feed)
                hfd_feed_stop(feed->feed);
}

struct hfd_kind_feed *hfd_kind_feed_free(struct hfd_kind_feed *feed) {
        if (!feed)
                return NULL;
        hfd_feed_free(feed->feed);
        free(feed);
        return NULL;
}

void hfd_kind_feed_wake(struct hfd_kind_feed *feed) {
        if (feed)
                hfd_feed_wake(feed->feed);
}

bool hfd_kind_feed_synced(struct hfd_kind_feed *feed) { return atomic_load(&feed->synced); }
