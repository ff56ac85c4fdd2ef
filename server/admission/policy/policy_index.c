/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the index of policies.
 *
 * Invariants: an object with the same name and revision as in the old index has not changed, so its
 * compiled form is used again. To compile costs far more than all else here, and one change of a
 * policy would otherwise compile all others. A malformed object is left out: it must not keep the
 * index from being renewed.
 */
#include "server/admission/policy/policy_index.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/cleanup.h"
#include "server/admission/admission.h"
#include "server/cacher/cacher.h"
#include "server/cacher/watch/snapshot.h"
#include "server/resources/objects/object.h"
#include "server/resources/objects/object_key.h"
#include "server/resources/rows/resource_table.h"

/* An index in the making: all policies, with and without bindings. */
struct builder {
        struct hfd_cacher *cacher;
        const struct hfd_policy_index *old;
        struct hfd_policy_binding **old_bindings; /* owned array; of old, in the order of names */
        bool mutating;
        struct hfd_policy **policies; /* owned references, in the order of names */
        size_t n_policies, policies_space;
        struct hfd_policy_index *index; /* owned reference */
        size_t bindings_space;
};

static void builder_cleanup(struct builder *b) {
        for (size_t i = 0; i < b->n_policies; i++)
                hfd_policy_unref(b->policies[i]);
        free((void *)b->old_bindings);
        free(b->policies);
        hfd_policy_index_unref(b->index);
}

/* Makes room for one more pointer. 0 or -ENOMEM. */
static int grow_array(void *array_pointer, size_t n, size_t *space) {
        void **array = array_pointer;
        void *larger;

        if (n < *space)
                return 0;
        larger = reallocarray(*array, *space > 0 ? 2 * *space : 8, sizeof(void *));
        if (!larger)
                return -ENOMEM;
        *array = larger;
        *space = *space > 0 ? 2 * *space : 8;
        return 0;
}

/* The name of the i-th element of a list, for find_name. */
typedef const char *name_at(const void *list, size_t i);

static const char *hook_name(const void *list, size_t i) {
        return ((const struct hfd_policy_hook *)list)[i].policy->name;
}
static const char *policy_name(const void *list, size_t i) {
        return ((struct hfd_policy *const *)list)[i]->name;
}
static const char *binding_name(const void *list, size_t i) {
        return ((struct hfd_policy_binding *const *)list)[i]->name;
}

/* The place of a name in a list of n elements that is sorted by name; n: it is not there. */
static size_t find_name(const void *list, size_t n, name_at *at, const char *name) {
        size_t low = 0;
        size_t high = n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(at(list, middle), name) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < n && strcmp(at(list, low), name) == 0 ? low : n;
}

/* The policy in the old index that was compiled from this revision of the object. NULL: there is
 * none. The name is compared, too, because one transaction of the store may write several objects,
 * which then have the same revision. */
static struct hfd_policy *find_policy(const struct hfd_policy_index *old,
                                      const struct hfd_object *object) {
        const char *name = hfd_object_name(object);
        struct hfd_policy *found = NULL;
        size_t i;

        if (!old)
                return NULL;
        i = find_name(old->hooks, old->n_hooks, hook_name, name);
        if (i < old->n_hooks)
                found = old->hooks[i].policy;
        i = found ? old->n_idle : find_name(old->idle, old->n_idle, policy_name, name);
        if (i < old->n_idle)
                found = old->idle[i];
        return found && found->revision == object->revision ? found : NULL;
}

/* The same for a binding. */
static struct hfd_policy_binding *find_binding(const struct builder *b,
                                               const struct hfd_object *object) {
        const size_t n = b->old ? b->old->n_bindings : 0;
        size_t i = find_name(b->old_bindings, n, binding_name, hfd_object_name(object));

        return i < n && b->old_bindings[i]->revision == object->revision ? b->old_bindings[i]
                                                                         : NULL;
}

static int compare_names(const void *a, const void *b) {
        const struct hfd_policy_binding *const *x = a;
        const struct hfd_policy_binding *const *y = b;

        return strcmp((*x)->name, (*y)->name);
}

/* Sorts the old bindings by name alone. 0 or -ENOMEM. */
static int sort_old_bindings(struct builder *b) {
        const size_t n = b->old ? b->old->n_bindings : 0;

        if (n == 0)
                return 0;
        b->old_bindings = malloc(n * sizeof *b->old_bindings);
        if (!b->old_bindings)
                return -ENOMEM;
        memcpy((void *)b->old_bindings, (const void *)b->old->bindings,
               n * sizeof *b->old_bindings);
        qsort((void *)b->old_bindings, n, sizeof *b->old_bindings, compare_names);
        return 0;
}

/* Adds a policy, shared with the old index if possible. 0, also for an object that is left out, or
 * -ENOMEM. */
static int add_policy(struct builder *b, const struct hfd_object *object) {
        struct hfd_policy *policy = find_policy(b->old, object);
        int r = grow_array(&b->policies, b->n_policies, &b->policies_space);

        if (r != 0)
                return r;
        if (policy)
                policy = hfd_policy_ref(policy);
        else
                r = hfd_policy_new(object, b->mutating, &policy);
        if (r == 0)
                b->policies[b->n_policies++] = policy;
        return r > 0 ? 0 : r;
}

static int add_binding(struct builder *b, const struct hfd_object *object) {
        struct hfd_policy_index *index = b->index;
        struct hfd_policy_binding *binding = find_binding(b, object);
        int r = grow_array(&index->bindings, index->n_bindings, &b->bindings_space);

        if (r != 0)
                return r;
        if (binding)
                binding = hfd_policy_binding_ref(binding);
        else
                r = hfd_policy_binding_new(object, &binding);
        if (r == 0)
                index->bindings[index->n_bindings++] = binding;
        return r > 0 ? 0 : r;
}

/*
 * Adds all objects of a kind, in the order of their names. The snapshots of policies and bindings
 * are not of the same moment. A binding that comes before its policy, or the reverse, has no effect
 * until the next run of the feed, which the later change causes.
 */
static int add_objects(struct builder *b, const char *plural,
                       int (*add)(struct builder *b, const struct hfd_object *object)) {
        static const struct hfd_scope all = {.prefix = ""};
        const struct hfd_resource *row = hfd_resource_find(HFD_ADMISSION_GROUP, "v1", plural);
        struct hfd_object_iter iter;
        struct hfd_snapshot snapshot;
        struct hfd_object *object;
        int r = hfd_snapshot_take_now(b->cacher, row, &snapshot);

        if (r != 0)
                return r;
        hfd_object_iter_init(&iter, &snapshot.objects, &all, "");
        while (r == 0 && (object = hfd_object_iter_next(&iter)))
                r = add(b, object);
        hfd_snapshot_done(&snapshot);
        return r;
}

/* By policy, then by name. So the order of evaluation does not depend on the order of changes, and
 * a request that two bindings deny always gets the same message. */
static int compare_bindings(const void *a, const void *b) {
        const struct hfd_policy_binding *const *x = a;
        const struct hfd_policy_binding *const *y = b;
        int r = strcmp((*x)->policy_name, (*y)->policy_name);

        return r != 0 ? r : strcmp((*x)->name, (*y)->name);
}

/* The first binding of a policy, in the sorted list. */
static size_t first_binding(const struct hfd_policy_index *index, const char *policy_name) {
        size_t low = 0;
        size_t high = index->n_bindings;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(index->bindings[middle]->policy_name, policy_name) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* Gives each policy its bindings, which are neighbours in the sorted list. + 1: calloc of no
 * elements may return NULL. */
static int make_hooks(struct builder *b) {
        struct hfd_policy_index *index = b->index;

        if (index->n_bindings > 0)
                qsort(index->bindings, index->n_bindings, sizeof *index->bindings,
                      compare_bindings);
        index->hooks = calloc(b->n_policies + 1, sizeof *index->hooks);
        index->idle = calloc(b->n_policies + 1, sizeof *index->idle);
        if (!index->hooks || !index->idle)
                return -ENOMEM;
        for (size_t i = 0; i < b->n_policies; i++) {
                struct hfd_policy *policy = hfd_policy_ref(b->policies[i]);
                size_t first = first_binding(index, policy->name);
                size_t n = 0;

                while (first + n < index->n_bindings &&
                       strcmp(index->bindings[first + n]->policy_name, policy->name) == 0)
                        n++;
                if (n == 0)
                        index->idle[index->n_idle++] = policy;
                else
                        index->hooks[index->n_hooks++] =
                                (struct hfd_policy_hook){policy, &index->bindings[first], n};
        }
        return 0;
}

int hfd_policy_index_new(struct hfd_cacher *cacher, bool mutating,
                         const struct hfd_policy_index *old, struct hfd_policy_index **ret_index) {
        HF__CLEANUP(builder_cleanup)
        struct builder b = {.cacher = cacher,
                            .old = old,
                            .mutating = mutating,
                            .index = calloc(1, sizeof *b.index)};

        if (!b.index)
                return -ENOMEM;
        atomic_init(&b.index->refs, 1);
        int r = sort_old_bindings(&b);
        if (r == 0)
                r = add_objects(&b,
                                mutating ? "mutatingadmissionpolicies"
                                         : "validatingadmissionpolicies",
                                add_policy);
        if (r != 0)
                return r;
        r = add_objects(&b,
                        mutating ? "mutatingadmissionpolicybindings"
                                 : "validatingadmissionpolicybindings",
                        add_binding);
        if (r != 0)
                return r;
        r = make_hooks(&b);
        if (r != 0)
                return r;
        *ret_index = HF__TAKE(b.index);
        return 0;
}

struct hfd_policy_index *hfd_policy_index_ref(struct hfd_policy_index *index) {
        assert(atomic_load_explicit(&index->refs, memory_order_relaxed) > 0);
        atomic_fetch_add(&index->refs, 1);
        return index;
}

struct hfd_policy_index *hfd_policy_index_unref(struct hfd_policy_index *index) {
        assert(!index || atomic_load_explicit(&index->refs, memory_order_relaxed) > 0);
        if (!index || atomic_fetch_sub(&index->refs, 1) > 1)
                return NULL;
        for (size_t i = 0; i < index->n_hooks; i++)
                hfd_policy_unref(index->hooks[i].policy);
        for (size_t i = 0; i < index->n_idle; i++)
                hfd_policy_unref(index->idle[i]);
        for (size_t i = 0; i < index->n_bindings; i++)
                hfd_policy_binding_unref(index->bindings[i]);
        free(index->hooks);
        free(index->idle);
        free(index->bindings);
        free(index);
        return NULL;
}

bool hfd_policy_index_wants(const struct hfd_policy_index *index,
                            const struct hfd_admission_attributes *of) {
        for (size_t i = 0; i < index->n_hooks; i++)
                if (hfd_matcher_may_match(&index->hooks[i].policy->matcher, of))
                        return true;
        return false;
}
