/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resources/meta.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <holdfast/fence.h> /* HF_NAME_MAX */

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"

#define ANNOTATIONS_MAX (256u << 10)
#define FINALIZERS_MAX  1000 /* each is looked for among the old ones */

#define LABEL_RULE                                                                                 \
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "   \
        "and must start and end with an "                                                          \
        "alphanumeric "                                                                            \
        "character (e.g. 'my-name',  or '123-abc', regex used for validation is "                  \
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define SUBDOMAIN_RULE                                                                             \
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "  \
        "or '.', and must start and end with an "                                                  \
        "alphanumeric character (e.g. 'example.com', regex used for validation is "                \
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define NAME_PART_RULE                                                                             \
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and "  \
        "end with an alphanumeric character (e.g. "                                                \
        "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "                    \
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define LABEL_VALUE_RULE                                                                           \
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "   \
        "or '.', and must start and end with an "                                                  \
        "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "     \
        "validation is "                                                                           \
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

/* ---- forms ---- */

static bool lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

static bool dns_labels(const char *text, bool dots) {
        bool start = true;

        for (const char *c = text; *c; c++) {
                bool last = !c[1] || (dots && c[1] == '.');
                if (dots && *c == '.' && !start) {
                        start = true;
                        continue;
                }
                if (!lower_alnum(*c) && (*c != '-' || start || last))
                        return false;
                start = false;
        }
        return !start;
}

bool hfd_is_dns_label(const char *text) { return strlen(text) <= 63 && dns_labels(text, false); }
bool hfd_is_dns_subdomain(const char *text) {
        return strlen(text) <= 253 && dns_labels(text, true);
}

/* ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9], up to 63 bytes */
static bool is_name_part(const char *text) {
        size_t n = strlen(text);

        if (!n || n > 63 || !isalnum((unsigned char)text[0]) ||
            !isalnum((unsigned char)text[n - 1]))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!isalnum((unsigned char)text[i]) && !strchr("-_.", text[i]))
                        return false;
        return true;
}

bool hfd_is_qualified_name(const char *text) {
        char prefix[256];
        const char *slash = strchr(text, '/');

        if (!slash)
                return is_name_part(text);
        size_t n = (size_t)(slash - text);
        if (!n || n >= sizeof prefix)
                return false;
        memcpy(prefix, text, n);
        prefix[n] = '\0';
        return hfd_is_dns_subdomain(prefix) && is_name_part(slash + 1);
}

bool hfd_is_label_value(const char *text) { return !*text || is_name_part(text); }

void hfd_quote(const char *text, char *out, size_t max_out) {
        (void)snprintf(out, max_out, "\"%.250s\"", text);
}

void hfd_quote_list(const struct hf__json *list, char *out, size_t max_out) {
        size_t n = (size_t)snprintf(out, max_out, "[]string{");

        for (const struct hf__json *m = hf__json_first(list); m && n + 72 < max_out;
             m = hf__json_next(m))
                n += (size_t)snprintf(out + n, max_out - n, "%s\"%.60s\"",
                                      m == hf__json_first(list) ? "" : ", ",
                                      hf__json_is_string(m) ? hf__json_text(m) : "");
        (void)snprintf(out + n, max_out - n, "}");
}

static void invalid_text(struct hfd_causes *causes, const char *field, const char *value,
                         const char *rule) {
        char quoted[300];

        hfd_quote(value, quoted, sizeof quoted);
        hfd_cause_invalid(causes, field, quoted, rule);
}

/* What a path "metadata.x" names, looked for in the metadata: messages name the whole path. */
static struct hf__json *of_meta(const struct hf__json *meta, const char *path) {
        return hf__json_get(meta, path + strlen("metadata."));
}
static const char *meta_text(const struct hf__json *meta, const char *path) {
        return hf__json_text(of_meta(meta, path));
}

/* ---- what was sent ---- */

static bool text_or_absent(const struct hf__json *value) {
        return !value || hf__json_is_null(value) || hf__json_is_string(value);
}

static bool strings_or_absent(const struct hf__json *value) {
        if (!value || hf__json_is_null(value))
                return true;
        if (!hf__json_is_object(value))
                return false;
        for (struct hf__json *m = hf__json_first(value); m; m = hf__json_next(m))
                if (!hf__json_is_string(m))
                        return false;
        return true;
}

static bool types_fit(const struct hf__json *meta, const char **ret_field) {
        static const char *const texts[] = {"metadata.name",
                                            "metadata.generateName",
                                            "metadata.namespace",
                                            "metadata.uid",
                                            "metadata.resourceVersion",
                                            "metadata.creationTimestamp",
                                            "metadata.deletionTimestamp"};
        static const char *const lists[] = {"metadata.finalizers", "metadata.ownerReferences"};
        int64_t when;

        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
                if (*ret_field = texts[i], !text_or_absent(of_meta(meta, texts[i])))
                        return false;
        for (size_t i = 5; i < sizeof texts / sizeof texts[0]; i++) {
                const char *text = meta_text(meta, texts[i]);
                if (*ret_field = texts[i], text && hf__time_parse(text, &when))
                        return false;
        }
        if (*ret_field = "metadata.labels", !strings_or_absent(of_meta(meta, *ret_field)))
                return false;
        if (*ret_field = "metadata.annotations", !strings_or_absent(of_meta(meta, *ret_field)))
                return false;
        for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
                struct hf__json *list = of_meta(meta, lists[i]);
                *ret_field = lists[i];
                if (list && !hf__json_is_null(list) && !hf__json_is_array(list))
                        return false;
                for (struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                        if (i ? !hf__json_is_object(m) : !hf__json_is_string(m))
                                return false;
        }
        return true;
}

/*
 * Times are stored as this server writes them. Clients that parse what they read send them back in
 * another form of the same instant (the Python client: "+00:00" for "Z"), which must be neither a
 * change nor an error.
 */
static int normalise_times(struct hf__json *meta) {
        static const char *const times[] = {"creationTimestamp", "deletionTimestamp"};
        char text[HF__MICROTIME_MAX];
        int64_t when;
        int r = 0;

        for (size_t i = 0; r == 0 && i < sizeof times / sizeof times[0]; i++) {
                const char *sent = hf__json_string(meta, times[i]);
                if (!sent || hf__time_parse(sent, &when))
                        continue;
                hf__time_format(when, text);
                if (strcmp(text, sent) != 0)
                        r = hf__json_set_string(meta, times[i], text);
        }
        return r;
}

bool hfd_meta_accept(const struct hfd_resource *r, const char *path_ns, const char *path_name,
                     struct hf__json *object, struct hfd_response *response) {
        const char *kind = hf__json_string(object, "kind"),
                   *version = hf__json_string(object, "apiVersion"), *field = "metadata";
        char expected[128];

        hfd_resource_api_version(r, expected);
        struct hf__json *meta = hf__json_get(object, "metadata");
        if (version && *version && strcmp(version, expected) != 0) {
                hfd_response_bad_request(response,
                                         "the API version in the data (%.200s) does not match the "
                                         "expected API version (%s)",
                                         version, expected);
                return false;
        }
        if (kind && *kind && strcmp(kind, r->kind) != 0) {
                hfd_response_bad_request(response,
                                         "%.200s in version \"%s\" cannot be handled as a %s: the "
                                         "kind in the data does not match",
                                         kind, r->version, r->kind);
                return false;
        }
        if (!meta || hf__json_is_null(meta)) {
                if (hf__json_set(object, "metadata", hf__json_object())) {
                        hfd_response_no_memory(response);
                        return false;
                }
                meta = hf__json_get(object, "metadata");
        }
        if (!hf__json_is_object(meta) || !types_fit(meta, &field)) {
                hfd_response_bad_request(response,
                                         "%s in version \"%s\" cannot be handled as a %s: json: "
                                         "cannot unmarshal field %s",
                                         r->kind, r->version, r->kind,
                                         hf__json_is_object(meta) ? field : "metadata");
                return false;
        }
        if (normalise_times(meta)) {
                hfd_response_no_memory(response);
                return false;
        }
        const char *ns = hf__json_string(meta, "namespace"), *name = hf__json_string(meta, "name");
        if (ns && *ns && strcmp(ns, r->namespaced ? path_ns : "") != 0) {
                hfd_response_bad_request(response, "the namespace of the provided object does not "
                                                   "match the namespace sent on the request");
                return false;
        }
        if (*path_name && (!name || strcmp(name, path_name) != 0)) {
                if (!name || !*name)
                        hfd_response_bad_request(response,
                                                 "the name of the object must be provided: "
                                                 "name is required on an update");
                else
                        hfd_response_bad_request(response,
                                                 "the name of the object (%.253s) does not match "
                                                 "the "
                                                 "name on the URL (%s)",
                                                 name, path_name);
                return false;
        }
        return true;
}

/* ---- filling in ---- */

static int new_uid(char text[40]) {
        unsigned char b[16];

        if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
                return -EIO;
        b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
        b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
        (void)snprintf(text, 40,
                       "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                       b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                       b[13], b[14], b[15]);
        return 0;
}

int hfd_meta_prepare_create(const struct hfd_resource *resource, const char *ns,
                            struct hf__json *object, int64_t now_s) {
        static const char *const not_theirs[] = {"metadata.deletionTimestamp",
                                                 "metadata.deletionGracePeriodSeconds",
                                                 "metadata.selfLink",
                                                 "metadata.resourceVersion",
                                                 "metadata.managedFields",
                                                 "metadata.generation"};
        char uid[40], now[HF__MICROTIME_MAX];

        for (size_t i = 0; i < sizeof not_theirs / sizeof not_theirs[0]; i++)
                hf__json_remove(object, not_theirs[i]);
        hf__time_format(now_s, now);
        int r = new_uid(uid);
        if (r == 0 && resource->namespaced)
                r = hf__json_set_string(object, "metadata.namespace", ns);
        if (!resource->namespaced)
                hf__json_remove(object, "metadata.namespace");
        if (r == 0)
                r = hf__json_set_string(object, "metadata.uid", uid);
        return r != 0 ? r : hf__json_set_string(object, "metadata.creationTimestamp", now);
}

int hfd_meta_generate_name(struct hf__json *object) {
        static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789"; /* no vowels: no words */
        const char *base = hf__json_string(object, "metadata.generateName");
        unsigned char random[5];
        char name[HF_NAME_MAX + 1];

        if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
                return -EIO;
        int n = snprintf(name, sizeof name - 6, "%.58s", base ? base : "");
        for (size_t i = 0; i < sizeof random; i++)
                name[n + (int)i] = alphabet[random[i] % (sizeof alphabet - 1)];
        name[n + 5] = '\0';
        return hf__json_set_string(object, "metadata.name", name);
}

static int carry(struct hf__json *meta, const struct hf__json *old_meta, const char *key) {
        const struct hf__json *mine = hf__json_get(meta, key),
                              *theirs = hf__json_get(old_meta, key);

        if ((mine && !hf__json_is_null(mine)) || !theirs)
                return 0;
        struct hf__json *copy = hf__json_dup(theirs);
        return copy ? hf__json_put(meta, key, copy) : -ENOMEM;
}

/* A copy without what a generation does not count. NULL = out of memory. */
static struct hf__json *counted_part(const struct hf__json *object) {
        struct hf__json *copy = hf__json_dup(object);

        hf__json_remove(copy, "kind");
        hf__json_remove(copy, "apiVersion");
        hf__json_remove(copy, "metadata");
        hf__json_remove(copy, "status");
        return copy;
}

/* The client's number does not count. */
static int set_generation(const struct hfd_resource *resource, struct hf__json *object,
                          const struct hf__json *old) {
        int64_t generation = 0;
        bool has = hf__json_i64(old, "metadata.generation", &generation);

        if (resource->has_generation) {
                struct hf__json *before = counted_part(old), *after = counted_part(object);
                if (before && after && !hf__json_equal(before, after)) {
                        has = true;
                        generation++;
                }
                bool failed = !before || !after;
                hf__json_free(before);
                hf__json_free(after);
                if (failed)
                        return -ENOMEM;
        }
        if (has)
                return hf__json_set_i64(object, "metadata.generation", generation);
        hf__json_remove(object, "metadata.generation");
        return 0;
}

int hfd_meta_prepare_update(const struct hfd_resource *resource, struct hf__json *object,
                            const struct hf__json *old) {
        static const char *const carried[] = {"namespace", "uid", "creationTimestamp",
                                              "deletionTimestamp", "deletionGracePeriodSeconds"};
        struct hf__json *meta = hf__json_get(object, "metadata"),
                        *old_meta = hf__json_get(old, "metadata");
        int r = 0;

        for (size_t i = 0; r == 0 && i < sizeof carried / sizeof carried[0]; i++)
                r = carry(meta, old_meta, carried[i]);
        hf__json_remove(meta, "resourceVersion");
        hf__json_remove(meta, "selfLink");
        hf__json_remove(meta, "managedFields");
        return r != 0 ? r : set_generation(resource, object, old);
}

/* ---- validating ---- */

/* Whatever names one segment of a path, and can be found again under it. */
static void validate_segment(const char *name, struct hfd_causes *causes) {
        const char *rule = NULL;

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                rule = *(name + 1) ? "may not be '..'" : "may not be '.'";
        for (const char *c = name; *c && !rule; c++)
                if (*c == '/' || *c == '%')
                        rule = *c == '/' ? "may not contain '/'" : "may not contain '%'";
                else if ((unsigned char)*c < 0x20 || *c == 0x7f)
                        rule = "may not contain control characters";
        if (rule)
                invalid_text(causes, "metadata.name", name, rule);
}

static void validate_name(const struct hfd_resource *r, const struct hf__json *object,
                          struct hfd_causes *causes) {
        const char *name = hf__json_string(object, "metadata.name");
        bool generated = hf__json_string(object, "metadata.generateName") &&
                         *hf__json_string(object, "metadata.generateName");
        size_t max = r->name_is_label ? 63 - (size_t)r->n_name_room : 253;
        char rule[48];

        (void)snprintf(rule, sizeof rule, "must be no more than %zu characters", max);
        if (!name || !*name)
                hfd_cause_required(causes, "metadata.name",
                                   generated ? "" : "name or generateName is required");
        else if (strlen(name) > max)
                invalid_text(causes, "metadata.name", name, rule);
        else if (r->name_is_segment)
                validate_segment(name, causes);
        else if (r->name_is_label ? !hfd_is_dns_label(name) : !hfd_is_dns_subdomain(name))
                invalid_text(causes, "metadata.name", name,
                             r->name_is_label ? LABEL_RULE : SUBDOMAIN_RULE);
        if (!r->namespaced)
                return;
        const char *ns = hf__json_string(object, "metadata.namespace");
        if (!ns || !*ns)
                hfd_cause_required(causes, "metadata.namespace", "");
        else if (!hfd_is_dns_label(ns))
                invalid_text(causes, "metadata.namespace", ns, LABEL_RULE);
}

static void validate_maps(const struct hf__json *meta, struct hfd_causes *causes) {
        size_t total = 0;

        for (struct hf__json *m = hf__json_first(hf__json_get(meta, "labels")); m;
             m = hf__json_next(m)) {
                const char *value = hf__json_text(m);
                if (!hfd_is_qualified_name(hf__json_key(m)))
                        invalid_text(causes, "metadata.labels", hf__json_key(m), NAME_PART_RULE);
                if (strlen(value) > 63)
                        invalid_text(causes, "metadata.labels", value,
                                     "must be no more than 63 characters");
                else if (*value && !is_name_part(value))
                        invalid_text(causes, "metadata.labels", value, LABEL_VALUE_RULE);
        }
        for (struct hf__json *m = hf__json_first(hf__json_get(meta, "annotations")); m;
             m = hf__json_next(m)) {
                if (!hfd_is_qualified_name(hf__json_key(m)))
                        invalid_text(causes, "metadata.annotations", hf__json_key(m),
                                     NAME_PART_RULE);
                total += strlen(hf__json_key(m)) + strlen(hf__json_text(m));
        }
        if (total > ANNOTATIONS_MAX) {
                char text[64];
                (void)snprintf(text, sizeof text, "may not be more than %u bytes", ANNOTATIONS_MAX);
                hfd_cause_invalid(causes, "metadata.annotations", "\"\"", text);
        }
}

static void validate_owners(const struct hf__json *meta, struct hfd_causes *causes) {
        static const char *const required[] = {"apiVersion", "kind", "name", "uid"};
        size_t i = 0, n_controllers = 0;

        for (struct hf__json *m = hf__json_first(hf__json_get(meta, "ownerReferences")); m;
             m = hf__json_next(m), i++) {
                char field[96];
                for (size_t k = 0; k < 4; k++) {
                        const char *value = hf__json_string(m, required[k]);
                        (void)snprintf(field, sizeof field, "metadata.ownerReferences[%zu].%s", i,
                                       required[k]);
                        if (!value || !*value)
                                hfd_cause_invalid(causes, field, "\"\"", "must not be empty");
                }
                n_controllers += hf__json_bool(m, "controller", false);
        }
        if (n_controllers > 1)
                hfd_cause_invalid(causes, "metadata.ownerReferences", "[]",
                                  "Only one reference can have Controller set to true");
}

static void validate_unchanged(const struct hf__json *meta, const struct hf__json *old_meta,
                               struct hfd_causes *causes) {
        static const char *const immutable[] = {"metadata.name",
                                                "metadata.namespace",
                                                "metadata.uid",
                                                "metadata.creationTimestamp",
                                                "metadata.deletionTimestamp",
                                                "metadata.deletionGracePeriodSeconds"};

        for (size_t i = 0; i < sizeof immutable / sizeof immutable[0]; i++) {
                const struct hf__json *a = of_meta(meta, immutable[i]),
                                      *b = of_meta(old_meta, immutable[i]);
                if ((!a && !b) || (a && b && hf__json_equal(a, b)))
                        continue;
                if (hf__json_is_string(a)) {
                        invalid_text(causes, immutable[i], hf__json_text(a), "field is immutable");
                } else {
                        hfd_cause_invalid(causes, immutable[i], "null", "field is immutable");
                }
        }
}

static bool has_text(const struct hf__json *list, const char *text) {
        for (struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                if (hf__json_is_string(m) && strcmp(hf__json_text(m), text) == 0)
                        return true;
        return false;
}

static void validate_finalizers(const struct hf__json *meta, const struct hf__json *old_meta,
                                struct hfd_causes *causes) {
        const struct hf__json *list = hf__json_get(meta, "finalizers"),
                              *had = hf__json_get(old_meta, "finalizers");
        bool deleting = hf__json_string(old_meta, "deletionTimestamp");

        if (hf__json_count(list) > FINALIZERS_MAX) {
                hfd_cause_invalid(causes, "metadata.finalizers", "[]",
                                  "Too many: must have at most 1000 items");
                return;
        }
        if (has_text(list, "orphan") && has_text(list, "foregroundDeletion"))
                hfd_cause_invalid(causes, "metadata.finalizers",
                                  "[]string{\"orphan\", \"foregroundDeletion\"}",
                                  "finalizer orphan and finalizer foregroundDeletion cannot be "
                                  "both set");
        for (struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                if (!hfd_is_qualified_name(hf__json_text(m)))
                        invalid_text(causes, "metadata.finalizers", hf__json_text(m),
                                     NAME_PART_RULE);
                if (deleting && !has_text(had, hf__json_text(m)))
                        hfd_cause_forbidden(causes, "metadata.finalizers",
                                            "no new finalizers can be added if the object is being "
                                            "deleted");
        }
}

void hfd_meta_validate(const struct hfd_resource *resource, const struct hf__json *object,
                       const struct hf__json *old, struct hfd_causes *causes) {
        const struct hf__json *meta = hf__json_get(object, "metadata"),
                              *old_meta = hf__json_get(old, "metadata");

        if (!old) /* it never changes: what a stricter rule of today would refuse can still be
                     written, and so be deleted */
                validate_name(resource, object, causes);
        validate_maps(meta, causes);
        validate_owners(meta, causes);
        validate_finalizers(meta, old_meta, causes);
        if (old)
                validate_unchanged(meta, old_meta, causes);
}
