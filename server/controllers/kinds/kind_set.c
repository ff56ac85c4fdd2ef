/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of kinds.
 *
 * Invariant: the ids in a set rise, so a kind is found by binary search; and an id is never used
 * again, so a key in a work queue never names the object of another kind.
 */
#include "server/controllers/kinds/kind_set.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* ---- kinds ---- */

struct hfd_kind *hfd_kind_ref(struct hfd_kind *kind) {
        assert(!kind->is_custom || atomic_load_explicit(&kind->refs, memory_order_relaxed) > 0);
        /* Relaxed is enough: the caller has a reference, so no other thread can free the kind. */
        if (kind->is_custom)
                (void)atomic_fetch_add_explicit(&kind->refs, 1, memory_order_relaxed);
        return kind;
}

void hfd_kind_unref(struct hfd_kind *kind) {
        assert(!kind || !kind->is_custom ||
               atomic_load_explicit(&kind->refs, memory_order_relaxed) > 0);
        /* Release and acquire: what other threads did with the kind happens before it is freed. */
        if (!kind || !kind->is_custom ||
            atomic_fetch_sub_explicit(&kind->refs, 1, memory_order_acq_rel) != 1)
                return;
        hf_informer_free(kind->informer);
        free(kind->texts);
        free(kind);
}

/* ---- sets ---- */

/* The first n_group bytes of group are the group's name. */
static int compare_name(const struct hfd_kind *kind, const char *group, size_t n_group,
                        const char *name) {
        int order = strncmp(kind->row.resource.group, group, n_group);

        if (order == 0 && kind->row.resource.group[n_group] != '\0')
                order = 1;
        return order != 0 ? order : strcmp(kind->row.kind, name);
}

static int compare_kinds(const void *a, const void *b) {
        const struct hfd_kind *first = *(const struct hfd_kind *const *)a,
                              *second = *(const struct hfd_kind *const *)b;
        const char *group = second->row.resource.group;

        return compare_name(first, group, strlen(group), second->row.kind);
}

HF__CLEANUP_DEFINE(set_cleanup, struct hfd_kind_set *, hfd_kind_set_unref)

int hfd_kind_set_new(const struct hf_clock *clock, struct hfd_kind *const *kinds, size_t n,
                     struct hfd_kind_set **ret_set) {
        HF__CLEANUP(set_cleanup) struct hfd_kind_set *set = calloc(1, sizeof *set);

        if (!set)
                return -ENOMEM;
        atomic_init(&set->refs, 1);
        /* One more, because calloc of nothing may return NULL. */
        set->kinds = calloc(n + 1, sizeof *set->kinds);
        set->by_name = calloc(n + 1, sizeof *set->by_name);
        if (!set->kinds || !set->by_name)
                return -ENOMEM;
        int r = hf_cancel_new(NULL, clock, &set->replaced);
        if (r != 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                assert(i == 0 || kinds[i - 1]->id < kinds[i]->id);
                set->kinds[i] = hfd_kind_ref(kinds[i]);
                set->by_name[i] = kinds[i];
        }
        set->n = n;
        qsort(set->by_name, n, sizeof *set->by_name, compare_kinds);
        *ret_set = HF__TAKE(set);
        return 0;
}

/* Relaxed, as for a kind: the caller has a reference, or a lock under which another one stays. */
struct hfd_kind_set *hfd_kind_set_ref(struct hfd_kind_set *set) {
        assert(atomic_load_explicit(&set->refs, memory_order_relaxed) > 0);
        (void)atomic_fetch_add_explicit(&set->refs, 1, memory_order_relaxed);
        return set;
}

struct hfd_kind_set *hfd_kind_set_unref(struct hfd_kind_set *set) {
        assert(!set || atomic_load_explicit(&set->refs, memory_order_relaxed) > 0);
        if (!set || atomic_fetch_sub_explicit(&set->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        for (size_t i = 0; i < set->n; i++)
                hfd_kind_unref(set->kinds[i]);
        hf_cancel_unref(set->replaced);
        free(set->kinds);
        free(set->by_name);
        free(set);
        return NULL;
}

/* ---- finding ---- */

/* A linear search: only a recount of a quota looks for a plural, and then sends a request, which
 * costs far more. The garbage collector looks for each owner of each object, so the next two
 * searches are binary. */
const struct hfd_kind *hfd_kind_set_find(const struct hfd_kind_set *set, const char *group,
                                         const char *plural) {
        for (size_t i = 0; i < set->n; i++)
                if (strcmp(set->kinds[i]->row.resource.plural, plural) == 0 &&
                    strcmp(set->kinds[i]->row.resource.group, group) == 0)
                        return set->kinds[i];
        return NULL;
}

const struct hfd_kind *hfd_kind_set_find_by_id(const struct hfd_kind_set *set, size_t id) {
        size_t low = 0, high = set->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (set->kinds[middle]->id < id)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < set->n && set->kinds[low]->id == id ? set->kinds[low] : NULL;
}

const struct hfd_kind *hfd_kind_set_find_by_name(const struct hfd_kind_set *set,
                                                 const char *api_version, const char *kind) {
        const char *slash = api_version ? strchr(api_version, '/') : NULL;
        size_t n_group = slash ? (size_t)(slash - api_version) : 0, low = 0, high = set->n;

        if (!api_version || !kind)
                return NULL;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (compare_name(set->by_name[middle], api_version, n_group, kind) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < set->n && compare_name(set->by_name[low], api_version, n_group, kind) == 0
                       ? set->by_name[low]
                       : NULL;
}
