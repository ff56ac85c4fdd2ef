/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ownership after a create, an update, a patch or a write of a subresource.
 *
 * Invariants:
 *
 *  - An entry whose fields do not change is moved from the old list to the new one. So the renewal
 *    of a Lease costs only a comparison of the two versions, and the update of a time.
 *  - A malformed list from a client is not an error: the list of the live object counts, as in
 *    Kubernetes.
 */
#include "server/apply/ownership.h"

#include <assert.h>
#include <errno.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/json.h"
#include "server/apply/ancient_changes.h"
#include "server/apply/compare.h"
#include "server/apply/managers.h"
#include "server/apply/reconcile.h"

static const char *const unowned_at_top[] = {"apiVersion", "kind", "metadata"};

#define N_UNOWNED_AT_TOP (sizeof unowned_at_top / sizeof unowned_at_top[0])

const struct hfd_fields *hfd_ownership_unowned(struct hf__arena *scratch) {
        static const char *const in_metadata[] =
                {"clusterName", "creationTimestamp", "generation",      "managedFields",
                 "name",        "namespace",         "resourceVersion", "selfLink",
                 "uid"};
        struct hfd_fields_builder builder = {.scratch = scratch};
        const struct hfd_fields *metadata;

        for (size_t i = 0; i < sizeof in_metadata / sizeof in_metadata[0]; i++)
                hfd_fields_add(&builder,
                               &(struct hfd_step){.kind = HFD_STEP_FIELD, .name = in_metadata[i]},
                               true, NULL);
        metadata = hfd_fields_close(&builder, 0);
        for (size_t i = 0; i < N_UNOWNED_AT_TOP; i++)
                hfd_fields_add(&builder,
                               &(struct hfd_step){.kind = HFD_STEP_FIELD,
                                                  .name = unowned_at_top[i]},
                               true, unowned_at_top[i][0] == 'm' ? metadata : NULL);
        return hfd_fields_close(&builder, 0);
}

/* Whether some of the fields may be among those that no manager owns. Most updates write only the
 * spec or the status, and then the answer is no. */
static bool has_unowned(const struct hfd_fields *fields) {
        for (size_t i = 0; fields && i < N_UNOWNED_AT_TOP; i++)
                if (hfd_fields_find(fields, &(struct hfd_step){.kind = HFD_STEP_FIELD,
                                                               .name = unowned_at_top[i]}))
                        return true;
        return false;
}

/* ---- the managers before the write ---- */

/* Whether the client's list asks for an object without managers: `[]` or `[{}]`. */
static bool is_reset(const struct hf__json *list) {
        const struct hf__json *first = hf__json_first(list);

        if (!hf__json_is_array(list) || !first)
                return hf__json_is_array(list);
        return hf__json_is_object(first) && !hf__json_first(first) && !hf__json_next(first);
}

/*
 * Finds the managers that the object has before the write. *list is the client's list. If that list
 * does not count (ownership.h), they are those of live's list, and *list becomes NULL. 0 or
 * -ENOMEM.
 */
static int find_managers(struct hf__arena *scratch, const struct hf__json *live,
                         const struct hfd_writer *writer, struct hf__json **list,
                         struct hfd_managers *managers, bool *ret_of_live) {
        int r = HF_E_INVALID;

        *managers = (struct hfd_managers){0};
        *ret_of_live = false;
        if (!*writer->subresource && is_reset(*list))
                return 0;
        if (!*writer->subresource)
                r = hfd_managers_decode(scratch, *list, managers);
        if (r == -ENOMEM || (r == 0 && managers->n > 0))
                return r;
        struct hf__json *of_live = hf__json_path(live, "metadata.managedFields");
        *list = hf__json_free(*list);
        *ret_of_live = of_live != NULL;
        r = hfd_managers_decode(scratch, of_live, managers);
        if (r == HF_E_INVALID)
                *managers = (struct hfd_managers){0};
        return r == -ENOMEM ? r : 0;
}

/* ---- the managers after the write ---- */

/* Takes the changed fields from all managers, and gives them to the writer. */
static int transfer(struct hf__arena *scratch, const struct hfd_schema *schema,
                    const struct hfd_changes *changes, const struct hfd_writer *writer,
                    struct hfd_managers *managers) {
        const struct hfd_manager self = {.name = *writer->manager ? writer->manager : "unknown",
                                         .subresource = writer->subresource,
                                         .api_version = writer->api_version,
                                         .time = writer->now};
        const struct hfd_fields *written =
                hfd_fields_union(scratch, changes->added, changes->modified);
        const struct hfd_fields *gained = written;
        struct hfd_manager *found;

        if (has_unowned(written))
                gained = hfd_fields_subtract(scratch, written, hfd_ownership_unowned(scratch));

        if (gained && !hfd_managers_find(managers, &self) &&
            !hfd_managers_add(scratch, managers, &self))
                return -ENOMEM;
        found = gained ? hfd_managers_find(managers, &self) : NULL;
        for (size_t i = 0; i < managers->n; i++) {
                struct hfd_manager *m = &managers->at[i];
                const struct hfd_fields *fields = hfd_reconcile(scratch, schema, m->fields);
                fields = hfd_fields_subtract(scratch, fields, changes->removed);
                /* `written` is not subtracted from the writer's set. So if the writer owned it all
                 * before, the union returns the set itself, and the entry is not outdated. */
                if (m == found)
                        fields = hfd_fields_union(scratch, fields, gained);
                else
                        fields = hfd_fields_subtract(scratch, fields, written);
                hfd_manager_set_fields(m, fields);
        }
        if (found)
                found->time = writer->now;
        return scratch->failed ? -ENOMEM : 0;
}

/* Detaches metadata.managedFields. NULL: object has none. */
static struct hf__json *detach_list(struct hf__json *object) {
        struct hf__json *metadata = hf__json_get(object, "metadata");
        struct hf__json *list = hf__json_get(metadata, "managedFields");

        return list ? hf__json_detach(metadata, list) : NULL;
}

/*
 * Takes the list of live, whose managers were decoded, because its entries become entries of the
 * object. If the object has not changed, its caller still compares it with live: then this takes a
 * copy. 0 or -ENOMEM.
 */
static int take_list(struct hf__arena *scratch, struct hf__json *live, bool has_changed,
                     struct hf__json **ret_list, struct hfd_managers *managers) {
        if (has_changed) {
                *ret_list = detach_list(live);
                return 0;
        }
        *ret_list = hf__json_dup(hf__json_path(live, "metadata.managedFields"));
        return *ret_list ? hfd_managers_decode(scratch, *ret_list, managers) : -ENOMEM;
}

static int update(struct hf__arena *scratch, const struct hfd_schema *schema, struct hf__json *live,
                  struct hf__json *object, const struct hfd_writer *writer, struct hf__json **list,
                  bool *ret_changed) {
        struct hfd_managers managers;
        struct hf__json *result = NULL;
        bool of_live;
        int r = find_managers(scratch, live, writer, list, &managers, &of_live);

        if (r != 0 || (live && managers.n == 0))
                return r;
        const struct hfd_changes changes = hfd_compare(scratch, schema, live, object);
        *ret_changed = changes.added || changes.modified || changes.removed;
        if (of_live)
                r = take_list(scratch, live, *ret_changed, list, &managers);
        if (r == 0)
                r = transfer(scratch, schema, &changes, writer, &managers);
        if (r != 0)
                return r;
        hfd_managers_drop_empty(&managers);
        hfd_ancient_changes_join(scratch, &managers);
        if (scratch->failed)
                return -ENOMEM;
        r = hfd_managers_encode(&managers, *list, &result);
        if (r == 0 && result)
                r = hf__json_set(object, "metadata.managedFields", result);
        return r;
}

int hfd_ownership_update(const struct hfd_schema *schema, struct hf__json *live,
                         struct hf__json *object, const struct hfd_writer *writer,
                         bool *ret_changed) {
        struct hf__json *list = detach_list(object);
        struct hf__arena scratch;
        int r;

        *ret_changed = false;
        hf__arena_init(&scratch);
        r = update(&scratch, schema, live, object, writer, &list, ret_changed);
        hf__arena_deinit(&scratch);
        hf__json_free(list);
        return r;
}
