/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of CustomResourceDefinitions, in the order of kube-apiserver's causes.
 *
 * kube-apiserver checks its internal version of the kind. There a part that is equal in all
 * versions is moved to the spec: a schema becomes spec.validation, and subresources,
 * additionalPrinterColumns and selectableFields keep their names. So the paths in causes depend on
 * whether versions are equal.
 *
 * Invariants:
 *
 *  - Group and plural never change, and scope and kind do not once the definition is established:
 *    all four decide the form of the stored objects or of their keys.
 *  - A version in which objects may be stored stays in the spec.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/custom/schema/compile/effort.h"
#include "server/resources/strategies/definition/definition_rules.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"

/* The parts of a version that may be in the spec. */
enum part { SCHEMA, SUBRESOURCES, COLUMNS, SELECTABLE, N_PARTS };
static const char *const part_keys[N_PARTS] = {"schema", "subresources", "additionalPrinterColumns",
                                               "selectableFields"};

/* The state of a validation. The JSON is borrowed, and the indexes borrow from it. */
struct check {
        const struct hf__json *spec, *old;      /* old: the spec before an update; NULL: a create */
        const struct hf__json *versions;        /* spec.versions */
        struct hf__json_index names, old_names; /* the versions by their names */
        bool common[N_PARTS]; /* the part is the same in all versions, so it is in the spec */
        bool established;     /* before the update */
        /* The cost of all schemas (effort.h). NULL: an update that leaves them as they were. */
        struct hfd_schema_effort *effort;
        struct hfd_causes *causes;
};

/* The part in the spec; NULL: it is absent, or in the versions. */
static const struct hf__json *common_part(const struct check *c, enum part part) {
        return c->common[part] ? hf__json_get(hf__json_first(c->versions), part_keys[part]) : NULL;
}

/* The part in a version; NULL: it is absent, or in the spec. */
static const struct hf__json *own_part(const struct check *c, const struct hf__json *version,
                                       enum part part) {
        return c->common[part] ? NULL : hf__json_get(version, part_keys[part]);
}

static void init_check(struct check *c, const struct hf__json *object, const struct hf__json *old,
                       struct hfd_causes *causes) {
        /* The indexes point into themselves, so they are made in place. */
        *c = (struct check){.spec = hf__json_get(object, "spec"),
                            .old = hf__json_get(old, "spec"),
                            .causes = causes};
        c->versions = hf__json_get(c->spec, "versions");
        (void)hfd_causes_check(causes, hf__json_index_init(&c->names, c->versions, "name"));
        (void)hfd_causes_check(causes,
                               hf__json_index_init(&c->old_names, hf__json_get(c->old, "versions"),
                                                   "name"));
        for (size_t part = 0; part < N_PARTS; part++) {
                const struct hf__json *first =
                        hf__json_get(hf__json_first(c->versions), part_keys[part]);
                c->common[part] = true;
                for (const struct hf__json *m = hf__json_first(c->versions); m;
                     m = hf__json_next(m))
                        if (!hfd_causes_equal(causes, hf__json_get(m, part_keys[part]), first))
                                c->common[part] = false;
        }
        for (const struct hf__json *m = hf__json_first(hf__json_path(old, "status.conditions")); m;
             m = hf__json_next(m))
                if (hf__json_has_text(m, "type", "Established"))
                        c->established = hf__json_has_text(m, "status", "True");
}

static bool has_schema(const struct hf__json *version) {
        return hf__json_path(version, "schema.openAPIV3Schema") != NULL;
}

static bool has_status(const struct hf__json *version) {
        return hf__json_path(version, "subresources.status") != NULL;
}

/* Whether unknown fields of objects are kept. Only a stored definition that was converted from
 * v1beta1 can say so: hfd_definition_validate refuses a create or an update that begins to. */
static bool keeps_unknown(const struct hf__json *spec) {
        return hf__json_bool(spec, "preserveUnknownFields", false);
}

/* Whether an update leaves the part of a version as it was. */
static bool is_unchanged(const struct check *c, const struct hf__json *version, enum part part) {
        const struct hf__json_index_entry *old =
                hf__json_index_find(&c->old_names, hfd_definition_text(version, "name"));

        return old && hfd_causes_equal(c->causes, hf__json_get(old->item, part_keys[part]),
                                       hf__json_get(version, part_keys[part]));
}

/* Whether a schema is new or other than before. */
static bool changes_schema(const struct check *c) {
        for (const struct hf__json *m = hf__json_first(c->versions); m; m = hf__json_next(m))
                if (!is_unchanged(c, m, SCHEMA))
                        return true;
        return false;
}

/* ---- group, scope, schemas ---- */

static void check_group(const struct check *c) {
        const char *group = hfd_definition_text(c->spec, "group");

        if (!*group)
                hfd_cause_required(c->causes, "spec.group", "");
        else if (!hfd_is_dns_subdomain(group))
                hfd_subdomain_text_validate_once(group, strlen(group), "spec.group", group,
                                                 c->causes);
        else if (!strchr(group, '.'))
                hfd_cause_invalid_text(c->causes, "spec.group", group,
                                       "should be a domain with at least one dot");
}

static void check_scope(const struct check *c) {
        const char *scope = hfd_definition_text(c->spec, "scope");

        if (!*scope)
                hfd_cause_required(c->causes, "spec.scope", "");
        else if (strcmp(scope, "Cluster") != 0 && strcmp(scope, "Namespaced") != 0)
                hfd_cause_unsupported_text(c->causes, "spec.scope", scope,
                                           "\"Cluster\", \"Namespaced\"");
}

/* Each version needs a schema. If an old version had none, the definition comes from an older
 * server. Then only the served versions need one, and none does if unknown fields are kept. */
static void check_schemas_exist(const struct check *c) {
        bool all = true;
        char field[HFD_DEFINITION_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_get(c->old, "versions")); m;
             m = hf__json_next(m))
                all = all && has_schema(m);
        for (const struct hf__json *m = hf__json_first(c->versions); m; m = hf__json_next(m), i++) {
                (void)snprintf(field, sizeof field, "spec.versions[%zu].schema.openAPIV3Schema", i);
                if (has_schema(m))
                        continue;
                if (all)
                        hfd_cause_required(c->causes, field, "");
                else if (!keeps_unknown(c->spec) && hf__json_bool(m, "served", false))
                        hfd_cause_required(c->causes, field,
                                           "because otherwise all fields are pruned");
        }
}

/* Defaults need pruning, as in Kubernetes: without it an object may have anything in a field that a
 * later schema declares with a default. */
static void check_defaults(const struct check *c) {
        bool found = false;

        if (!keeps_unknown(c->spec))
                return;
        for (const struct hf__json *m = hf__json_first(c->versions); m && !found;
             m = hf__json_next(m))
                found = hfd_definition_has_default(hf__json_path(m, "schema.openAPIV3Schema"));
        if (found)
                hfd_cause_invalid(c->causes, "spec.preserveUnknownFields", "true",
                                  "must be false in order to use defaults in the schema");
}

/* ---- versions ---- */

/* The selectable fields of a version, if they are not common to all. path: of the version. */
static void check_own_selectable(const struct check *c, const struct hf__json *version,
                                 const char *path) {
        const struct hf__json *fields = own_part(c, version, SELECTABLE),
                              *props =
                                      hf__json_get(own_part(c, version, SCHEMA), "openAPIV3Schema");
        char field[HFD_DEFINITION_PATH_MAX];

        if (!hf__json_first(fields))
                return;
        if (props) {
                hfd_definition_check_selectable(fields, props, path,
                                                is_unchanged(c, version, SELECTABLE), c->causes);
                return;
        }
        (void)snprintf(field, sizeof field, "%s.selectableFields", path);
        /* Kubernetes' text says the opposite of the rule: the fields need a schema. A schema that
         * is common to all versions does not count, because it is in the spec. */
        hfd_cause_invalid(c->causes, field, "\"\"",
                          "may only be set when `version.schema.openAPIV3Schema` is not included");
}

/* Checks version i of the spec. */
static void check_version(const struct check *c, const struct hf__json *version, size_t i) {
        const char *name = hfd_definition_text(version, "name");
        char path[40], field[HFD_DEFINITION_PATH_MAX];

        (void)snprintf(path, sizeof path, "spec.versions[%zu]", i);
        (void)snprintf(field, sizeof field, "%s.name", path);
        hfd_definition_check_label(name, field, name, "", c->causes);
        hfd_definition_check_deprecation(version, path, c->causes);
        (void)snprintf(field, sizeof field, "%s.schema.openAPIV3Schema", path);
        hfd_definition_check_props(hf__json_get(own_part(c, version, SCHEMA), "openAPIV3Schema"),
                                   field, has_status(version), is_unchanged(c, version, SCHEMA),
                                   c->effort, c->causes);
        (void)snprintf(field, sizeof field, "%s.subresources", path);
        hfd_definition_check_subresources(own_part(c, version, SUBRESOURCES), field, c->causes);
        hfd_definition_check_columns(own_part(c, version, COLUMNS), path, c->causes);
        check_own_selectable(c, version, path);
}

/* Appends a version as kube-apiserver prints its internal struct: without the parts that are common
 * to all versions. */
static void put_version(struct hf__strbuf *s, const struct check *c,
                        const struct hf__json *version) {
        static const char *const names[N_PARTS] = {"Schema", "Subresources",
                                                   "AdditionalPrinterColumns", "SelectableFields"};
        const struct hf__json *warning = hf__json_get(version, "deprecationWarning");
        const char *name = hfd_definition_text(version, "name");

        hf__strbuf_puts(s, "{\"Name\":");
        hf__strbuf_json(s, name, strlen(name));
        hf__strbuf_printf(s, ",\"Served\":%s,\"Storage\":%s,\"Deprecated\":%s",
                          hf__json_bool(version, "served", false) ? "true" : "false",
                          hf__json_bool(version, "storage", false) ? "true" : "false",
                          hf__json_bool(version, "deprecated", false) ? "true" : "false");
        hf__strbuf_puts(s, ",\"DeprecationWarning\":");
        if (warning)
                hf__json_print(warning, s);
        else
                hf__strbuf_puts(s, "null");
        for (size_t part = 0; part < N_PARTS; part++) {
                const struct hf__json *own = own_part(c, version, (enum part)part);
                hf__strbuf_printf(s, ",\"%s\":", names[part]);
                if (own)
                        hf__json_print(own, s);
                else
                        hf__strbuf_puts(s, "null");
        }
        hf__strbuf_putc(s, '}');
}

/* Adds a cause that shows all versions. A cause shows 300 bytes of a value, so no further version
 * is printed once there are 300 bytes. */
static void refuse_versions(const struct check *c, const char *detail) {
        struct hf__strbuf shown = {0};

        hf__strbuf_puts(&shown, c->versions ? "[" : "null");
        for (const struct hf__json *m = hf__json_first(c->versions); m && shown.n < 300;
             m = hf__json_next(m)) {
                if (shown.n > 1)
                        hf__strbuf_putc(&shown, ',');
                put_version(&shown, c, m);
        }
        if (c->versions)
                hf__strbuf_putc(&shown, ']');
        hfd_cause_invalid(c->causes, "spec.versions",
                          hfd_causes_check(c->causes, shown.error) ? shown.data : "", detail);
        hf__strbuf_done(&shown);
}

static bool has_duplicate(const struct hf__json_index *names) {
        for (size_t i = 1; i < names->n; i++)
                if (strcmp(names->entries[i - 1].text, names->entries[i].text) == 0)
                        return true;
        return false;
}

static void check_versions(const struct check *c) {
        size_t n_storage = 0, i = 0;

        for (const struct hf__json *m = hf__json_first(c->versions); m; m = hf__json_next(m)) {
                n_storage += hf__json_bool(m, "storage", false);
                check_version(c, m, i++);
        }
        if (has_duplicate(&c->names))
                refuse_versions(c, "must contain unique version names");
        if (n_storage != 1)
                refuse_versions(c, "must have exactly one version marked as storage version");
        /* kube-apiserver's internal type of the kind repeats the first version's name as
         * spec.version. */
        const char *first = hfd_definition_text(hf__json_first(c->versions), "name");
        if (*first)
                hfd_definition_check_label(first, "spec.version", first, "", c->causes);
}

/* ---- names and what all versions have in common ---- */

static void check_names(const struct check *c) {
        static const char *const required[] = {"plural", "singular", "kind", "listKind"};
        const struct hf__json *names = hf__json_get(c->spec, "names");
        char field[40];

        for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
                (void)snprintf(field, sizeof field, "spec.names.%s", required[i]);
                if (!*hfd_definition_text(names, required[i]))
                        hfd_cause_required(c->causes, field, "");
        }
        hfd_definition_check_names(names, "spec.names", c->causes);
}

/* Each version keeps a schema of its own in memory, even if all are equal and were checked once. */
static void count_copies(const struct check *c, const struct hf__json *props, const char *path) {
        if (!c->effort || !props || hfd_schema_effort_problem(c->effort))
                return;
        hfd_schema_effort_multiply(c->effort, hf__json_count(c->versions));
        if (hfd_schema_effort_problem(c->effort))
                hfd_cause_forbidden(c->causes, path, hfd_schema_effort_problem(c->effort));
}

static void check_common(const struct check *c) {
        static const char path[] = "spec.validation.openAPIV3Schema";
        const struct hf__json *first = hf__json_first(c->versions),
                              *props = hf__json_get(common_part(c, SCHEMA), "openAPIV3Schema"),
                              *selectable = common_part(c, SELECTABLE);
        bool status = false;

        for (const struct hf__json *m = first; m; m = hf__json_next(m))
                status = status || has_status(m);
        hfd_definition_check_props(props, path, status, is_unchanged(c, first, SCHEMA), c->effort,
                                   c->causes);
        count_copies(c, props, path);
        hfd_definition_check_subresources(common_part(c, SUBRESOURCES), "spec.subresources",
                                          c->causes);
        hfd_definition_check_columns(common_part(c, COLUMNS), "spec", c->causes);
        if (!hf__json_first(selectable))
                return;
        if (props)
                hfd_definition_check_selectable(selectable, props, "spec",
                                                is_unchanged(c, first, SELECTABLE), c->causes);
        else
                hfd_cause_invalid(c->causes, "spec.selectableFields", "\"\"",
                                  "may only be set when validations.schema is included");
}

/* ---- updates ---- */

static void check_immutable(const struct check *c, const char *key) {
        const char *value = hfd_definition_text(c->spec, key);
        char field[40];

        (void)snprintf(field, sizeof field, "spec.%s", key);
        if (strcmp(value, hfd_definition_text(c->old, key)) != 0)
                hfd_cause_invalid_text(c->causes, field, value, "field is immutable");
}

static void check_update(const struct check *c) {
        if (c->established) {
                check_immutable(c, "scope");
                check_immutable(c, "names.kind");
        }
        check_immutable(c, "group");
        check_immutable(c, "names.plural");
}

/* ---- the stored versions ---- */

/* hfd_definition_prepare has added the storage version to the list. So the list is empty only if no
 * version of the spec is the storage version. */
static void check_stored_versions(const struct check *c, const struct hf__json *stored) {
        char field[60], detail[700];
        size_t i = 0;

        if (!hf__json_first(stored))
                hfd_cause_invalid(c->causes, "status.storedVersions", "null",
                                  "must have at least one stored version");
        for (const struct hf__json *m = hf__json_first(stored); m && c->causes->n < HFD_CAUSES_MAX;
             m = hf__json_next(m), i++) {
                const char *name = hf__json_is_string(m) ? hf__json_text(m) : "";
                if (hf__json_index_find(&c->names, name))
                        continue;
                (void)snprintf(field, sizeof field, "status.storedVersions[%zu]", i);
                (void)snprintf(detail, sizeof detail,
                               "missing from spec.versions; %.150s was previously a storage "
                               "version, and must remain in spec.versions until a storage "
                               "migration ensures no data remains persisted in %.150s and removes "
                               "%.150s from status.storedVersions",
                               name, name, name);
                hfd_cause_invalid_text(c->causes, field, name, detail);
        }
}

/* ---- the whole ---- */

/* The name must be "PLURAL.GROUP". */
static void check_name(const struct check *c, const struct hf__json *object) {
        static const char detail[] = "must be spec.names.plural+\".\"+spec.group";
        const char *name = hfd_definition_text(object, "metadata.name"),
                   *base = hfd_definition_text(object, "metadata.generateName"),
                   *plural = hfd_definition_text(c->spec, "names.plural"),
                   *group = hfd_definition_text(c->spec, "group");
        size_t n = strlen(plural);

        if (*base)
                hfd_cause_invalid_text(c->causes, "metadata.generateName", base, detail);
        if (*name &&
            (strncmp(name, plural, n) != 0 || name[n] != '.' || strcmp(name + n + 1, group) != 0))
                hfd_cause_invalid_text(c->causes, "metadata.name", name, detail);
}

static void check_spec(const struct check *c) {
        const struct hf__json *conversion = hf__json_get(c->spec, "conversion");

        check_group(c);
        check_scope(c);
        check_schemas_exist(c);
        check_defaults(c);
        check_versions(c);
        check_names(c);
        check_common(c);
        if (keeps_unknown(c->spec) && !hf__json_has_text(conversion, "strategy", "None"))
                hfd_cause_invalid_text(c->causes, "spec.conversion.strategy",
                                       hfd_definition_text(conversion, "strategy"),
                                       "must be None if spec.preserveUnknownFields is true");
        hfd_definition_check_conversion(conversion, hf__json_get(c->old, "conversion"),
                                        c->established, c->causes);
}

void hfd_definition_validate(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes) {
        struct hfd_schema_effort effort = {0};
        struct check c;

        init_check(&c, object, old, causes);
        if (changes_schema(&c))
                c.effort = &effort;
        if (!old)
                check_name(&c, object);
        check_spec(&c);
        if (old)
                check_update(&c);
        hfd_definition_validate_status(object, old, causes);
        check_stored_versions(&c, hf__json_path(object, "status.storedVersions"));
        hfd_definition_check_approval(object, old, causes);
        if (keeps_unknown(c.spec) && !keeps_unknown(c.old))
                hfd_cause_invalid(causes, "spec.preserveUnknownFields", "true",
                                  "cannot set to true, set x-kubernetes-preserve-unknown-fields to "
                                  "true in spec.versions[*].schema instead");
        hf__json_index_done(&c.names);
        hf__json_index_done(&c.old_names);
}

void hfd_definition_validate_status(const struct hf__json *object, const struct hf__json *old,
                                    struct hfd_causes *causes) {
        hfd_definition_check_names(hf__json_path(object, "status.acceptedNames"),
                                   "status.acceptedNames", causes);
}
