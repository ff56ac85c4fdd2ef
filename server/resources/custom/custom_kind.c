/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the kinds of custom resources from their CustomResourceDefinitions. Invariants:
 *
 *  - A kind is freed with its last reference, on any thread. Its strings are its own or in its two
 *    JSON values, so nothing of the parsed definition is used after hfd_custom_kind_new.
 *    Only group, plural and storage are those of the slot's permanent row (custom_table.h).
 *  - Names except the plural are those that the controller has accepted (status.acceptedNames),
 *    and not those of spec.names.
 *  - Group, version, plural, singular and the kinds of objects and of lists have the syntax that
 *    the rules of definitions demand. They are checked here once more, because a definition in
 *    the store may have any content, and discovery and the heads of objects (objects/object.h)
 *    and lists contain them without escapes; the head of an object has a buffer of fixed size
 *    for them.
 */
#include "server/resources/custom/custom_kind.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "server/resources/custom/custom_version_order.h"
#include "server/resources/custom/rules/custom_rules.h"
#include "server/resources/custom/schema/custom_schema.h"
#include "server/resources/packed.h"
#include "server/resources/validation/names.h"

_Static_assert(HFD_CUSTOM_HASH == 32, "a SHA-256");

/* ---- the content of a definition ---- */

/* Whether the condition is there and True. */
static bool has_condition(const struct hf__json *definition, const char *type) {
        const struct hf__json *list = hf__json_path(definition, "status.conditions");

        for (const struct hf__json *c = hf__json_first(list); c; c = hf__json_next(c))
                if (hf__json_has_text(c, "type", type))
                        return hf__json_has_text(c, "status", "True");
        return false;
}

bool hfd_custom_kind_is_established(const struct hf__json *definition) {
        return has_condition(definition, "Established");
}

static bool is_terminating(const struct hf__json *definition) {
        return has_condition(definition, "Terminating") ||
               hf__json_string(definition, "metadata.deletionTimestamp") != NULL;
}

static int hash_of(const struct hf__strbuf *s, unsigned char ret_hash[HFD_CUSTOM_HASH]) {
        if (s->error != 0)
                return -ENOMEM;
        hf__sha256(s->data, s->n, ret_hash);
        return 0;
}

/* Appends a part as JSON. The line feed before it keeps the parts apart, because the JSON contains
 * no line feed: so no two definitions have the same text by chance. */
static void put_part(struct hf__strbuf *s, const struct hf__json *json, const char *path) {
        const struct hf__json *part = hf__json_path(json, path);

        hf__strbuf_putc(s, '\n');
        if (part)
                hf__json_print(part, s);
}

/* The uid is included, because a definition that was deleted and created again is another kind,
 * whose old objects are gone. The status is left out, except the names: a change of a condition
 * does not change the kind. */
int hfd_custom_kind_hash(const struct hf__json *definition,
                         unsigned char ret_hash[HFD_CUSTOM_HASH]) {
        struct hf__strbuf s = {0};

        put_part(&s, definition, "metadata.uid");
        put_part(&s, definition, "spec");
        put_part(&s, definition, "status.acceptedNames");
        int r = hash_of(&s, ret_hash);
        hf__strbuf_done(&s);
        return r;
}

/* ---- names ---- */

/* Whether the text is a kind: a DNS-1035 label, except that it may have capitals. */
static bool is_kind_name(const char *text) {
        char lower[HFD_DNS_LABEL_MAX + 2]; /* a longer text is cut, and is still too long */
        size_t n = 0;

        for (; text[n] && n + 1 < sizeof lower; n++)
                lower[n] = (char)(text[n] >= 'A' && text[n] <= 'Z' ? text[n] + 32 : text[n]);
        lower[n] = '\0';
        return hfd_is_dns1035_label(lower);
}

/* ---- one version ---- */

/* The column borrows its texts from kind->spec. A definition in the store may lack members that the
 * rules require, so they are checked. 0 or HF_E_INVALID. */
static int add_column(struct hfd_custom_version *version, const struct hf__json *json) {
        struct hfd_column *column = &version->columns[version->n_columns];
        const char *name = hf__json_string(json, "name"), *type = hf__json_string(json, "type"),
                   *path = hf__json_string(json, "jsonPath"),
                   *format = hf__json_string(json, "format");
        int64_t priority = 0;

        if (!name || !type || !path)
                return HF_E_INVALID;
        (void)hf__json_i64(json, "priority", &priority);
        *column = (struct hfd_column){.name = name,
                                      .type = type,
                                      .format = format ? format : "",
                                      .path = path,
                                      .wide = priority > 0,
                                      .description = hf__json_string(json, "description"),
                                      .priority = (int)priority};
        version->n_columns++;
        return 0;
}

/* The columns: the name, then those of the definition or, if it has none, the age. */
static int make_columns(struct hfd_custom_version *version, const struct hf__json *json) {
        static const struct hfd_column name = {.name = "Name",
                                               .type = "string",
                                               .format = "name",
                                               .path = ".metadata.name",
                                               .description = "Name"},
                                       age = {.name = "Age",
                                              .type = "date",
                                              .format = "",
                                              .path = ".metadata.creationTimestamp",
                                              .description = "Age"};
        const struct hf__json *list = hf__json_get(json, "additionalPrinterColumns");
        size_t n = hf__json_count(list);
        int r = 0;

        version->columns = calloc(n + 2, sizeof *version->columns); /* with the name and the age */
        if (!version->columns)
                return -ENOMEM;
        version->columns[version->n_columns++] = name;
        if (n == 0)
                version->columns[version->n_columns++] = age;
        for (const struct hf__json *c = hf__json_first(list); c && r == 0; c = hf__json_next(c))
                r = add_column(version, c);
        return r;
}

/* The name of the root in OpenAPI, "com.example.v1.Gadget": the parts of the group in reverse
 * order. */
static void put_definition_name(struct hf__strbuf *s, const struct hfd_resource *row) {
        size_t n = strlen(row->group);

        for (size_t i = n; i-- > 0;)
                if (i == 0 || row->group[i - 1] == '.') {
                        hf__strbuf_add(s, row->group + i, n - i);
                        hf__strbuf_putc(s, '.');
                        n = i > 0 ? i - 1 : 0;
                }
        hf__strbuf_printf(s, "%s.%s", row->version, row->kind);
}

/* Compiles the schema and the rules. json: the version in the definition. preserve: the kind keeps
 * unknown fields everywhere, as old definitions may want; then it has rules, but no schema. 0 or
 * -ENOMEM. */
static int make_schema(struct hfd_custom_version *version, const struct hf__json *json,
                       bool preserve) {
        const struct hf__json *props = hf__json_path(json, "schema.openAPIV3Schema");
        struct hf__strbuf name = {0};

        put_definition_name(&name, &version->row);
        int r = name.error;
        if (r == 0)
                r = hfd_custom_schema_new_named(preserve ? NULL : props, name.data,
                                                &version->schema);
        /* A stored definition may be older than the rules of structural schemas, or was written by
         * another program. If its schema cannot be compiled, the version is served as if it had
         * none, but with the rules in it. */
        version->lacks_schema = r == HF_E_INVALID;
        if (r == HF_E_INVALID)
                r = hfd_custom_schema_new_named(NULL, name.data, &version->schema);
        hf__strbuf_done(&name);
        if (r == 0 && props)
                r = hfd_custom_rules_new(props, "", NULL, NULL, &version->rules);
        return r;
}

/* Makes the warning that each response of a deprecated version has. 0 or -ENOMEM. */
static int make_warning(struct hfd_custom_version *version, const struct hf__json *json) {
        const char *own = hf__json_string(json, "deprecationWarning");
        struct hf__strbuf s = {0};

        if (!hf__json_bool(json, "deprecated", false))
                return 0;
        if (own)
                hf__strbuf_puts(&s, own);
        else
                hf__strbuf_printf(&s, "%s/%s %s is deprecated", version->row.group,
                                  version->row.version, version->row.kind);
        version->warning = s.error == 0 ? strdup(s.data) : NULL;
        hf__strbuf_done(&s);
        return version->warning ? 0 : -ENOMEM;
}

/* The path of a member, without the dot that JSON paths begin with: the paths of scales are those
 * of hf__json_path. NULL: there is none. */
static const char *member_path(const struct hf__json *scale, const char *key) {
        const char *path = hf__json_string(scale, key);

        return path && path[0] == '.' ? path + 1 : NULL;
}

/* A scale without one of the two required paths does not work, so it is not served. */
static void set_subresources(struct hfd_custom_version *version, const struct hf__json *json) {
        const struct hf__json *sub = hf__json_get(json, "subresources"),
                              *scale = hf__json_get(sub, "scale");

        if (hf__json_is_object(hf__json_get(sub, "status")))
                version->row.subresources |= HFD_SUB_STATUS;
        version->scale =
                (struct hfd_scale_paths){.replicas = member_path(scale, "specReplicasPath"),
                                         .current_replicas =
                                                 member_path(scale, "statusReplicasPath"),
                                         .selector = member_path(scale, "labelSelectorPath")};
        if (!version->scale.replicas || !version->scale.current_replicas)
                return;
        version->row.subresources |= HFD_SUB_SCALE;
        version->row.scale = &version->scale;
}

/* A version in the definition, and in the kind's copy, which has no schema. */
struct version {
        const struct hf__json *whole, *copy;
};

/* Adds a version to the kind. of: the version in the definition. 0, -ENOMEM or HF_E_INVALID. After
 * a failure the caller frees the kind, and with it what was made of the version. */
static int make_version(struct hfd_custom_kind *kind, const struct hfd_resource *slot,
                        const struct version *of) {
        const struct hf__json *json = of->copy;
        struct hfd_custom_version *version = &kind->versions[kind->n_versions];
        const char *name = hf__json_string(json, "name"),
                   *scope = hf__json_string(kind->spec, "scope"),
                   *singular = hf__json_string(kind->names, "singular"),
                   *kind_name = hf__json_string(kind->names, "kind"),
                   *list_kind = hf__json_string(kind->names, "listKind");

        if (!name || !hfd_is_dns1035_label(name) || !kind_name || !is_kind_name(kind_name) ||
            (list_kind && *list_kind && !is_kind_name(list_kind)) ||
            (singular && *singular && !hfd_is_dns1035_label(singular)))
                return HF_E_INVALID;
        version->kind = kind;
        version->served = hf__json_bool(json, "served", false);
        version->row =
                (struct hfd_resource){.group = slot->group,
                                      .version = name,
                                      .plural = slot->plural,
                                      .singular = singular ? singular : "",
                                      .kind = kind_name,
                                      .list_kind = list_kind && *list_kind ? list_kind : NULL,
                                      .storage = slot->storage,
                                      .namespaced = scope && strcmp(scope, "Namespaced") == 0,
                                      .has_generation = true,
                                      .no_strategic_patch = true,
                                      .custom = version,
                                      .slot = slot->slot};
        kind->n_versions++; /* from here on, the kind frees what the version owns */
        version->selectable = hf__json_get(json, "selectableFields");
        set_subresources(version, json);
        if (hf__json_bool(json, "storage", false))
                kind->storage = version;
        int r = make_columns(version, json);
        if (r == 0)
                r = make_schema(version, of->whole,
                                hf__json_bool(kind->spec, "preserveUnknownFields", false));
        if (r == 0)
                r = make_warning(version, json);
        if (r == 0)
                version->row.schema = hfd_custom_schema_fields(version->schema);
        return r;
}

/* ---- the kind ---- */

/* By priority: clients prefer the first version. */
static int compare_versions(const void *a, const void *b) {
        const struct version *x = a, *y = b;
        const char *one = hf__json_string(x->copy, "name"),
                   *other = hf__json_string(y->copy, "name");

        return hfd_version_order(one ? one : "", other ? other : "");
}

/* spec: of the definition, with n versions. A version that is neither served nor stored gets no
 * row, unless a webhook converts: then objects of it may be in the cache. */
static int make_versions(struct hfd_custom_kind *kind, const struct hf__json *spec,
                         const struct hfd_resource *slot, size_t n) {
        struct version *sorted = malloc(n * sizeof *sorted);
        const struct hf__json *whole = hf__json_first(hf__json_get(spec, "versions")),
                              *copy = hf__json_first(hf__json_get(kind->spec, "versions"));
        int r = 0;

        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                sorted[i] = (struct version){whole, copy};
                whole = hf__json_next(whole);
                copy = hf__json_next(copy);
        }
        qsort(sorted, n, sizeof *sorted, compare_versions);
        for (size_t i = 0; i < n && r == 0; i++)
                if (kind->is_converted_elsewhere ||
                    hf__json_bool(sorted[i].copy, "served", false) ||
                    hf__json_bool(sorted[i].copy, "storage", false))
                        r = make_version(kind, slot, &sorted[i]);
        free(sorted);
        return r == 0 && !kind->storage ? HF_E_INVALID : r;
}

static int compare_paths(const void *a, const void *b) {
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Collects the different paths of the selectable fields of all versions. A path is passed over if
 * it does not begin with a dot, or is only a dot. 0 or -ENOMEM. */
static int set_selectable(struct hfd_custom_kind *kind) {
        size_t n_all = 0, n = 0;

        for (size_t v = 0; v < kind->n_versions; v++)
                n_all += hf__json_count(kind->versions[v].selectable);
        const char **paths = malloc((n_all + 1) * sizeof *paths); /* + 1: never of 0 bytes */
        if (!paths)
                return -ENOMEM;
        for (size_t v = 0; v < kind->n_versions; v++)
                for (const struct hf__json *i = hf__json_first(kind->versions[v].selectable); i;
                     i = hf__json_next(i)) {
                        const char *path = member_path(i, "jsonPath");
                        if (path && *path)
                                paths[n++] = hf__json_string(i, "jsonPath");
                }
        qsort((void *)paths, n, sizeof *paths, compare_paths);
        kind->selectable = paths;
        for (size_t i = 0; i < n; i++)
                if (i == 0 || strcmp(paths[i], paths[kind->n_selectable - 1]) != 0)
                        paths[kind->n_selectable++] = paths[i];
        return 0;
}

/* Hashes the parts of the definition that objects in memory depend on: their bytes, and the fields
 * that selectors can read. preserveUnknownFields is among the parts, because no schema prunes the
 * objects if it is set. */
static int hash_form(struct hfd_custom_kind *kind, const struct hf__json *spec) {
        const struct hfd_custom_version *stored = kind->storage;
        struct hf__strbuf s = {0};

        hf__strbuf_printf(&s, "%s\n%s\n%d\n%d\n", stored->row.kind, stored->row.version,
                          kind->is_converted_elsewhere,
                          hf__json_bool(spec, "preserveUnknownFields", false));
        /* The fields of all versions count: an object keeps the values that selectors of any
         * version can read. */
        for (const struct hf__json *v = hf__json_first(hf__json_get(spec, "versions")); v;
             v = hf__json_next(v)) {
                if (kind->is_converted_elsewhere)
                        put_part(&s, v, "name");
                if (kind->is_converted_elsewhere ||
                    hf__json_has_text(v, "name", stored->row.version))
                        put_part(&s, v, "schema");
                put_part(&s, v, "selectableFields");
        }
        int r = hash_of(&s, kind->form);
        hf__strbuf_done(&s);
        return r;
}

/* A copy of the object without the member left_out. NULL = out of memory. */
static struct hf__json *copy_without(const struct hf__json *object, const char *left_out) {
        struct hf__json *copy = hf__json_object();
        int r = copy ? 0 : -ENOMEM;

        for (const struct hf__json *m = hf__json_first(object); m && r == 0; m = hf__json_next(m))
                if (strcmp(hf__json_key(m), left_out) != 0)
                        r = hf__json_add(copy, hf__json_key(m), hf__json_dup(m));
        return r == 0 ? copy : hf__json_free(copy);
}

/*
 * A copy of the spec without the schemas: the kind has them compiled, and `bytes` has their JSON.
 * They are left out while the rest is copied: if they were removed later, what remains of the large
 * copy would keep the allocator from giving its pages back. NULL = out of memory.
 */
static struct hf__json *copy_spec(const struct hf__json *spec) {
        struct hf__json *copy = copy_without(spec, "versions"), *versions = hf__json_array();
        int r = copy && versions ? 0 : -ENOMEM;

        for (const struct hf__json *v = hf__json_first(hf__json_get(spec, "versions")); v && r == 0;
             v = hf__json_next(v))
                r = hf__json_append(versions, copy_without(v, "schema"));
        if (r == 0) {
                r = hf__json_add(copy, "versions", versions);
                versions = NULL;
        }
        hf__json_free(versions);
        return r == 0 ? copy : hf__json_free(copy);
}

HF__CLEANUP_DEFINE(kind_cleanup, struct hfd_custom_kind *, hfd_custom_kind_unref)

int hfd_custom_kind_new(const struct hf__json *definition, struct hf__buf *bytes,
                        const struct hfd_resource *slot, uint64_t revision,
                        struct hfd_custom_kind **ret_kind) {
        const struct hf__json *spec = hf__json_get(definition, "spec"),
                              *names = hf__json_path(definition, "status.acceptedNames");
        size_t n = hf__json_count(hf__json_get(spec, "versions"));

        if (!hf__json_is_object(spec) || !hf__json_is_object(names) || n == 0 ||
            !hfd_is_dns_subdomain(slot->group) || !hfd_is_dns1035_label(slot->plural))
                return HF_E_INVALID;
        HF__CLEANUP(hf__free_cleanup)
        struct hfd_custom_kind *memory = calloc(1, sizeof *memory + n * sizeof memory->versions[0]);
        if (!memory || hf__mutex_init(&memory->mu) != 0)
                return -ENOMEM;
        atomic_init(&memory->refs, 1);
        HF__CLEANUP(kind_cleanup) struct hfd_custom_kind *kind = HF__TAKE(memory);
        kind->bytes = hf__buf_ref(bytes);
        kind->is_converted_elsewhere = hf__json_has_text(spec, "conversion.strategy", "Webhook");
        atomic_init(&kind->terminating, is_terminating(definition));
        atomic_init(&kind->revision, revision);
        kind->spec = copy_spec(spec);
        kind->names = hf__json_dup(names);
        if (!kind->spec || !kind->names)
                return -ENOMEM;
        int r = make_versions(kind, spec, slot, n);
        if (r == 0)
                r = set_selectable(kind);
        if (r != 0)
                return r;
        r = hash_form(kind, spec);
        if (r != 0)
                return r;
        r = hfd_custom_kind_hash(definition, kind->hash);
        if (r != 0)
                return r;
        *ret_kind = HF__TAKE(kind);
        return 0;
}

void hfd_custom_kind_update(struct hfd_custom_kind *kind, const struct hf__json *definition,
                            struct hf__buf *bytes, uint64_t revision) {
        assert(kind->n_versions > 0 && bytes);
        hf__buf_ref(bytes);
        pthread_mutex_lock(&kind->mu);
        struct hf__buf *old = kind->bytes;
        kind->bytes = bytes;
        pthread_mutex_unlock(&kind->mu);
        hf__buf_unref(old);
        /* In this order, so that a thread that reads the new revision also sees the new mark. */
        atomic_store(&kind->terminating, is_terminating(definition));
        atomic_store(&kind->revision, revision);
}

/* Searches one version after another: nearly every kind has few. */
const struct hfd_custom_version *hfd_custom_kind_version(const struct hfd_custom_kind *kind,
                                                         const char *name) {
        for (size_t i = 0; i < kind->n_versions; i++)
                if (strcmp(kind->versions[i].row.version, name) == 0)
                        return &kind->versions[i];
        return NULL;
}

const struct hfd_custom_version *hfd_custom_kind_api_version(const struct hfd_custom_kind *kind,
                                                             const char *api_version) {
        const char *slash = strrchr(api_version, '/'), *group = kind->storage->row.group;
        size_t n = slash ? (size_t)(slash - api_version) : 0;

        if (!slash || strlen(group) != n || memcmp(group, api_version, n) != 0)
                return NULL;
        return hfd_custom_kind_version(kind, slash + 1);
}

int hfd_custom_version_props(const struct hfd_custom_version *version,
                             struct hf__json **ret_props) {
        assert(version->kind);
        struct hfd_custom_kind *kind = version->kind;
        HF__CLEANUP(hf__json_cleanup) struct hf__json *definition = NULL;
        struct hf__json *schema = NULL;

        *ret_props = NULL;
        pthread_mutex_lock(&kind->mu);
        HF__CLEANUP(hf__buf_cleanup) struct hf__buf *kept = hf__buf_ref(kind->bytes);
        pthread_mutex_unlock(&kind->mu);
        HF__CLEANUP(hf__buf_cleanup) struct hf__buf *bytes = kept ? hfd_unpack(kept) : NULL;
        if (kept && !bytes)
                return -ENOMEM;
        int r = bytes ? hf__json_parse(bytes->data, bytes->n, &definition, NULL) : 0;
        for (const struct hf__json *v = hf__json_first(hf__json_path(definition, "spec.versions"));
             v && !schema; v = hf__json_next(v))
                if (hf__json_has_text(v, "name", version->row.version))
                        schema = hf__json_get(v, "schema");
        struct hf__json *props = hf__json_get(schema, "openAPIV3Schema");
        /* The schema leaves its definition, which is freed here, so that it need not be copied. */
        if (props)
                *ret_props = hf__json_detach(schema, props);
        return r;
}

struct hfd_custom_kind *hfd_custom_kind_ref(struct hfd_custom_kind *kind) {
        assert(atomic_load_explicit(&kind->refs, memory_order_relaxed) > 0);
        atomic_fetch_add_explicit(&kind->refs, 1, memory_order_relaxed);
        return kind;
}

struct hfd_custom_kind *hfd_custom_kind_unref(struct hfd_custom_kind *kind) {
        assert(!kind || atomic_load_explicit(&kind->refs, memory_order_relaxed) > 0);
        /* acq_rel: as in hfd_object_unref */
        if (!kind || atomic_fetch_sub_explicit(&kind->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        for (size_t i = 0; i < kind->n_versions; i++) {
                struct hfd_custom_version *version = &kind->versions[i];
                hfd_custom_schema_free(version->schema);
                hfd_custom_rules_free(version->rules);
                free(version->columns);
                free(version->warning);
        }
        free((void *)kind->selectable);
        hf__json_free(kind->spec);
        hf__json_free(kind->names);
        hf__buf_unref(kind->bytes);
        pthread_mutex_destroy(&kind->mu);
        free(kind);
        return NULL;
}

const struct hfd_resource *hfd_resource_ref(const struct hfd_resource *resource) {
        if (resource && resource->custom)
                hfd_custom_kind_ref(resource->custom->kind);
        return resource;
}

const struct hfd_resource *hfd_resource_unref(const struct hfd_resource *resource) {
        if (resource && resource->custom)
                hfd_custom_kind_unref(resource->custom->kind);
        return NULL;
}

const struct hfd_column *hfd_resource_columns(const struct hfd_resource *resource, size_t *ret_n) {
        size_t n = 0;

        if (resource->custom) {
                *ret_n = resource->custom->n_columns;
                return resource->custom->columns;
        }
        while (resource->columns && resource->columns[n].name)
                n++;
        *ret_n = n;
        return resource->columns;
}

bool hfd_custom_same_form(const struct hfd_resource *a, const struct hfd_resource *b) {
        if (a == b)
                return true;
        if (!a->custom || !b->custom)
                return false;
        return memcmp(a->custom->kind->form, b->custom->kind->form, HFD_CUSTOM_HASH) == 0;
}
