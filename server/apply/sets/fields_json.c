/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of fields as FieldsV1, the JSON in managedFields. FieldsV1 has an object for each step of a
 * path. The member `.` says that the path to the object is in the set itself. A path that nothing
 * follows has an empty object, which says the same.
 *
 *      {"f:metadata":{"f:labels":{".":{},"f:app":{}}}}
 *
 * Invariant: the recursion is at most HFD_FIELDS_DEPTH deep, because clients send FieldsV1.
 */
#include "server/apply/sets/fields_json.h"

#include <errno.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"

/* Adds the fields of one object to the builder. *ret_member: the path to the object is in the set
 * itself. 0, HF_E_INVALID or -ENOMEM. */
static int parse_level(struct hfd_fields_builder *builder, const struct hf__json *json,
                       unsigned depth, const struct hfd_fields **ret_fields, bool *ret_member) {
        size_t level = hfd_fields_open(builder);

        *ret_member = false;
        if (!hf__json_is_object(json) || depth > HFD_FIELDS_DEPTH)
                return HF_E_INVALID;
        for (const struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m)) {
                const struct hfd_fields *below;
                struct hfd_step step;
                bool member;
                if (strcmp(hf__json_key(m), ".") == 0) {
                        *ret_member = true;
                        continue;
                }
                int r = hfd_step_parse(builder->scratch, hf__json_key(m), &step);
                if (r == HF_E_NOT_FOUND) /* a kind of step that a newer server has written */
                        continue;
                if (r == 0)
                        r = parse_level(builder, m, depth + 1, &below, &member);
                if (r != 0)
                        return r;
                hfd_fields_add(builder, &step, member, below);
        }
        *ret_fields = hfd_fields_close(builder, level);
        *ret_member = *ret_member || !*ret_fields;
        return builder->scratch->failed ? -ENOMEM : 0;
}

int hfd_fields_parse(struct hf__arena *scratch, const struct hf__json *json,
                     const struct hfd_fields **ret_fields) {
        struct hfd_fields_builder builder = {.scratch = scratch};
        bool member; /* unused: no manager owns the whole object */

        return parse_level(&builder, json, 0, ret_fields, &member);
}

/* The object for one path. fields: the steps below it; NULL: nothing follows it. self: the path is
 * in the set itself. text: a buffer for keys, which is used again. NULL: out of memory. */
static struct hf__json *make_level(const struct hfd_fields *fields, bool self,
                                   struct hf__strbuf *text) {
        struct hf__json *json = hf__json_object();
        int r = 0;

        if (self && fields)
                r = hf__json_add(json, ".", hf__json_object());
        for (size_t i = 0; fields && r == 0 && i < fields->n; i++) {
                const struct hfd_field *field = &fields->at[i];
                struct hf__json *below = make_level(field->below, field->member, text);
                hf__strbuf_reset(text);
                hfd_step_put(&field->step, text);
                if (text->error != 0) {
                        hf__json_free(below);
                        r = text->error;
                } else {
                        r = hf__json_add(json, text->data, below);
                }
        }
        return r == 0 ? json : hf__json_free(json);
}

struct hf__json *hfd_fields_to_json(const struct hfd_fields *fields) {
        struct hf__strbuf text = {0};
        struct hf__json *json = make_level(fields, false, &text);

        hf__strbuf_done(&text);
        return json;
}
