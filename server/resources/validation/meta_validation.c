/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates ObjectMeta. Names are checked on create only. A name never changes, and an object that
 * was stored under a looser rule must remain writable: otherwise its finalizers could not be
 * removed, and it could never be deleted.
 *
 * Invariant: the metadata may have any form. A write to the status of a custom resource takes them
 * from the store, where another program may have put them.
 */
#include "server/resources/validation/meta_validation.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/quote.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "server/resources/validation/names.h"

#define ANNOTATIONS_MAX  (256u << 10) /* bytes of all keys and values */
#define SHOWN_FINALIZERS 3

/* ---- names ---- */

/* As in kube-apiserver, a segment of a path with both '/' and '%' has two causes. */
static void validate_segment(const char *name, const char *field, const char *shown,
                             struct hfd_causes *causes) {
        size_t n = causes->n;

        if (strcmp(name, ".") == 0)
                hfd_cause_invalid_text(causes, field, shown, "may not be '.'");
        else if (strcmp(name, "..") == 0)
                hfd_cause_invalid_text(causes, field, shown, "may not be '..'");
        if (strchr(name, '/'))
                hfd_cause_invalid_text(causes, field, shown, "may not contain '/'");
        if (strchr(name, '%'))
                hfd_cause_invalid_text(causes, field, shown, "may not contain '%'");
        for (const char *c = name; *c && causes->n == n; c++)
                if ((unsigned char)*c < 0x20 || *c == 0x7f) {
                        hfd_cause_invalid_text(causes, field, shown,
                                               "may not contain control characters");
                        return;
                }
}

void hfd_label_text_validate(const char *text, const char *field, const char *shown,
                             struct hfd_causes *causes) {
        if (strlen(text) > HFD_DNS_LABEL_MAX)
                hfd_cause_invalid_text(causes, field, shown, hfd_dns_label_length_rule);
        if (hfd_dns_label_fault(text))
                hfd_cause_invalid_text(causes, field, shown, hfd_dns_label_fault(text));
}

void hfd_subdomain_text_validate(const char *text, size_t n, const char *field, const char *shown,
                                 struct hfd_causes *causes) {
        if (n > HFD_DNS_SUBDOMAIN_MAX)
                hfd_cause_invalid_text(causes, field, shown, hfd_dns_subdomain_length_rule);
        if (!hfd_has_subdomain_form(text, n))
                hfd_cause_invalid_text(causes, field, shown, hfd_dns_subdomain_rule);
}

void hfd_subdomain_text_validate_once(const char *text, size_t n, const char *field,
                                      const char *shown, struct hfd_causes *causes) {
        bool is_long = n > HFD_DNS_SUBDOMAIN_MAX, is_formed = hfd_has_subdomain_form(text, n);
        char why[500];

        (void)snprintf(why, sizeof why, "%s%s%s", is_long ? hfd_dns_subdomain_length_rule : "",
                       is_long && !is_formed ? "," : "", is_formed ? "" : hfd_dns_subdomain_rule);
        if (is_long || !is_formed)
                hfd_cause_invalid_text(causes, field, shown, why);
}

void hfd_config_key_validate(const char *key, const char *field, struct hfd_causes *causes) {
        if (strlen(key) > HFD_DNS_SUBDOMAIN_MAX)
                hfd_cause_invalid_text(causes, field, key, hfd_dns_subdomain_length_rule);
        if (!hfd_has_config_key_form(key))
                hfd_cause_invalid_text(causes, field, key, hfd_config_key_rule);
        if (strcmp(key, ".") == 0)
                hfd_cause_invalid_text(causes, field, key, "must not be '.'");
        else if (strcmp(key, "..") == 0)
                hfd_cause_invalid_text(causes, field, key, "must not be '..'");
        else if (strncmp(key, "..", 2) == 0)
                hfd_cause_invalid_text(causes, field, key, "must not start with '..'");
}

/* The most bytes of a name. A resource without a plural is for objects that are embedded in others.
 * Their names are no part of a key, and Kubernetes has no limit for them. */
static size_t max_name(const struct hfd_resource *resource) {
        if (resource->name_is_label)
                return HFD_DNS_LABEL_MAX - (size_t)resource->n_name_reserved;
        return resource->plural ? HFD_DNS_SUBDOMAIN_MAX : SIZE_MAX;
}

/* field: the path of the name. shown: what the cause shows in its place. */
static void validate_name_text(const struct hfd_resource *resource, const char *name,
                               const char *field, const char *shown, struct hfd_causes *causes) {
        size_t max = max_name(resource), n = strlen(name);
        char length_rule[64];

        if (n > max) {
                (void)snprintf(length_rule, sizeof length_rule,
                               "must be no more than %zu characters", max);
                hfd_cause_invalid_text(causes, field, shown, length_rule);
        }
        if (resource->name_is_segment) {
                if (n <= max)
                        validate_segment(name, field, shown, causes);
        } else if (resource->name_is_label) {
                if (hfd_dns_label_fault(name))
                        hfd_cause_invalid_text(causes, field, shown, hfd_dns_label_fault(name));
        } else if (!hfd_has_subdomain_form(name, n)) {
                hfd_cause_invalid_text(causes, field, shown, hfd_dns_subdomain_rule);
        }
}

/* A prefix may end with '-', because more follows. Kubernetes checks it with an `a` in the place of
 * the last two characters then. */
static void validate_prefix(const struct hfd_resource *resource, const char *prefix,
                            struct hfd_causes *causes) {
        struct hf__strbuf name = {0};
        size_t n = strlen(prefix);

        /* As in Kubernetes a segment may begin with dots, because more follows. */
        if (resource->name_is_segment && (strcmp(prefix, ".") == 0 || strcmp(prefix, "..") == 0))
                return;
        if (resource->name_is_segment || n < 2 || prefix[n - 1] != '-') {
                validate_name_text(resource, prefix, "metadata.generateName", prefix, causes);
                return;
        }
        hf__strbuf_add(&name, prefix, n - 2);
        hf__strbuf_putc(&name, 'a');
        if (hfd_causes_check(causes, name.error))
                validate_name_text(resource, name.data, "metadata.generateName", prefix, causes);
        hf__strbuf_done(&name);
}

static void validate_name(const struct hfd_resource *resource, const struct hf__json *object,
                          struct hfd_causes *causes) {
        const char *name = hf__json_string(object, "metadata.name"),
                   *prefix = hf__json_string(object, "metadata.generateName");

        if (prefix && *prefix)
                validate_prefix(resource, prefix, causes);
        if (name && *name)
                validate_name_text(resource, name, "metadata.name", name, causes);
        else
                hfd_cause_required(causes, "metadata.name",
                                   prefix && *prefix ? "" : "name or generateName is required");
}

/* meta.c has copied the namespace from the path, where any segment is valid. (That of an embedded
 * object is from the client.) */
static void validate_namespace(const struct hf__json *object, struct hfd_causes *causes) {
        const char *ns = hf__json_string(object, "metadata.namespace");

        if (!ns || !*ns)
                hfd_cause_required(causes, "metadata.namespace", "");
        else
                hfd_label_text_validate(ns, "metadata.namespace", ns, causes);
}

/* ---- labels, annotations, owners, finalizers ---- */

/* One cause for each rule that the name part breaks: it may be too long and wrong at the same time.
 */
static void refuse_name_part(const char *part, const char *field, const char *key,
                             struct hfd_causes *causes) {
        size_t n = strlen(part);

        if (n == 0)
                hfd_cause_invalid_text(causes, field, key, "name part must be non-empty");
        else if (n > HFD_LABEL_VALUE_MAX)
                hfd_cause_invalid_text(causes, field, key,
                                       "name part must be no more than 63 bytes");
        if (!hfd_is_name_text(part))
                hfd_cause_invalid_text(causes, field, key, hfd_qualified_name_rule);
}

static void refuse_prefix_part(const char *key, size_t n, const char *field, const char *shown,
                               struct hfd_causes *causes) {
        char text[500];

        if (n == 0) {
                hfd_cause_invalid_text(causes, field, shown, "prefix part must be non-empty");
                return;
        }
        if (n > HFD_DNS_SUBDOMAIN_MAX)
                hfd_cause_invalid_text(causes, field, shown,
                                       "prefix part must be no more than 253 bytes");
        (void)snprintf(text, sizeof text, "prefix part %s", hfd_dns_subdomain_rule);
        if (!hfd_has_subdomain_form(key, n))
                hfd_cause_invalid_text(causes, field, shown, text);
}

/* Adds what is wrong with a qualified name, in Kubernetes' words. shown: the name as it was sent.
 */
static void check_qualified_name(const char *name, const char *field, const char *shown,
                                 struct hfd_causes *causes) {
        const char *slash = strchr(name, '/');
        char text[500];

        if (hfd_is_qualified_name(name))
                return;
        if (slash && strchr(slash + 1, '/')) {
                (void)snprintf(text, sizeof text,
                               "a valid label key %s with an optional DNS subdomain prefix and '/' "
                               "(e.g. 'example.com/MyName')",
                               hfd_qualified_name_rule + strlen("name part "));
                hfd_cause_invalid_text(causes, field, shown, text);
                return;
        }
        if (slash)
                refuse_prefix_part(name, (size_t)(slash - name), field, shown, causes);
        refuse_name_part(slash ? slash + 1 : name, field, shown, causes);
}

void hfd_qualified_name_validate(const char *name, const char *field, struct hfd_causes *causes) {
        check_qualified_name(name, field, name, causes);
}

/* As in Kubernetes, the field of a cause is the whole map, not the single label. */
void hfd_labels_validate(const struct hf__json *labels, const char *field,
                         struct hfd_causes *causes) {
        if (!hf__json_is_object(labels))
                return;
        for (struct hf__json *m = hf__json_first(labels); m; m = hf__json_next(m)) {
                const char *value = hf__json_text_or_empty(m);
                check_qualified_name(hf__json_key(m), field, hf__json_key(m), causes);
                if (strlen(value) > HFD_LABEL_VALUE_MAX)
                        hfd_cause_invalid_text(causes, field, value,
                                               "must be no more than 63 bytes");
                if (*value && !hfd_is_name_text(value))
                        hfd_cause_invalid_text(causes, field, value, hfd_label_value_rule);
        }
}

/* As in Kubernetes, capitals in a key count as lower case. A key that is too long for the copy is
 * too long for a key, so it is refused as it is. */
static void check_annotation_key(const char *key, const char *field, struct hfd_causes *causes) {
        char lower[HFD_DNS_SUBDOMAIN_MAX + HFD_LABEL_VALUE_MAX + 2];
        size_t n = strlen(key);

        for (size_t i = 0; i <= n && n < sizeof lower; i++)
                lower[i] = key[i] >= 'A' && key[i] <= 'Z' ? (char)(key[i] + ('a' - 'A')) : key[i];
        check_qualified_name(n < sizeof lower ? lower : key, field, key, causes);
}

/* Values may have any syntax, but the total size is limited, because every read returns them. */
void hfd_annotations_validate(const struct hf__json *annotations, const char *field,
                              struct hfd_causes *causes) {
        size_t total = 0;

        if (!hf__json_is_object(annotations))
                return;
        for (struct hf__json *m = hf__json_first(annotations); m; m = hf__json_next(m)) {
                check_annotation_key(hf__json_key(m), field, causes);
                total += strlen(hf__json_key(m)) + strlen(hf__json_text_or_empty(m));
        }
        if (total > ANNOTATIONS_MAX) {
                char text[64];
                (void)snprintf(text, sizeof text, "may not be more than %u bytes", ANNOTATIONS_MAX);
                hfd_cause_too_long(causes, field, text);
        }
}

static void refuse_second_controller(const struct hf__json *owners, const struct hf__json *first,
                                     const struct hf__json *second, struct hfd_causes *causes) {
        const char *a = hf__json_string(first, "name"), *b = hf__json_string(second, "name");
        struct hf__strbuf list = {0};
        char detail[400];

        if (causes->n == HFD_CAUSES_MAX)
                return; /* the list would be printed for nothing, again and again */
        (void)snprintf(detail, sizeof detail,
                       "Only one reference can have Controller set to true. Found \"true\" in "
                       "references for %.100s and %.100s",
                       a ? a : "", b ? b : "");
        hf__json_print(owners, &list);
        hfd_cause_invalid(causes, "metadata.ownerReferences",
                          hfd_causes_check(causes, list.error) && list.data ? list.data : "",
                          detail);
        hf__strbuf_done(&list);
}

/*
 * Does not check whether an owner exists: the garbage collector does. At most one owner may be the
 * controller, because two controllers would overwrite each other's changes.
 */
static void validate_owners(const struct hf__json *meta, struct hfd_causes *causes) {
        static const char *const required[] = {"apiVersion", "kind", "name", "uid"};
        const struct hf__json *controller = NULL;
        size_t i = 0;

        for (struct hf__json *m = hf__json_first(hf__json_get(meta, "ownerReferences")); m;
             m = hf__json_next(m), i++) {
                char field[96];
                for (size_t k = 0; k < sizeof required / sizeof required[0]; k++) {
                        const char *value = hf__json_string(m, required[k]);
                        (void)snprintf(field, sizeof field, "metadata.ownerReferences[%zu].%s", i,
                                       required[k]);
                        if (!value || !*value)
                                hfd_cause_required(causes, field, "must not be empty");
                }
                if (!hf__json_bool(m, "controller", false))
                        continue;
                if (controller)
                        refuse_second_controller(hf__json_get(meta, "ownerReferences"), controller,
                                                 m, causes);
                controller = m;
        }
}

/*
 * For an object that is being deleted: refuses finalizers that the stored object does not have,
 * because with new ones the deletion might never end. The message has the first SHOWN_FINALIZERS of
 * them, sorted, in the form in which Go prints a slice.
 */
static void forbid_new_finalizers(const struct hf__json *list, const struct hf__json *old_list,
                                  struct hfd_causes *causes) {
        struct hf__json_index old;
        const char *found[SHOWN_FINALIZERS];
        char quoted[140], text[600];
        size_t n = 0;

        /* After -ENOMEM the index is empty, and every finalizer seems new. But then the causes have
         * the error, so the response is a 500. */
        (void)hfd_causes_check(causes, hf__json_index_init(&old, old_list, NULL));
        for (struct hf__json *m = hf__json_first(list); m && n < SHOWN_FINALIZERS;
             m = hf__json_next(m))
                if (!hf__json_index_find(&old, hf__json_text_or_empty(m)))
                        found[n++] = hf__json_text_or_empty(m);
        hf__json_index_done(&old);
        if (n == 0)
                return;
        qsort(found, n, sizeof found[0], hf__text_compare);
        int at = snprintf(text, sizeof text,
                          "no new finalizers can be added if the object is being deleted, found "
                          "new finalizers []string{");
        for (size_t i = 0; i < n; i++) {
                hf__quote_bytes(found[i], strlen(found[i]), quoted, sizeof quoted);
                at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", i > 0 ? ", " : "",
                               quoted);
        }
        (void)snprintf(text + at, sizeof text - (size_t)at, "}");
        hfd_cause_forbidden(causes, "metadata.finalizers", text);
}

/* Whether the kind belongs to a group that accepts only standard finalizers and those with a domain
 * in front of their name. */
static bool has_strict_finalizers(const struct hfd_resource *resource) {
        return !*resource->group || strcmp(resource->group, "rbac.authorization.k8s.io") == 0;
}

static bool is_standard_finalizer(const char *name) {
        return strcmp(name, "kubernetes") == 0 || strcmp(name, "orphan") == 0 ||
               strcmp(name, "foregroundDeletion") == 0;
}

static void refuse_own_finalizers(const struct hf__json *list, struct hfd_causes *causes) {
        char field[64];
        size_t i = 0;

        for (struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m), i++) {
                const char *name = hf__json_text_or_empty(m);
                if (strchr(name, '/') || is_standard_finalizer(name))
                        continue;
                (void)snprintf(field, sizeof field, "metadata.finalizers[%zu]", i);
                hfd_cause_invalid_text(causes, field, name,
                                       "name is neither a standard finalizer name nor is it fully "
                                       "qualified");
        }
}

static void validate_finalizers(const struct hfd_resource *resource, const struct hf__json *meta,
                                const struct hf__json *old_meta, struct hfd_causes *causes) {
        const struct hf__json *list = hf__json_get(meta, "finalizers"),
                              *old_list = hf__json_get(old_meta, "finalizers");
        char quoted[300];

        if (hf__json_has_element(list, "orphan") &&
            hf__json_has_element(list, "foregroundDeletion")) {
                hfd_quote_list(list, quoted, sizeof quoted);
                hfd_cause_invalid(causes, "metadata.finalizers", quoted,
                                  "finalizer orphan and finalizer foregroundDeletion cannot "
                                  "be both set");
        }
        for (struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                check_qualified_name(hf__json_text_or_empty(m), "metadata.finalizers",
                                     hf__json_text_or_empty(m), causes);
        if (has_strict_finalizers(resource))
                refuse_own_finalizers(list, causes);
        if (hf__json_string(old_meta, "deletionTimestamp"))
                forbid_new_finalizers(list, old_list, causes);
}

/* ---- updates ---- */

/* Fields that the client has left out are equal, because meta.c has copied them from the stored
 * object. */
static void validate_unchanged(const struct hf__json *meta, const struct hf__json *old_meta,
                               struct hfd_causes *causes) {
        static const char *const immutable[][2] =
                {{"name", "metadata.name"},
                 {"namespace", "metadata.namespace"},
                 {"uid", "metadata.uid"},
                 {"creationTimestamp", "metadata.creationTimestamp"},
                 {"deletionTimestamp", "metadata.deletionTimestamp"},
                 {"deletionGracePeriodSeconds", "metadata.deletionGracePeriodSeconds"}};

        for (size_t i = 0; i < sizeof immutable / sizeof immutable[0]; i++) {
                const struct hf__json *value = hf__json_get(meta, immutable[i][0]),
                                      *old_value = hf__json_get(old_meta, immutable[i][0]);
                const char *field = immutable[i][1];
                char number[24] = "null";
                int64_t n;
                if (hfd_causes_equal(causes, value, old_value))
                        continue;
                if (hf__json_integer(value, &n))
                        (void)snprintf(number, sizeof number, "%lld", (long long)n);
                if (hf__json_is_string(value))
                        hfd_cause_invalid_text(causes, field, hf__json_text(value),
                                               "field is immutable");
                else
                        hfd_cause_invalid(causes, field, number, "field is immutable");
        }
}

void hfd_meta_validate(const struct hfd_resource *resource, const struct hf__json *object,
                       const struct hf__json *old, struct hfd_causes *causes) {
        const struct hf__json *meta = hf__json_get(object, "metadata"),
                              *old_meta = hf__json_get(old, "metadata");

        if (!old)
                validate_name(resource, object, causes);
        if (!old && resource->namespaced)
                validate_namespace(object, causes);
        hfd_labels_validate(hf__json_get(meta, "labels"), "metadata.labels", causes);
        hfd_annotations_validate(hf__json_get(meta, "annotations"), "metadata.annotations", causes);
        validate_owners(meta, causes);
        validate_finalizers(resource, meta, old_meta, causes);
        if (old)
                validate_unchanged(meta, old_meta, causes);
}
