/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts objects between the versions of their kind. Invariants:
 *
 *  - Renaming members to the stored form and back gives the same members, perhaps in another order.
 *    Two facts make this so: no name of one form has another meaning in the other form (a unit test
 *    checks the tables), and the decoder has removed all unknown members before. The functions of
 *    a conversion (to_stored, from_stored) may lose what they lose in Kubernetes.
 *  - Wherever an object is stored or sent, an entry of managedFields has the names of fields of the
 *    entry's apiVersion. Only within a write it has those of the requested row.
 */
#include "server/resources/forms/conversion.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/objects/custom_object.h"
#include "server/resources/rows/resource_table.h"

const struct hfd_resource *hfd_resource_stored(const struct hfd_resource *row) {
        const struct hfd_conversion *conversion = row->conversion;

        if (row->custom)
                return &row->custom->kind->storage->row;
        if (!conversion)
                return row;
        row = hfd_resource_find(conversion->group, conversion->version, row->plural);
        assert(row && !row->conversion);
        return row;
}

void hfd_conversion_field(const struct hfd_resource *row, const char *stored, char *out,
                          size_t max_out) {
        const struct hfd_conversion *conversion = row->conversion;
        size_t n = strcspn(stored, ".");

        for (size_t i = 0; conversion && i < conversion->n_renamed; i++) {
                const struct hfd_renamed *renamed = &conversion->renamed[i];
                if (strlen(renamed->stored) != n || memcmp(renamed->stored, stored, n) != 0)
                        continue;
                (void)snprintf(out, max_out, "%s%s", renamed->name, stored + n);
                return;
        }
        (void)snprintf(out, max_out, "%s", stored);
}

/* ---- conversions by webhooks ---- */

bool hfd_conversion_is_elsewhere(const struct hfd_resource *row) {
        return row->custom && row->custom->kind->is_converted_elsewhere;
}

bool hfd_conversion_is_pending(const struct hfd_resource *row, const struct hfd_object *object) {
        return hfd_conversion_is_elsewhere(row) &&
               (!hfd_custom_same_form(object->resource, row) ||
                strcmp(object->resource->version, row->version) != 0);
}

const struct hfd_resource *hfd_conversion_row(const struct hfd_resource *row,
                                              const struct hfd_object *object) {
        const struct hfd_custom_version *version = NULL;

        if (!hfd_conversion_is_elsewhere(row))
                return row;
        if (hfd_custom_same_form(object->resource, row))
                version = hfd_custom_kind_version(row->custom->kind, object->resource->version);
        return version ? &version->row : hfd_resource_stored(row);
}

/* ---- renaming ---- */

/* Gives a member another key, and moves it to the end of the object. Does nothing if there is no
 * such member. 0 or -ENOMEM. */
static int rename_member(struct hf__json *object, const char *from, const char *to) {
        struct hf__json *member = hf__json_get(object, from);

        return member ? hf__json_add(object, to, hf__json_detach(object, member)) : 0;
}

static int rename_members(const struct hfd_conversion *conversion, struct hf__json *object,
                          bool to_stored) {
        int r = 0;

        if (to_stored && conversion->to_stored)
                r = conversion->to_stored(object);
        else if (!to_stored && conversion->from_stored)
                r = conversion->from_stored(object);
        for (size_t i = 0; r == 0 && i < conversion->n_renamed; i++) {
                const struct hfd_renamed *renamed = &conversion->renamed[i];
                r = to_stored ? rename_member(object, renamed->name, renamed->stored)
                              : rename_member(object, renamed->stored, renamed->name);
        }
        return r;
}

/* Renames members of a set of fields (FieldsV1), where "f:" precedes each name. 0 or -ENOMEM. */
static int rename_set(const struct hfd_renamed *all, size_t n, struct hf__json *fields,
                      bool to_stored) {
        char from[80], to[80]; /* the names in the tables are shorter */
        int r = 0;

        if (!hf__json_is_object(fields))
                return 0;
        for (size_t i = 0; r == 0 && i < n; i++) {
                (void)snprintf(from, sizeof from, "f:%s", to_stored ? all[i].name : all[i].stored);
                (void)snprintf(to, sizeof to, "f:%s", to_stored ? all[i].stored : all[i].name);
                if (!hf__json_get(fields, to)) /* a client may have sent both names */
                        r = rename_member(fields, from, to);
        }
        return r;
}

static int rename_fields(const struct hfd_conversion *conversion, struct hf__json *fields,
                         bool to_stored) {
        int r = rename_set(conversion->renamed, conversion->n_renamed, fields, to_stored);

        if (r == 0)
                r = rename_set(conversion->spec_fields, conversion->n_spec_fields,
                               hf__json_get(fields, "f:spec"), to_stored);
        return r == 0 ? rename_set(conversion->status_fields, conversion->n_status_fields,
                                   hf__json_get(fields, "f:status"), to_stored)
                      : r;
}

/* ---- the owners of fields ---- */

/* Finds another row of the same kind that has this version. NULL: there is none. */
static const struct hfd_resource *find_other_row(const struct hfd_resource *row,
                                                 const char *api_version) {
        const struct hfd_resource *stored = hfd_resource_stored(row);
        char text[HFD_API_VERSION_MAX];

        for (size_t i = 0; i < hfd_resources_count(); i++) {
                const struct hfd_resource *other = hfd_resource_at(i);

                if (other == row || hfd_resource_stored(other) != stored)
                        continue;
                hfd_resource_api_version(other, text);
                if (strcmp(text, api_version) == 0)
                        return other;
        }
        return NULL;
}

/* Translates a set of fields from the names of one row to those of another one. */
static int translate_fields(const struct hfd_resource *from, const struct hfd_resource *to,
                            struct hf__json *fields) {
        int r = from->conversion ? rename_fields(from->conversion, fields, true) : 0;

        return r == 0 && to->conversion ? rename_fields(to->conversion, fields, false) : r;
}

/*
 * Translates the entries of managedFields that other versions of the kind have written: to the
 * names of row, or back. Clients may send entries too, so a malformed entry is left alone. 0 or
 * -ENOMEM.
 */
static int translate_owners(const struct hfd_resource *row, const struct hf__json *object,
                            bool back) {
        const struct hf__json *list = hf__json_path(object, "metadata.managedFields");
        int r = 0;

        for (struct hf__json *m = hf__json_first(list); m && r == 0; m = hf__json_next(m)) {
                const char *version = hf__json_string(m, "apiVersion");
                const struct hfd_resource *other = version ? find_other_row(row, version) : NULL;
                struct hf__json *fields = hf__json_get(m, "fieldsV1");
                if (other && hf__json_is_object(fields))
                        r = back ? translate_fields(row, other, fields)
                                 : translate_fields(other, row, fields);
        }
        return r;
}

static bool find_versions(const struct hfd_resource *row) {
        for (size_t i = 0; i < hfd_resources_count(); i++) {
                const struct hfd_resource *other = hfd_resource_at(i);

                if (other->conversion && strcmp(other->plural, row->plural) == 0 &&
                    hfd_resource_stored(other) == row)
                        return true;
        }
        return false;
}

/* Whether a built-in kind has more than one version; most have not. False for a custom resource. */
static bool has_versions(const struct hfd_resource *row) {
        /* Each write asks more than once, and often a thread's next write is of the same kind. Only
         * rows of the table are kept here, and those are never freed. */
        static _Thread_local const struct hfd_resource *last;
        static _Thread_local bool last_has;

        if (row->conversion)
                return true;
        if (row->slot != 0)
                return false;
        if (row != last) {
                last_has = find_versions(row);
                last = row;
        }
        return last_has;
}

/* ---- objects ---- */

/* Gives an object of a custom resource the kind and apiVersion of the row. 0 or -ENOMEM. */
static int name_type(const struct hfd_resource *row, struct hf__json *json) {
        char version[HFD_API_VERSION_MAX];
        int r = hf__json_put_string(json, "kind", row->kind);

        hfd_resource_api_version(row, version);
        return r == 0 ? hf__json_put_string(json, "apiVersion", version) : r;
}

/*
 * A reference to an object of a custom resource, in the form of the storage row or, if a webhook
 * converts the kind, in that of the object's own version. It is a new object if the given one still
 * has the form of an earlier definition. NULL = out of memory, or the object is not valid.
 */
static struct hfd_object *form_custom(const struct hfd_resource *stored,
                                      struct hfd_object *object) {
        assert(hfd_resource_same(object->resource, stored));
        return hfd_custom_same_form(object->resource, stored)
                       ? hfd_object_ref(object)
                       : hfd_custom_object_reform(stored, object);
}

static struct hfd_object *convert_custom(const struct hfd_resource *row,
                                         struct hfd_object *object) {
        const struct hfd_resource *stored = hfd_resource_stored(row);
        struct hfd_object *formed = form_custom(stored, object), *converted = formed;

        if (formed && stored != row && !hfd_conversion_is_elsewhere(row)) {
                converted = hfd_object_as(row, formed);
                hfd_object_unref(formed);
        }
        return converted;
}

static struct hf__json *parse_object(const struct hfd_resource *row,
                                     const struct hfd_object *object) {
        struct hfd_object *formed;
        struct hf__json *json;

        if (!row->custom || hfd_custom_same_form(object->resource, hfd_resource_stored(row)))
                return hfd_object_parse(object);
        formed = hfd_custom_object_reform(hfd_resource_stored(row), object);
        json = formed ? hfd_object_parse(formed) : NULL;
        hfd_object_unref(formed);
        return json;
}

/* Encodes an object of a custom resource. If another version stores it, the object is pruned, and
 * gets its defaults, by that version's schema, too. But if a webhook converts the kind, the object
 * keeps the version of row. NULL = out of memory. */
static struct hf__buf *encode_custom(const struct hfd_resource *row, const struct hf__json *json) {
        const struct hfd_resource *stored = hfd_resource_stored(row);
        if (hfd_conversion_is_elsewhere(row))
                return hfd_object_encode(row, json);
        struct hf__buf *bytes = hfd_object_encode(stored, json), *formed;

        if (!bytes || stored == row)
                return bytes;
        formed = hfd_custom_object_bytes(stored, bytes);
        hf__buf_unref(bytes);
        return formed;
}

struct hf__json *hfd_conversion_parse(const struct hfd_resource *row,
                                      const struct hfd_object *object) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *json = parse_object(row, object);
        char version[HFD_API_VERSION_MAX];
        int r = 0;

        if (json && row->custom)
                return name_type(row, json) == 0 ? HF__TAKE(json) : NULL;
        assert(object->resource == hfd_resource_stored(row));
        if (!json || !has_versions(row))
                return HF__TAKE(json);
        hfd_resource_api_version(row, version);
        if (row->conversion)
                r = rename_members(row->conversion, json, false);
        if (r == 0)
                r = hf__json_put_string(json, "apiVersion", version);
        if (r == 0)
                r = translate_owners(row, json, false);
        return r == 0 ? HF__TAKE(json) : NULL;
}

struct hf__json *hfd_conversion_parse_for_update(const struct hfd_resource *row,
                                                 const struct hfd_object *object) {
        return row->custom || has_versions(row) ? hfd_conversion_parse(row, object)
                                                : hfd_object_parse_for_update(object);
}

struct hf__buf *hfd_conversion_encode(const struct hfd_resource *row, const struct hf__json *json) {
        struct hf__json *stored;
        struct hf__buf *bytes = NULL;
        int r = 0;

        if (row->custom)
                return encode_custom(row, json);
        if (!has_versions(row))
                return hfd_object_encode(row, json);
        stored = hf__json_dup(json);
        if (!stored)
                return NULL;
        r = translate_owners(row, stored, true);
        if (r == 0 && row->conversion)
                r = rename_members(row->conversion, stored, true);
        if (r == 0)
                bytes = hfd_object_encode(hfd_resource_stored(row), stored);
        hf__json_free(stored);
        return bytes;
}

struct hfd_object *hfd_conversion_object(const struct hfd_resource *row,
                                         struct hfd_object *object) {
        struct hfd_object *converted = NULL;
        struct hf__buf *bytes = NULL;
        struct hf__json *json;

        if (object && row->custom)
                return convert_custom(row, object);
        if (!object)
                return NULL;
        if (!row->conversion)
                return hfd_object_plain(object);
        assert(object->resource == hfd_resource_stored(row));
        /* managedFields stays as it is: outside a write, entries have the names of their version.
         */
        json = hfd_object_parse(object);
        if (json && rename_members(row->conversion, json, false) == 0)
                bytes = hfd_object_encode(row, json);
        if (bytes)
                converted = hfd_object_new(row, object->path, object->revision, bytes);
        hf__buf_unref(bytes);
        hf__json_free(json);
        return converted;
}
