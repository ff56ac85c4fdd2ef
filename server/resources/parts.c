/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Type checks for the parts of an object. The messages follow those of Go's encoding/json, because
 * clients show them.
 *
 * Invariant: after a check has succeeded, the part is not null, so later code need only distinguish
 * absent from present. A check covers one part and not the parts within it; the strategies call
 * further checks for these.
 */
#include "server/resources/parts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

bool hfd_part_wrong_type(const char *kind, const char *key, const char *type, char *reason,
                         size_t max_reason) {
        assert(max_reason > 0);
        (void)snprintf(reason, max_reason,
                       "json: cannot unmarshal into Go struct field %s.%s of type %s", kind, key,
                       type);
        return false;
}

struct hf__json *hfd_part_get(struct hf__json *object, const char *key) {
        struct hf__json *value = hf__json_get(object, key);

        if (!value || !hf__json_is_null(value))
                return value;
        hf__json_drop(object, key);
        return NULL;
}

bool hfd_part_is_object(struct hf__json *object, const char *key, const char *kind, char *reason,
                        size_t max_reason) {
        const struct hf__json *value = hfd_part_get(object, key);

        if (!value || hf__json_is_object(value))
                return true;
        return hfd_part_wrong_type(kind, key, "object", reason, max_reason);
}

bool hfd_part_is_array(struct hf__json *object, const char *key, bool of_objects, const char *kind,
                       char *reason, size_t max_reason) {
        const struct hf__json *value = hfd_part_get(object, key);

        if (!value)
                return true;
        if (!hf__json_is_array(value))
                return hfd_part_wrong_type(kind, key, "array", reason, max_reason);
        for (const struct hf__json *m = hf__json_first(value); m; m = hf__json_next(m)) {
                bool fits = of_objects ? hf__json_is_object(m) : hf__json_is_string(m);
                if (!fits)
                        return hfd_part_wrong_type(kind, key,
                                                   of_objects ? "array of objects" : "[]string",
                                                   reason, max_reason);
        }
        return true;
}

/* The value is read again without hfd_part_get: hfd_part_is_object has removed a null. */
bool hfd_part_is_map(struct hf__json *object, const char *key, const char *kind, char *reason,
                     size_t max_reason) {
        if (!hfd_part_is_object(object, key, kind, reason, max_reason))
                return false;
        for (struct hf__json *m = hf__json_first(hf__json_get(object, key)); m;
             m = hf__json_next(m))
                if (!hf__json_is_string(m))
                        return hfd_part_wrong_type(kind, key, "string", reason, max_reason);
        return true;
}

bool hfd_part_list_has(const struct hf__json *list, const char *text) {
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                if (hf__json_is_string(m) && strcmp(hf__json_text(m), text) == 0)
                        return true;
        return false;
}
