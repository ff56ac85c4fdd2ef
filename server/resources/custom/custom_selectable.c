/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the fields of custom resources that field selectors may name. Their paths have the form
 * ".spec.color": validation refuses others, and one that is in a stored definition all the same is
 * passed over or finds nothing.
 *
 * Invariants: an object keeps the values of the fields of all versions, because a request in any
 * version may name the fields of that version. The key of a value is its whole path, and begins
 * with a dot. So it differs from the key "labels" (objects/object.c), and a version may name
 * ".spec" while another one names ".spec.color". Each path is read once for each object, and a
 * field without a value takes no memory: a kind may have thousands of versions, and each of them
 * other fields.
 */
#include "server/resources/custom/custom_selectable.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"

/* The field "spec.color" of one of selectableFields; NULL = it has no such path. */
static const char *field_of(const struct hf__json *item) {
        const char *path = hf__json_string(item, "jsonPath");

        return path && *path == '.' && path[1] ? path + 1 : NULL;
}

bool hfd_custom_is_selectable(const struct hfd_custom_version *version, const char *field) {
        for (const struct hf__json *i = hf__json_first(version->selectable); i;
             i = hf__json_next(i)) {
                const char *known = field_of(i);
                if (known && strcmp(known, field) == 0)
                        return true;
        }
        return false;
}

/* path: of the field, with the dot at its beginning; selectable has no such member yet. 0 or
 * -ENOMEM. */
static int copy_field(const struct hf__json *object, const char *path,
                      struct hf__json *selectable) {
        const struct hf__json *value = hf__json_path(object, path + 1);
        struct hf__strbuf s = {0};
        int r = 0;

        if (hf__json_is_string(value))
                return hf__json_add_string(selectable, path, hf__json_text(value));
        if (hf__json_is_number(value) || hf__json_is_bool(value))
                hf__json_print(value, &s);
        if (s.error != 0)
                r = -ENOMEM;
        else if (s.n > 0)
                r = hf__json_add_string(selectable, path, s.data);
        hf__strbuf_done(&s);
        return r;
}

int hfd_custom_selectable(const struct hfd_custom_kind *kind, const struct hf__json *object,
                          struct hf__json *selectable) {
        int r = 0;

        for (size_t i = 0; i < kind->n_selectable && r == 0; i++)
                r = copy_field(object, kind->selectable[i], selectable);
        return r;
}

const char *hfd_custom_selectable_text(const struct hf__json *selectable, const char *field) {
        for (const struct hf__json *m = hf__json_first(selectable); m; m = hf__json_next(m))
                if (*hf__json_key(m) == '.' && strcmp(hf__json_key(m) + 1, field) == 0)
                        return hf__json_text(m);
        return NULL;
}
