/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists in which watches are, so that a change visits few that it does not concern.
 *
 * Each resource has one list of the watches of all its objects. That list also has the watches that
 * are told of terms (watcher_private.h), whatever they select. All other watches are narrow: they
 * are in lists by a hash. If a watch has no name and selects a value of the resource's trigger
 * (hfd_selectable_trigger), the hash is that of this value. Otherwise it is that of the path: a
 * namespace, a name or both.
 * The trigger of pods is spec.nodeName, because each kubelet watches the pods of its node; the
 * watch cache of Kubernetes has the same trigger. A pod that gets a node concerns the watches of
 * two values of the trigger: it is added for the one, deleted for the other.
 *
 * Invariant: a change visits all narrow watches that it concerns. Those with a value of the trigger
 * select no object with another value, so the change visits the lists by the values before and
 * after it. If a value is not known, because the object was not parsed yet or memory ran out, the
 * change visits all narrow watches of its resource.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/thread.h"
#include "server/cacher/watch/watcher_private.h"
#include "server/resources/objects/selectable_values.h"
#include "server/resources/rows/resource_table.h"

/* Fibonacci hashing: the factor is 2^64 divided by the golden ratio, and the bits from 40 on of the
 * product depend on all lower bits of the key. */
static struct hfd_watcher **list_at(struct hfd_watchers *watchers, uint64_t key) {
        key = (key + 1) * UINT64_C(0x9e3779b97f4a7c15);
        return &watchers->narrow[(key >> 40) % HFD_NARROW_BUCKETS];
}

/* The list of the watches with these hashes of their namespace and name; 0 = any. A text may have
 * the hash 0, too: then a list only has more watches. */
static struct hfd_watcher **list_by_path(struct hfd_watchers *watchers, size_t resource,
                                         uint16_t ns_tag, uint16_t name_tag) {
        return list_at(watchers, (uint64_t)resource << 32 | (uint64_t)ns_tag << 16 | name_tag);
}

/* The list of the watches with this hash of the trigger's value. Bit 48, which no key of a path
 * has, tells the two kinds of keys apart. */
static struct hfd_watcher **list_by_trigger(struct hfd_watchers *watchers, size_t resource,
                                            uint16_t tag) {
        return list_at(watchers, UINT64_C(1) << 48 | (uint64_t)resource << 32 | tag);
}

/* ---- the lists of a watch ---- */

static bool is_narrow(const struct hfd_watcher *watcher) {
        return !watcher->told_of_terms &&
               (watcher->delivery.n_ns > 0 || watcher->delivery.name || watcher->by_trigger);
}

/* The list of the watcher that a change visits: HFD_WATCHER_BY_OBJECTS. */
static struct hfd_watcher **list_of(struct hfd_watcher *watcher) {
        struct hfd_watchers *watchers = watcher->cacher->watchers;
        const char *ns = watcher->delivery.ns, *name = watcher->delivery.name;
        size_t resource = hfd_resource_index(watcher->delivery.resource);

        if (!is_narrow(watcher))
                return &watchers->list[resource];
        if (watcher->by_trigger)
                return list_by_trigger(watchers, resource, watcher->trigger_tag);
        return list_by_path(watchers, resource, hfd_history_tag(ns, watcher->delivery.n_ns),
                            name ? hfd_history_tag(name, strlen(name)) : 0);
}

/* Links the watcher into a list, at `at`. */
static void link_locked(struct hfd_watcher *watcher, enum hfd_watcher_list list,
                        struct hfd_watcher **at) {
        hf__mutex_assert_held(&watcher->cacher->mu);
        watcher->in[list].next = *at;
        watcher->in[list].link = at;
        if (*at)
                (*at)->in[list].link = &watcher->in[list].next;
        *at = watcher;
}

static void unlink_locked(struct hfd_watcher *watcher, enum hfd_watcher_list list) {
        struct hfd_watcher *next = watcher->in[list].next;

        hf__mutex_assert_held(&watcher->cacher->mu);
        *watcher->in[list].link = next;
        if (next)
                next->in[list].link = watcher->in[list].link;
}

/* A watch of one name is found by its path: fewer changes visit that list than one by a value. */
void hfd_watcher_choose_lists(struct hfd_watcher *watcher) {
        const char *value =
                hfd_selector_trigger(&watcher->delivery.fields, watcher->delivery.resource);

        watcher->by_trigger = value && !watcher->told_of_terms && !watcher->delivery.name;
        watcher->trigger_tag = value ? hfd_history_tag(value, strlen(value)) : 0;
}

void hfd_watcher_enter_lists_locked(struct hfd_watcher *watcher) {
        struct hfd_watchers *watchers = watcher->cacher->watchers;
        struct hfd_watcher **at = list_of(watcher);
        size_t resource = hfd_resource_index(watcher->delivery.resource);

        hf__mutex_assert_held(&watcher->cacher->mu);
        /* Those that are told of terms stay in front (watcher_private.h). */
        while (!watcher->told_of_terms && *at && (*at)->told_of_terms)
                at = &(*at)->in[HFD_WATCHER_BY_OBJECTS].next;
        link_locked(watcher, HFD_WATCHER_BY_OBJECTS, at);
        if (is_narrow(watcher))
                link_locked(watcher, HFD_WATCHER_BY_KIND, &watchers->narrow_of[resource]);
        assert(!watcher->by_trigger || resource < HFD_RESOURCES_MAX); /* others have no trigger */
        if (watcher->by_trigger)
                watchers->n_by_trigger[resource]++;
}

void hfd_watcher_leave_lists_locked(struct hfd_watcher *watcher) {
        size_t resource = hfd_resource_index(watcher->delivery.resource);

        hf__mutex_assert_held(&watcher->cacher->mu);
        unlink_locked(watcher, HFD_WATCHER_BY_OBJECTS);
        if (is_narrow(watcher))
                unlink_locked(watcher, HFD_WATCHER_BY_KIND);
        if (watcher->by_trigger)
                watcher->cacher->watchers->n_by_trigger[resource]--;
}

/* ---- the lists of a change ---- */

/* A hash of the trigger's value. False: the object was not parsed yet. Nothing is parsed here,
 * because the cacher's lock is held. */
static bool find_trigger_tag(const struct hfd_object *object, uint16_t *ret_tag) {
        const struct hf__json *selectable = hfd_object_selectable_made(object);

        if (!selectable)
                return false;
        const char *value = hf__json_string(selectable, hfd_selectable_trigger(object->resource));
        /* As for selectors, a missing field equals the empty string, whose hash is 0. */
        *ret_tag = value ? hfd_history_tag(value, strlen(value)) : 0;
        return true;
}

/* Adds the list that begins with `first`, unless the list is empty or was added already: no watcher
 * may be visited twice. `first` identifies the list, because a watcher is in only one of the lists
 * HFD_WATCHER_BY_OBJECTS. */
static void add_list(struct hfd_watcher *lists[HFD_NARROW_LISTS_MAX], size_t *n,
                     struct hfd_watcher *first) {
        if (!first)
                return;
        for (size_t i = 0; i < *n; i++)
                if (lists[i] == first)
                        return;
        assert(*n < HFD_NARROW_LISTS_MAX);
        lists[(*n)++] = first;
}

/* Adds the lists by the trigger's value before and after the change. False: a value is not
 * known. */
static bool add_lists_by_trigger(struct hfd_watchers *watchers, const struct hfd_change *change,
                                 struct hfd_watcher *lists[HFD_NARROW_LISTS_MAX], size_t *n) {
        size_t resource = hfd_resource_index(change->object->resource);
        /* The object of a deletion is the last state again, so `before` has its value. */
        const struct hfd_object *const versions[] = {change->before,
                                                     change->type == HF_EVENT_DELETED
                                                             ? NULL
                                                             : change->object};
        uint16_t tag;

        for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
                if (!versions[i])
                        continue;
                if (!find_trigger_tag(versions[i], &tag))
                        return false;
                add_list(lists, n, *list_by_trigger(watchers, resource, tag));
        }
        return true;
}

bool hfd_watchers_find_narrow_locked(struct hfd_watchers *watchers, const struct hfd_change *change,
                                     struct hfd_watcher *lists[HFD_NARROW_LISTS_MAX],
                                     size_t *ret_n) {
        const struct hfd_object *object = change->object;
        const char *name = hfd_object_name(object);
        size_t resource = hfd_resource_index(object->resource);
        uint16_t ns_tag = hfd_history_tag(object->path, object->n_ns),
                 name_tag = hfd_history_tag(name, strlen(name));

        *ret_n = 0;
        add_list(lists, ret_n, *list_by_path(watchers, resource, ns_tag, name_tag));
        add_list(lists, ret_n, *list_by_path(watchers, resource, ns_tag, 0));
        add_list(lists, ret_n, *list_by_path(watchers, resource, 0, name_tag));
        return resource >= HFD_RESOURCES_MAX || watchers->n_by_trigger[resource] == 0 ||
               add_lists_by_trigger(watchers, change, lists, ret_n);
}
