/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of strings inside a JSON object.
 *
 * Invariant: entries that are not strings never match and are kept, because a controller must not
 * remove data of other programs.
 */
#include "server/controllers/base/string_list.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"

static bool is_string_equal(const struct hf__json *value, const char *text) {
        return hf__json_is_string(value) && strcmp(hf__json_text(value), text) == 0;
}

bool hfd_string_list_has(const struct hf__json *object, const char *path, const char *text) {
        for (const struct hf__json *m = hf__json_first(hf__json_path(object, path)); m;
             m = hf__json_next(m))
                if (is_string_equal(m, text))
                        return true;
        return false;
}

int hfd_string_list_remove(struct hf__json *object, const char *path, const char *text) {
        struct hf__json *kept = hf__json_array();
        int r = kept ? 0 : -ENOMEM;

        for (const struct hf__json *m = hf__json_first(hf__json_path(object, path)); r == 0 && m;
             m = hf__json_next(m))
                if (!is_string_equal(m, text))
                        r = hf__json_append(kept, hf__json_dup(m));
        if (r == 0 && hf__json_count(kept) > 0)
                return hf__json_set(object, path, kept);
        if (r == 0)
                hf__json_remove(object, path);
        hf__json_free(kept);
        return r;
}
