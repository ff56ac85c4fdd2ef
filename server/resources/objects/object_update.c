/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses an object for an update, without its managedFields: these are often half of an object, and
 * their text shows whether the update leaves them as they are (server/apply/settled.h).
 *
 * Invariant: what stays text is valid JSON, printed as hfd_object_encode prints it. So whether it
 * was parsed in between makes no difference for what is stored.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_plain.h"
#include "base/utf8.h"
#include "client/json_span.h"
#include "server/resources/objects/object.h"
#include "server/resources/packed.h"

/* Finds the list in the bytes. False: there is none, or it must be parsed. */
static bool find_managers(const struct hfd_object *object, struct hf__span *ret_list) {
        static const char name[] = "managedFields";
        size_t begin = object->splice_at - (size_t)1; /* the brace of the metadata */
        const char *end = object->bytes->data + object->bytes->n;
        struct hf__span metadata = {object->bytes->data + begin, object->bytes->n - begin}, key;
        size_t at = 0;

        while (hf__span_next_key(metadata, &at, &key) > 0) {
                const char *value = metadata.data + at;
                if (key.n == sizeof name - 1 && memcmp(key.data, name, key.n) == 0) {
                        const char *value_end = hf__json_skip_plain_value(value, end);
                        if (!value_end || *value != '[')
                                return false;
                        *ret_list = (struct hf__span){value, (size_t)(value_end - value)};
                        return hf__utf8_valid(value, ret_list->n) &&
                               !memchr(value, 0x7f, ret_list->n); /* DEL is printed as an escape */
                }
                if (hf__span_value(metadata, &at, ret_list) != 0)
                        return false;
        }
        return false;
}

struct hf__json *hfd_object_parse_for_update(const struct hfd_object *object) {
        static const char placeholder[] = "null";
        const struct hf__buf *bytes = object->bytes;
        HF__CLEANUP(hf__json_cleanup) struct hf__json *json = NULL;
        struct hf__span list;

        assert(bytes);
        if (hfd_is_packed(bytes) || !find_managers(object, &list))
                return hfd_object_parse(object);
        /* 4 is the length of the placeholder. */
        size_t n_before = (size_t)(list.data - bytes->data), n = bytes->n - list.n + 4;
        char *text = malloc(n);
        if (!text)
                return NULL;
        memcpy(text, bytes->data, n_before);
        memcpy(text + n_before, placeholder, 4);
        memcpy(text + n_before + 4, list.data + list.n, n - n_before - 4);
        int r = hf__json_parse(text, n, &json, NULL);
        free(text);
        if (r != 0)
                return NULL;
        struct hf__json *managers = hf__json_path(json, "metadata.managedFields");
        /* Another program may have stored the same key twice, once with escapes. */
        if (!hf__json_is_null(managers))
                return hfd_object_parse(object);
        r = hf__json_set_raw(managers, list.data, list.n);
        return r == 0 ? HF__TAKE(json) : NULL;
}
