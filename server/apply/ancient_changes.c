/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins the oldest managers that update (ancient_changes.h) into one with the name ancient-changes,
 * so that an object has at most HFD_UPDATE_MANAGERS_MAX of them. Only managers of the same
 * apiVersion are joined, because a set of fields refers to one version. So an object that has more
 * versions than HFD_UPDATE_MANAGERS_MAX exceeds the limit.
 *
 * Kubernetes has this limit too. Without it, a client that sends another name with each request
 * would let managedFields grow with every write.
 *
 * Invariant: managers are sorted and not searched, since a client can send thousands of them.
 */
#include "server/apply/ancient_changes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* A manager that updates, and its rank by time: 0 = the oldest. */
struct ranked {
        struct hfd_manager manager;
        size_t rank;
};

/* Names break ties between equal times, which are common: stored times have whole seconds. So the
 * result does not depend on the order of the list. */
static int order_of_times(const void *a, const void *b) {
        const struct hfd_manager *x = a, *y = b;
        int order = hfd_managers_order_of_times(x, y);

        if (order == 0)
                order = strcmp(x->name, y->name);
        if (order == 0)
                order = strcmp(x->api_version, y->api_version);
        return order == 0 ? strcmp(x->subresource, y->subresource) : order;
}

static int order_of_version(const void *a, const void *b) {
        const struct ranked *x = a, *y = b;
        int order = strcmp(x->manager.api_version, y->manager.api_version);

        if (order != 0)
                return order;
        return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Moves the managers that update to the end of the list. Returns how many others there are. */
static size_t move_to_end(struct hfd_managers *managers) {
        size_t n_others = 0;

        for (size_t i = 0; i < managers->n; i++)
                if (managers->at[i].applies) {
                        struct hfd_manager m = managers->at[i];
                        managers->at[i] = managers->at[n_others];
                        managers->at[n_others++] = m;
                }
        assert(n_others <= managers->n);
        return n_others;
}

static bool same_version(const struct ranked *a, const struct ranked *b) {
        return strcmp(a->manager.api_version, b->manager.api_version) == 0;
}

/*
 * Returns the lowest rank whose manager may stay as it is. If the managers with lower ranks are
 * joined, those of each version into one, then few enough are left. n = all are joined; if there
 * are too many versions, even that is not enough. first: for each rank, whether that manager is the
 * oldest one of its version.
 */
static size_t find_limit(const bool *first, size_t n) {
        size_t n_left = n, rank = 0;

        for (; rank < n && n_left > HFD_UPDATE_MANAGERS_MAX; rank++)
                if (!first[rank])
                        n_left--;
        return rank;
}

/* Appends the n managers of one version; those whose rank is below the limit are joined into one. A
 * single manager below the limit stays as it is. */
static void append_joined(struct hf__arena *scratch, struct hfd_managers *managers,
                          const struct ranked *ranked, size_t n, size_t limit) {
        struct hfd_managers joined = {0};
        struct hfd_manager bucket;
        size_t i = 0;

        for (; i < n && ranked[i].rank < limit; i++)
                if (!hfd_managers_add(scratch, &joined, &ranked[i].manager))
                        return;
        if (joined.n < 2)
                i = 0;
        bucket = (struct hfd_manager){.name = "ancient-changes",
                                      .subresource = "",
                                      .api_version = ranked[0].manager.api_version,
                                      .time = i > 0 ? ranked[i - 1].manager.time : NULL,
                                      .fields = hfd_managers_union(scratch, joined.at, i)};
        /* Perhaps the manager ancient-changes of an earlier write is not among the oldest now. */
        for (; i < n; i++) {
                const struct hfd_manager *m = &ranked[i].manager;
                if (bucket.fields && hfd_manager_is_same(m, &bucket)) {
                        bucket.fields = hfd_fields_union(scratch, bucket.fields, m->fields);
                        bucket.time = m->time;
                } else {
                        (void)hfd_managers_add(scratch, managers, m);
                }
        }
        if (bucket.fields)
                (void)hfd_managers_add(scratch, managers, &bucket);
}

void hfd_ancient_changes_join(struct hf__arena *scratch, struct hfd_managers *managers) {
        size_t n_others = move_to_end(managers), n = managers->n - n_others, limit, to;
        struct hfd_manager *updating;
        struct ranked *ranked;
        bool *first;

        if (n <= HFD_UPDATE_MANAGERS_MAX)
                return;
        ranked = hf__arena_alloc(scratch, n * sizeof *ranked);
        first = hf__arena_alloc(scratch, n * sizeof *first);
        if (!ranked || !first)
                return;
        updating = managers->at + n_others;
        qsort(updating, n, sizeof *updating, order_of_times);
        for (size_t i = 0; i < n; i++)
                ranked[i] = (struct ranked){updating[i], i};
        qsort(ranked, n, sizeof *ranked, order_of_version);
        for (size_t i = 0; i < n; i++)
                first[ranked[i].rank] = i == 0 || !same_version(&ranked[i - 1], &ranked[i]);
        limit = find_limit(first, n);
        /* The list is made again in the memory of `updating`; `ranked` has copies. */
        managers->n = n_others;
        for (size_t from = 0; from < n; from = to) {
                for (to = from + 1; to < n && same_version(&ranked[from], &ranked[to]);)
                        to++;
                append_joined(scratch, managers, ranked + from, to - from, limit);
        }
}
