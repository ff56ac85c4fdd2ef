/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ownership after a create, an update, a patch or a write of a subresource.
 *
 * Invariants:
 *
 *  - An entry of managedFields whose fields do not change is moved from the old list to the new.
 *  - No sets of fields are made for a write if renewal.h finds that the managers keep their fields.
 *    So the renewal of a Lease costs only a comparison of the two versions, and the update of a
 *    time. If live's list is a raw value (json.h), the time is changed in its text.
 *  - A malformed list from a client is not an error: the list of the live object counts, as in
 *    Kubernetes.
 */
#include "server/apply/ownership.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/apply/ancient_changes.h"
#include "server/apply/compare.h"
#include "server/apply/managers.h"
#include "server/apply/reconcile.h"
#include "server/apply/renewal.h"
#include "server/apply/sets/unowned.h"

#define MANAGERS "metadata.managedFields"

/* The writer as a manager that owns nothing yet. */
static struct hfd_manager manager_of(const struct hfd_writer *writer) {
        return (struct hfd_manager){.name = *writer->manager ? writer->manager : "unknown",
                                    .subresource = writer->subresource,
                                    .api_version = writer->api_version,
                                    .time = writer->now};
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
 * does not count (ownership.h), *list becomes a copy of live's list. 0 or -ENOMEM.
 */
static int find_managers(struct hf__arena *scratch, const struct hf__json *live,
                         const struct hfd_writer *writer, struct hf__json **list,
                         struct hfd_managers *managers) {
        int r = HF_E_INVALID;

        *managers = (struct hfd_managers){0};
        if (!*writer->subresource && is_reset(*list))
                return 0;
        if (!*writer->subresource)
                r = hfd_managers_decode(scratch, *list, managers);
        if (r == -ENOMEM || (r == 0 && managers->n > 0))
                return r;
        const struct hf__json *of_live = hf__json_path(live, MANAGERS);
        hf__json_free(*list);
        *list = hf__json_dup(of_live);
        if (of_live && !*list)
                return -ENOMEM;
        r = hfd_managers_decode(scratch, *list, managers);
        if (r == HF_E_INVALID)
                *managers = (struct hfd_managers){0};
        return r == -ENOMEM ? r : 0;
}

/* ---- the managers after the write ---- */

/* Takes the changed fields from all managers, and gives them to the writer, except those that
 * nobody may own. */
static int transfer_fields(struct hf__arena *scratch, const struct hfd_schema *schema,
                           const struct hfd_changes *changes, const struct hfd_writer *writer,
                           struct hfd_managers *managers) {
        const struct hfd_manager self = manager_of(writer);
        const struct hfd_fields *written =
                hfd_fields_union(scratch, changes->added, changes->modified);
        const struct hfd_fields *gained = written;
        struct hfd_manager *found;

        if (hfd_unowned_may_have(written))
                gained = hfd_fields_subtract(scratch, written, hfd_unowned_fields(scratch));

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

static int update_managers(struct hf__arena *scratch, const struct hfd_schema *schema,
                           const struct hf__json *live, struct hf__json *object,
                           const struct hfd_writer *writer, struct hf__json **list,
                           bool *ret_changed) {
        struct hfd_managers managers;
        struct hf__json *result = NULL;
        int r = find_managers(scratch, live, writer, list, &managers);

        if (r != 0 || (live && managers.n == 0))
                return r;
        const struct hfd_changes changes =
                hfd_compare(scratch, schema, live ? live : writer->zero, object);
        *ret_changed = changes.added || changes.modified || changes.removed;
        r = transfer_fields(scratch, schema, &changes, writer, &managers);
        if (r != 0)
                return r;
        hfd_managers_drop_empty(&managers);
        hfd_ancient_changes_join(scratch, &managers);
        if (scratch->failed)
                return -ENOMEM;
        r = hfd_managers_encode(&managers, *list, &result);
        if (r == 0 && result)
                r = hf__json_set(object, MANAGERS, result);
        return r;
}

/* ---- an update that leaves the fields of all managers as they are ---- */

/*
 * Whether the client's list is that of live. If it is written in another way, live's list is
 * parsed, so that the two can be compared. 0, -ENOMEM, or HF_E_NOT_FOUND: it is another list.
 */
static int compare_lists(const struct hf__json *list, struct hf__json *live,
                         const struct hf__json **of_live) {
        const char *text = hf__json_raw(*of_live);
        struct hf__strbuf printed = {0};
        bool same = false;

        if (text)
                hf__json_print(list, &printed);
        same = text && printed.error == 0 && strcmp(printed.data, text) == 0;
        hf__strbuf_done(&printed);
        if (same)
                return 0;
        if (hf__json_expand(live, MANAGERS) == -ENOMEM)
                return -ENOMEM;
        *of_live = hf__json_path(live, MANAGERS);
        return hf__json_equal(list, *of_live) ? 0 : HF_E_NOT_FOUND;
}

/* Calls hfd_renewal_find, which needs the text of the list. A list that was parsed is printed. */
static bool find_renewal(const struct hfd_schema *schema, const struct hf__json *live,
                         const struct hf__json *object, const struct hf__json *list,
                         const struct hfd_writer *writer, struct hfd_renewal *ret_renewal) {
        const struct hfd_manager self = manager_of(writer);
        const char *text = hf__json_raw(list);
        struct hf__strbuf printed = {0};

        if (!text) {
                hf__json_print(list, &printed);
                text = printed.data;
        }
        bool found = printed.error == 0 && text &&
                     hfd_renewal_find(schema, live, object, list, text, strlen(text), &self,
                                      ret_renewal);
        hf__strbuf_done(&printed);
        return found;
}

/* Gives the writer's entry the new time. */
static int renew_time(struct hf__json *list, const struct hfd_renewal *renewal, const char *now) {
        const char *text = hf__json_raw(list);
        struct hf__json *entry = hf__json_first(list);
        struct hf__strbuf renewed = {0};

        for (size_t i = 0; i < renewal->self; i++)
                entry = hf__json_next(entry);
        if (!text)
                return hf__json_put_string(entry, "time", now);
        hf__strbuf_reserve(&renewed, strlen(text) + strlen(now));
        hf__strbuf_add(&renewed, text, renewal->time_at);
        hf__strbuf_puts(&renewed, now);
        hf__strbuf_puts(&renewed, text + renewal->time_at + renewal->n_time);
        int r = renewed.error == 0 ? hf__json_set_raw(list, renewed.data, renewed.n) : -ENOMEM;
        hf__strbuf_done(&renewed);
        return r;
}

/*
 * If the write leaves the fields of all managers as they are, sets the managers of object. *list is
 * the client's list; it becomes NULL when object gets it. 0; -ENOMEM; HF_E_NOT_FOUND: the fields of
 * some manager may change, or live has no managers.
 */
static int renew_entry(const struct hfd_schema *schema, struct hf__json *live,
                       struct hf__json *object, const struct hfd_writer *writer, bool takes_list,
                       struct hf__json **list, bool *ret_changed) {
        const struct hf__json *of_live = hf__json_path(live, MANAGERS);
        bool is_sent = *list && !*writer->subresource;
        struct hfd_renewal renewal;
        int r = is_sent && of_live ? compare_lists(*list, live, &of_live) : 0;

        if (r != 0)
                return r;
        if (!of_live || !find_renewal(schema, live, object, of_live, writer, &renewal))
                return HF_E_NOT_FOUND;
        if (!is_sent || hf__json_raw(of_live)) {
                hf__json_free(*list);
                /* If object equals live, the caller may compare them once more, so live keeps its
                 * list. */
                *list = takes_list && renewal.changed ? detach_list(live) : hf__json_dup(of_live);
        }
        if (!*list)
                return -ENOMEM;
        r = renewal.is_renewed ? renew_time(*list, &renewal, writer->now) : 0;
        if (r != 0)
                return r;
        *ret_changed = renewal.changed;
        r = hf__json_put(hf__json_get(object, "metadata"), "managedFields", *list);
        *list = NULL;
        return r;
}

int hfd_ownership_update(const struct hfd_schema *schema, struct hf__json *live,
                         struct hf__json *object, const struct hfd_writer *writer, bool takes_list,
                         bool *ret_changed) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *list = detach_list(object);
        struct hf__arena scratch;
        int r;

        assert(object && writer && writer->manager && writer->api_version && writer->now);
        *ret_changed = false;
        r = renew_entry(schema, live, object, writer, takes_list, &list, ret_changed);
        if (r == HF_E_NOT_FOUND && hf__json_expand(live, MANAGERS) == -ENOMEM)
                r = -ENOMEM;
        if (r != HF_E_NOT_FOUND)
                return r;
        hf__arena_init(&scratch);
        r = update_managers(&scratch, schema, live, object, writer, &list, ret_changed);
        hf__arena_deinit(&scratch);
        return r;
}
