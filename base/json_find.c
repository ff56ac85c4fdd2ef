/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds JSON values by their text, and appends one that is missing. The functions are declared in
 * json.h.
 *
 * Invariant: hf__json_find_or_append creates a list that is missing or null, but never replaces a
 * value of another type, because the value is a client's. hf__json_add_element does replace one,
 * because its callers have decoded the object by its schema, or have made it themselves.
 */
#include "base/json.h"

#include <errno.h>
#include <string.h>

bool hf__json_has_text(const struct hf__json *object, const char *path, const char *text) {
        const char *found = hf__json_string(object, path);

        return found && strcmp(found, text) == 0;
}

struct hf__json *hf__json_element_with(const struct hf__json *array, const char *key,
                                       const char *text) {
        struct hf__json *element = hf__json_first(array);

        while (element && !hf__json_has_text(element, key, text))
                element = hf__json_next(element);
        return element;
}

int hf__json_add_element(struct hf__json *object, const char *path, const char *text) {
        struct hf__json *list = hf__json_path(object, path);

        if (hf__json_has_element(list, text))
                return 0;
        if (!hf__json_is_array(list)) {
                int r = hf__json_set(object, path, hf__json_array());
                if (r != 0)
                        return r;
                list = hf__json_path(object, path);
        }
        return hf__json_append_string(list, text);
}

int hf__json_find_or_append(struct hf__json *object, const char *path, const char *key,
                            const char *text, struct hf__json **ret_element) {
        struct hf__json *list = hf__json_path(object, path), *element;

        if (!list || hf__json_is_null(list)) {
                int r = hf__json_set(object, path, hf__json_array());
                if (r != 0)
                        return r;
                list = hf__json_path(object, path);
        }
        if (!hf__json_is_array(list))
                return -EINVAL;
        element = hf__json_first(list);
        while (element && !hf__json_has_text(element, key, text))
                element = hf__json_next(element);
        if (!element) {
                element = hf__json_object();
                int r = hf__json_append(list, element);
                if (r != 0)
                        return r;
        }
        *ret_element = element;
        return 0;
}
