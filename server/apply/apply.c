/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-side apply. The steps, in this order:
 *
 *      live + config -> merged -> pruned -> compared with live -> conflicts -> managers
 *
 * Conflicts are found in the differences from live, not in config: a manager may state a value that
 * another one owns, as long as the value is the same. Then they share the field.
 *
 * Invariants:
 *
 *  - The sets of fields borrow texts from the schema, the copy of live's managers, live, config,
 *    kubectl's annotation and the new object, which are all kept until the end. Only `changes`, and
 *    the sets made of it, borrow from the new object. The new object is not changed while these are
 *    in use: it changes before hfd_compare, and again from remove_emptied on.
 *  - An apply that changes neither the object, nor the fields of a manager, nor the apiVersion of
 *    the manager that applies, keeps all times. The new object then equals live, and need not be
 *    written.
 */
#include "server/apply/apply.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/json.h"
#include "server/apply/compare.h"
#include "server/apply/last_applied.h"
#include "server/apply/merge.h"
#include "server/apply/owned_fields.h"
#include "server/apply/prune.h"
#include "server/apply/reconcile.h"
#include "server/apply/sets/unowned.h"

struct apply {
        struct hf__arena scratch;
        const struct hfd_schema *schema;
        const struct hf__json *live, *config;
        const struct hfd_writer *writer;
        const struct hfd_fields *unowned; /* the fields that no manager may own */
        struct hf__json *list;            /* owned; a copy of live's managers */
        struct hfd_managers managers;
        struct hfd_manager *self;      /* the manager that applies; an element of managers */
        const struct hfd_fields *last; /* the fields that self owned before */
        const struct hfd_fields *set;  /* the fields in config */
        struct hf__json *object;       /* owned; the new object */
        struct hfd_emptied *emptied;   /* containers that are removed from object at the end */
        struct hfd_changes changes;    /* between live and object */
        struct hf__json *last_applied; /* owned; the parsed annotation of kubectl */
};

/* ---- the managers before the apply ---- */

/* Adds a manager that owns all fields of live, except those that nobody may own: live has no
 * managers, so its writer is unknown. */
static void add_before_first_apply(struct apply *a) {
        const struct hfd_fields *all = hfd_owned_everything(&a->scratch, a->schema, a->live, 0);
        const struct hfd_manager manager = {.name = "before-first-apply",
                                            .subresource = a->writer->subresource,
                                            .api_version = a->writer->api_version,
                                            .time = a->writer->now,
                                            .fields = hfd_fields_subtract(&a->scratch, all,
                                                                          a->unowned)};

        if (manager.fields)
                (void)hfd_managers_add(&a->scratch, &a->managers, &manager);
}

static int load_managers(struct apply *a) {
        const struct hf__json *list = hf__json_path(a->live, "metadata.managedFields");
        const struct hfd_manager self = {.name = *a->writer->manager ? a->writer->manager
                                                                     : "unknown",
                                         .subresource = a->writer->subresource,
                                         .api_version = a->writer->api_version,
                                         .applies = true};
        int r;

        a->unowned = hfd_unowned_fields(&a->scratch);
        a->list = hf__json_dup(list);
        if (list && !a->list)
                return -ENOMEM;
        r = hfd_managers_decode(&a->scratch, a->list, &a->managers);
        if (r == -ENOMEM)
                return r;
        if (r != 0) /* this server did not write the list */
                a->managers = (struct hfd_managers){0};
        for (size_t i = 0; i < a->managers.n; i++)
                hfd_manager_set_fields(&a->managers.at[i], hfd_reconcile(&a->scratch, a->schema,
                                                                         a->managers.at[i].fields));
        if (a->managers.n == 0 && a->live)
                add_before_first_apply(a);
        a->self = hfd_managers_find(&a->managers, &self);
        if (!a->self)
                a->self = hfd_managers_add(&a->scratch, &a->managers, &self);
        a->last = a->self ? a->self->fields : NULL;
        return a->scratch.failed ? -ENOMEM : 0;
}

/* ---- the object ---- */

static int make_object(struct apply *a) {
        const struct hfd_fields *owned;
        int r;

        a->object = a->live ? hf__json_dup(a->live) : hf__json_object();
        if (!a->object)
                return -ENOMEM;
        hf__json_remove(a->object, "metadata.managedFields");
        r = hfd_merge(&a->scratch, a->schema, a->object, a->config);
        if (r != 0)
                return r;
        a->self->fields = a->set;
        owned = hfd_managers_union(&a->scratch, a->managers.at, a->managers.n);
        owned = hfd_fields_union(&a->scratch, owned, a->unowned);
        a->self->fields = a->last;
        /* A list that is empty in config may be missing in the set (owned_fields.h), and then
         * hfd_prune may have removed it. The second merge restores it; otherwise the next apply
         * would, and change the object again. */
        if (hfd_prune(&a->scratch, a->schema, a->object, a->last, owned, &a->emptied))
                r = hfd_merge(&a->scratch, a->schema, a->object, a->config);
        if (r != 0)
                return r;
        a->changes = hfd_compare(&a->scratch, a->schema, a->live, a->object);
        return a->scratch.failed ? -ENOMEM : 0;
}

/* ---- conflicts ---- */

/*
 * Refuses an apply that would take fields from other managers. Exception: `kubectl apply` without
 * --server-side has set the fields in its annotation. `kubectl apply --server-side` may take those
 * of them that still have the annotation's values.
 */
static int check_conflicts(struct apply *a, const struct hfd_fields *written,
                           struct hfd_apply_failure *failure) {
        struct hfd_conflicts conflicts =
                hfd_conflicts_find(&a->scratch, &a->managers, a->self, written);
        int r;

        if (conflicts.n > 0 && strcmp(a->writer->manager, HFD_LAST_APPLIED_MANAGER) == 0) {
                const struct hfd_fields *allowed =
                        hfd_last_applied_fields(&a->scratch, a->schema, a->live,
                                                a->writer->api_version, &a->last_applied);
                conflicts = hfd_conflicts_except(&a->scratch, &conflicts, allowed);
        }
        if (a->scratch.failed)
                return -ENOMEM;
        if (conflicts.n == 0)
                return 0;
        r = hfd_conflicts_report(&conflicts, failure);
        return r == 0 ? HF_E_CONFLICT : r;
}

/* ---- the managers after the apply ---- */

/* Gives the manager the fields that it applies, and takes from the others the fields that the apply
 * has changed or removed. The manager's time changes only if something else does, so that a
 * repeated apply writes nothing. */
static void update_managers(struct apply *a, const struct hfd_fields *written) {
        const struct hfd_fields *set = hfd_fields_subtract(&a->scratch, a->set, a->unowned);
        bool changed = written || a->changes.removed || !hfd_fields_equal(set, a->last) ||
                       strcmp(a->self->api_version, a->writer->api_version) != 0;

        for (size_t i = 0; i < a->managers.n; i++) {
                struct hfd_manager *m = &a->managers.at[i];
                const struct hfd_fields *fields =
                        hfd_fields_subtract(&a->scratch, m->fields, a->changes.removed);
                fields = hfd_fields_subtract(&a->scratch, fields, written);
                hfd_manager_set_fields(m, m == a->self ? set : fields);
        }
        if (changed) {
                a->self->time = a->writer->now;
                a->self->api_version = a->writer->api_version;
        }
        hfd_managers_drop_empty(&a->managers);
        a->self = NULL; /* the list has moved */
}

/* Removes the objects and lists that have become empty. The merge then restores those that are
 * empty in config; otherwise the next apply would. 0 or -ENOMEM. */
static int remove_emptied(struct apply *a) {
        assert(a->object);
        if (!a->emptied)
                return 0;
        hfd_prune_emptied(a->emptied);
        return hfd_merge(&a->scratch, a->schema, a->object, a->config);
}

static int set_managers(struct apply *a) {
        struct hf__json *list = NULL;
        int r = hfd_managers_encode(&a->managers, a->list, &list);

        if (r == 0 && list)
                r = hf__json_set(a->object, "metadata.managedFields", list);
        if (r == 0 && strcmp(a->writer->manager, HFD_LAST_APPLIED_MANAGER) == 0)
                r = hfd_last_applied_update(a->object, a->config);
        return r;
}

static int apply_object(struct apply *a, bool force, struct hfd_apply_failure *failure) {
        const struct hfd_fields *written;
        int r = hfd_owned_by_applier(&a->scratch, a->schema, a->config, &a->set, &failure->message);

        if (r == 0)
                r = load_managers(a);
        if (r == 0)
                r = make_object(a);
        if (r != 0)
                return r;
        written = hfd_fields_union(&a->scratch, a->changes.added, a->changes.modified);
        r = force ? 0 : check_conflicts(a, written, failure);
        if (r != 0)
                return r;
        update_managers(a, written);
        if (a->scratch.failed)
                return -ENOMEM;
        r = remove_emptied(a);
        return r == 0 ? set_managers(a) : r;
}

int hfd_apply(const struct hfd_schema *schema, const struct hf__json *live,
              const struct hf__json *config, const struct hfd_writer *writer, bool force,
              struct hf__json **ret_object, struct hfd_apply_failure *failure) {
        struct apply a = {.schema = schema, .live = live, .config = config, .writer = writer};
        int r;

        assert(config && writer && failure);
        hf__arena_init(&a.scratch);
        r = apply_object(&a, force, failure);
        hf__arena_deinit(&a.scratch);
        hf__json_free(a.list);
        hf__json_free(a.last_applied);
        if (r == 0)
                *ret_object = a.object;
        else
                hf__json_free(a.object);
        /* Without memory for its message, the failure could not be reported. */
        return r == HF_E_INVALID && failure->message.error != 0 ? -ENOMEM : r;
}
