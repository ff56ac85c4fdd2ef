/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the directives of a strategic merge patch, and copies values without them.
 *
 * Invariant: no copy contains a directive, because a directive in a stored object would be content
 * that no client expects. The recursion is as deep as the patch, whose depth the parser limits.
 */
#include "server/patch/directives.h"

#include <stddef.h>
#include <string.h>

#include "base/json.h"

const char *hfd_directive_get(const struct hf__json *object) {
        return hf__json_text(hf__json_get(object, HFD_DIRECTIVE));
}

bool hfd_directive_marks(const struct hf__json *value) {
        return hf__json_get(value, HFD_DIRECTIVE) != NULL;
}

const char *hfd_directive_skip(const char *text, const char *prefix) {
        size_t n = strlen(prefix);

        return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

static bool is_directive(const char *key) {
        return strcmp(key, HFD_DIRECTIVE) == 0 || strcmp(key, HFD_RETAIN_KEYS) == 0 ||
               hfd_directive_skip(key, HFD_SET_ORDER) ||
               hfd_directive_skip(key, HFD_DELETE_SCALARS);
}

/*
 * Whether the copy of a new value omits m: a directive, or a value that has $patch, because there
 * is nothing that it could delete or replace; or a null in an object, which would remove a member
 * that a new value does not have.
 */
static bool is_omitted(const struct hf__json *m, bool in_array) {
        if (hfd_directive_marks(m))
                return true;
        return !in_array && (is_directive(hf__json_key(m)) || hf__json_is_null(m));
}

struct hf__json *hfd_directives_copy_without(const struct hf__json *json) {
        bool array = hf__json_is_array(json);
        struct hf__json *copy;
        int r = 0;

        if (!array && !hf__json_is_object(json))
                return hf__json_dup(json);
        copy = array ? hf__json_array() : hf__json_object();
        if (!copy)
                return NULL;
        for (const struct hf__json *m = hf__json_first(json); m && r == 0; m = hf__json_next(m)) {
                if (is_omitted(m, array))
                        continue;
                struct hf__json *inner = hfd_directives_copy_without(m);
                r = array ? hf__json_append(copy, inner)
                          : hf__json_add(copy, hf__json_key(m), inner);
        }
        return r != 0 ? hf__json_free(copy) : copy;
}
