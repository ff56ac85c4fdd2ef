/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds, removes and finds a name in an object's list of finalizers.
 *
 * Invariant: no other finalizer, and no other member of the object, is changed. The name is added
 * only if the list lacks it, and removed wherever the list has it. A deleted object stays in the
 * store until its list is empty, so a finalizer that others have set must not get lost.
 */
#include <holdfast/finalizer.h>

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"

#define FINALIZERS "metadata.finalizers"

int hf_finalizer_check(const char *object, size_t n, const char *finalizer, bool *ret_has,
                       bool *ret_is_deleted) {
        struct hf__json *json;

        if (!object || !finalizer)
                return -EINVAL;
        int r = hf__json_parse(object, n, &json, NULL);
        if (r != 0)
                return r < 0 ? r : HF_E_INVALID;
        if (ret_has)
                *ret_has = hf__json_has_element(hf__json_path(json, FINALIZERS), finalizer);
        if (ret_is_deleted)
                *ret_is_deleted = hf__json_string(json, "metadata.deletionTimestamp") != NULL;
        hf__json_free(json);
        return 0;
}

static void remove_elements(struct hf__json *list, const char *finalizer) {
        for (struct hf__json *next, *m = hf__json_first(list); m; m = next) {
                next = hf__json_next(m);
                if (hf__json_is_string(m) && strcmp(hf__json_text(m), finalizer) == 0)
                        hf__json_free(hf__json_detach(list, m));
        }
}

/* The object of an informer always has metadata, so one without it is refused. A list that is null
 * is as good as none, as in Go. 0, -ENOMEM or HF_E_INVALID. */
static int set_finalizer(struct hf__json *object, const char *finalizer, bool present,
                         bool *ret_changed) {
        struct hf__json *metadata = hf__json_get(object, "metadata");
        struct hf__json *list = hf__json_path(object, FINALIZERS);

        if (!hf__json_is_object(metadata) ||
            (list && !hf__json_is_array(list) && !hf__json_is_null(list)))
                return HF_E_INVALID;
        *ret_changed = present != hf__json_has_element(list, finalizer);
        if (!*ret_changed)
                return 0;
        if (!present) {
                remove_elements(list, finalizer);
                return 0;
        }
        if (!hf__json_is_array(list)) {
                int r = hf__json_put(metadata, "finalizers", hf__json_array());
                if (r != 0)
                        return r;
                list = hf__json_path(object, FINALIZERS);
        }
        return hf__json_append_string(list, finalizer);
}

int hf_finalizer_set(const char *object, size_t n, const char *finalizer, bool present,
                     char **ret_object, bool *ret_changed) {
        struct hf__json *json;
        struct hf__strbuf text = {0};
        bool changed = false;

        if (!object || !finalizer || !ret_object)
                return -EINVAL;
        int r = hf__json_parse(object, n, &json, NULL);
        if (r != 0)
                return r < 0 ? r : HF_E_INVALID;
        r = set_finalizer(json, finalizer, present, &changed);
        if (r == 0) {
                hf__json_print(json, &text);
                r = text.error;
        }
        hf__json_free(json);
        if (r != 0) {
                hf__strbuf_done(&text);
                return r;
        }
        *ret_object = text.data;
        if (ret_changed)
                *ret_changed = changed;
        return 0;
}
