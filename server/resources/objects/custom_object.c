/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of custom resources in the form of their definition (custom_object.h).
 *
 * Invariants: bytes that have the form already are shared and not copied, because nearly all of
 * them have it. If a webhook converts the kind, an object keeps the version in which it is stored,
 * as long as the kind has that version: only the webhook can give it another one.
 */
#include "server/resources/objects/custom_object.h"

#include <assert.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/custom/schema/custom_schema.h"
#include "server/schema/common.h"

static const struct hfd_schema_field meta_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
};
const struct hfd_schema hfd_custom_meta_schema = {HFD_STRUCT(NULL, meta_fields),
                                                  .preserve_unknown = true};

/* The row whose form the object gets: that of the object's own version, if a webhook converts the
 * kind and the kind still has this version; otherwise row. */
static const struct hfd_resource *row_of(const struct hfd_resource *row,
                                         const struct hf__json *json) {
        const struct hfd_custom_kind *kind = row->custom->kind;
        const char *version = hf__json_string(json, "apiVersion");
        const struct hfd_custom_version *found = NULL;

        if (kind->is_converted_elsewhere && version)
                found = hfd_custom_kind_api_version(kind, version);
        return found ? &found->row : row;
}

static bool is_formed(const struct hfd_resource *row, const struct hf__buf *bytes) {
        return hfd_object_has_head(row, bytes) &&
               hfd_custom_schema_is_formed(row->custom->schema, bytes->data, bytes->n);
}

/* Whether the bytes already have the form that row_of would choose. *row becomes the row of that
 * form. */
static bool find_form(const struct hfd_resource **row, const struct hf__buf *bytes) {
        const struct hfd_custom_kind *kind = (*row)->custom->kind;

        if (!kind->is_converted_elsewhere)
                return is_formed(*row, bytes);
        for (size_t i = 0; i < kind->n_versions; i++)
                if (is_formed(&kind->versions[i].row, bytes)) {
                        *row = &kind->versions[i].row;
                        return true;
                }
        return false;
}

/* As hfd_custom_object_bytes. *row: a storage row; becomes the row whose form the bytes get. */
static struct hf__buf *form_bytes(const struct hfd_resource **row, struct hf__buf *bytes) {
        struct hf__json *json = NULL;
        struct hf__buf *formed = NULL;

        assert((*row)->custom);
        if (find_form(row, bytes))
                return hf__buf_ref(bytes);
        int r = hf__json_parse(bytes->data, bytes->n, &json, NULL);
        if (r == 0 && hf__json_is_object(json)) {
                *row = row_of(*row, json);
                r = hfd_custom_schema_prune((*row)->custom->schema, json, NULL);
        }
        if (r == 0 && hf__json_is_object(json))
                r = hfd_custom_schema_default((*row)->custom->schema, json);
        /* HF_E_TOO_LARGE: the defaults are beyond their limit (custom_schema.h). The object is
         * served without the rest of them. */
        if ((r == 0 || r == HF_E_TOO_LARGE) && hf__json_is_object(json))
                formed = hfd_object_encode(*row, json);
        hf__json_free(json);
        return formed;
}

struct hf__buf *hfd_custom_object_bytes(const struct hfd_resource *row, struct hf__buf *bytes) {
        return form_bytes(&row, bytes);
}

struct hfd_object *hfd_custom_object_new(const struct hfd_resource *row, const char *path,
                                         uint64_t revision, struct hf__buf *stored) {
        struct hf__buf *bytes = form_bytes(&row, stored);
        struct hfd_object *object =
                bytes ? hfd_object_new_formed(row, path, revision, bytes, stored) : NULL;

        hf__buf_unref(bytes);
        return object;
}

struct hfd_object *hfd_custom_object_reform(const struct hfd_resource *row,
                                            const struct hfd_object *object) {
        struct hf__buf *origin = hfd_object_origin(object), *bytes = form_bytes(&row, origin);
        struct hfd_object *formed = NULL;

        /* If the object keeps no origin, `origin` is its served bytes. If these have the new form
         * already, apart from the resourceVersion, the copy needs no origin either. */
        if (bytes && !object->has_origin && hfd_object_has_bytes(object, bytes))
                formed = hfd_object_new(row, object->path, object->revision, bytes);
        else if (bytes)
                formed = hfd_object_new_formed(row, object->path, object->revision, bytes, origin);
        if (formed)
                formed->stale = object->stale;
        hf__buf_unref(bytes);
        return formed;
}

struct hfd_object *hfd_custom_object_converted(const struct hfd_resource *row,
                                               const struct hfd_object *source,
                                               struct hf__json *json) {
        struct hfd_object *object = NULL;
        struct hf__buf *bytes = NULL;

        if (hfd_custom_schema_prune(row->custom->schema, json, NULL) == 0)
                bytes = hfd_object_encode(row, json);
        if (bytes)
                object = hfd_object_new(row, source->path, source->revision, bytes);
        hf__buf_unref(bytes);
        return object;
}
