/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The annotation of `kubectl apply` without --server-side. That command owns its fields as a
 * manager of updates, and `kubectl apply --server-side` is another manager. Without this file, a
 * user who changes from one to the other would get conflicts with the user's own earlier work.
 *
 * Invariant: any client can write the annotation, so a malformed one is no error: it has no field.
 */
#include "server/apply/last_applied.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/apply/compare.h"
#include "server/apply/owned_fields.h"

#define ANNOTATION      "kubectl.kubernetes.io/last-applied-configuration"
#define ANNOTATIONS_MAX (256 * 1024) /* bytes of all keys and values, as in Kubernetes */

static struct hf__json *find_annotation(const struct hf__json *object) {
        return hf__json_get(hf__json_path(object, "metadata.annotations"), ANNOTATION);
}

const struct hfd_fields *hfd_last_applied_fields(struct hf__arena *scratch,
                                                 const struct hfd_schema *schema,
                                                 const struct hf__json *live,
                                                 const char *api_version,
                                                 struct hf__json **ret_parsed) {
        const char *text = hf__json_text(find_annotation(live));
        const struct hfd_fields *fields = NULL;
        struct hf__strbuf reason = {0};
        struct hfd_changes changes;
        int r;

        *ret_parsed = NULL;
        if (!text || hf__json_parse(text, strlen(text), ret_parsed, NULL) != 0 ||
            !hf__json_is_object(*ret_parsed) ||
            !hf__json_has_text(*ret_parsed, "apiVersion", api_version))
                return NULL;
        r = hfd_owned_by_applier(scratch, schema, *ret_parsed, &fields, &reason);
        hf__strbuf_done(&reason);
        if (r != 0)
                return NULL;
        changes = hfd_compare(scratch, schema, *ret_parsed, live);
        fields = hfd_fields_subtract(scratch, fields, changes.modified);
        fields = hfd_fields_subtract(scratch, fields, changes.added);
        return hfd_fields_subtract(scratch, fields, changes.removed);
}

/* Whether the annotations with this text are too large. */
static bool is_too_large(const struct hf__json *annotations, size_t n_text) {
        size_t n = sizeof ANNOTATION - 1 + n_text;

        for (const struct hf__json *m = hf__json_first(annotations); m; m = hf__json_next(m))
                if (strcmp(hf__json_key(m), ANNOTATION) != 0 && hf__json_is_string(m))
                        n += strlen(hf__json_key(m)) + strlen(hf__json_text(m));
        return n > ANNOTATIONS_MAX;
}

int hfd_last_applied_update(struct hf__json *object, const struct hf__json *config) {
        struct hf__json *annotation = find_annotation(object), *annotations, *copy;
        const char *old = hf__json_text(annotation);
        struct hf__strbuf text = {0};
        int r = 0;

        if (!old || !*old)
                return 0;
        annotations = hf__json_path(object, "metadata.annotations");
        copy = hf__json_dup(config);
        if (!copy)
                return -ENOMEM;
        hf__json_drop(hf__json_path(copy, "metadata.annotations"), ANNOTATION);
        hf__json_print(copy, &text);
        hf__strbuf_putc(&text, '\n');
        hf__json_free(copy);
        if (text.error != 0)
                r = -ENOMEM;
        else if (is_too_large(annotations, text.n))
                hf__json_drop(annotations, ANNOTATION);
        else if (strcmp(old, text.data) != 0)
                r = hf__json_set_text(annotation, text.data);
        hf__strbuf_done(&text);
        return r;
}
