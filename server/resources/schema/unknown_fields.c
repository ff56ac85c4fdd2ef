/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the fields of a received object that its kind does not have, for the parameter
 * fieldValidation. Strict refuses the object; Warn names the fields in Warning headers. In an
 * accepted object unknown fields are stored, so that an older server does not drop the fields of a
 * newer client.
 *
 * The table covers the places where mistakes are common: the object, its metadata, and the parts
 * with a fixed set of fields. A part without a row may have any field.
 */
#include "server/resources/schema/unknown_fields.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"

#define REFERENCE    "apiVersion kind namespace name uid resourceVersion fieldPath"
#define RULE         "verbs apiGroups resources resourceNames nonResourceURLs"
#define SUBJECT      "kind apiGroup name namespace"
#define UNKNOWN_MAX  8   /* unknown fields reported per object; more are not counted */
#define UNKNOWN_TEXT 120 /* bytes of a name that are shown */

static const struct shape {
        const char *kind; /* NULL = every kind */
        const char *part; /* "" = the object itself; "x[]" = each object of the array x */
        const char *fields;
} shapes[] = {
        {NULL, "metadata",
         "name generateName namespace selfLink uid resourceVersion generation creationTimestamp "
         "deletionTimestamp "
         "deletionGracePeriodSeconds "
         "labels annotations ownerReferences finalizers managedFields"},
        {"ConfigMap", "", "apiVersion kind metadata data binaryData immutable"},
        {"Lease", "", "apiVersion kind metadata spec"},
        {"Lease", "spec",
         "holderIdentity leaseDurationSeconds acquireTime renewTime leaseTransitions strategy "
         "preferredHolder"},
        {"LeaseCandidate", "", "apiVersion kind metadata spec"},
        {"LeaseCandidate", "spec",
         "leaseName pingTime renewTime binaryVersion emulationVersion strategy"},
        {"Namespace", "", "apiVersion kind metadata spec status"},
        {"Namespace", "spec", "finalizers"},
        {"Namespace", "status", "phase conditions"},
        {"Event", "",
         "apiVersion kind metadata involvedObject reason message source firstTimestamp "
         "lastTimestamp count type eventTime series action "
         "related reportingComponent reportingInstance"},
        {"Event", "involvedObject", REFERENCE},
        {"Event", "related", REFERENCE},
        {"Event", "source", "component host"},
        {"Event", "series", "count lastObservedTime"},
        {"Secret", "", "apiVersion kind metadata data stringData type immutable"},
        {"ServiceAccount", "",
         "apiVersion kind metadata secrets imagePullSecrets automountServiceAccountToken"},
        {"ServiceAccount", "secrets[]", REFERENCE},
        {"ServiceAccount", "imagePullSecrets[]", "name"},
        {"Role", "", "apiVersion kind metadata rules"},
        {"Role", "rules[]", RULE},
        {"ClusterRole", "", "apiVersion kind metadata rules aggregationRule"},
        {"ClusterRole", "rules[]", RULE},
        {"ClusterRole", "aggregationRule", "clusterRoleSelectors"},
        {"RoleBinding", "", "apiVersion kind metadata subjects roleRef"},
        {"RoleBinding", "subjects[]", SUBJECT},
        {"RoleBinding", "roleRef", "apiGroup kind name"},
        {"ClusterRoleBinding", "", "apiVersion kind metadata subjects roleRef"},
        {"ClusterRoleBinding", "subjects[]", SUBJECT},
        {"ClusterRoleBinding", "roleRef", "apiGroup kind name"},
        {"Workspace", "", "apiVersion kind metadata spec status"},
};

const char *hfd_unknown_fields_list_known(const char *kind, const char *part) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
                if (strcmp(shapes[i].part, part) == 0 &&
                    (!shapes[i].kind || strcmp(shapes[i].kind, kind) == 0))
                        return shapes[i].fields;
        return NULL;
}

/* Whether key is one of the words of fields. */
static bool is_field(const char *fields, const char *key) {
        size_t n = strlen(key);

        for (const char *word = fields; *word;) {
                if (strncmp(word, key, n) == 0 && (word[n] == ' ' || word[n] == '\0'))
                        return true;
                word += strcspn(word, " ");
                word += strspn(word, " ");
        }
        return false;
}

/*
 * The name comes from the client and is sent in a header. So it is cut, and restricted to printable
 * ASCII: a newline would start another header.
 */
static void put_name(struct hf__strbuf *s, const char *name) {
        for (size_t i = 0; name[i] && i < UNKNOWN_TEXT; i++) {
                bool plain = name[i] >= ' ' && name[i] <= '~' && name[i] != '"' && name[i] != '\\';
                hf__strbuf_putc(s, plain ? name[i] : '?');
        }
}

/*
 * Adds a line for each unknown field of one part. path: the path of the part, for the message. It
 * has an index if the part is an element of an array; "" = the object itself.
 */
static void find_in_object(const struct shape *shape, const char *path, struct hf__json *object,
                           size_t *n_found, struct hf__strbuf *s) {
        assert(hf__json_is_object(object));
        for (struct hf__json *m = hf__json_first(object); m && *n_found < UNKNOWN_MAX;
             m = hf__json_next(m)) {
                if (is_field(shape->fields, hf__json_key(m)))
                        continue;
                hf__strbuf_puts(s, *n_found > 0 ? "\nunknown field \"" : "unknown field \"");
                ++*n_found;
                hf__strbuf_puts(s, path);
                if (*path)
                        hf__strbuf_putc(s, '.');
                put_name(s, hf__json_key(m));
                hf__strbuf_putc(s, '"');
        }
}

/* The same for each object in the array of shape->part ("rules[]"). */
static void find_in_array(const struct shape *shape, struct hf__json *object, size_t *n_found,
                          struct hf__strbuf *s) {
        char key[64], path[96];
        size_t i = 0;

        (void)snprintf(key, sizeof key, "%.*s", (int)strcspn(shape->part, "["), shape->part);
        for (struct hf__json *m = hf__json_first(hf__json_get(object, key));
             m && *n_found < UNKNOWN_MAX; m = hf__json_next(m)) {
                (void)snprintf(path, sizeof path, "%s[%zu]", key, i++);
                if (hf__json_is_object(m))
                        find_in_object(shape, path, m, n_found, s);
        }
}

int hfd_unknown_fields_find(const struct hfd_resource *resource, struct hf__json *object,
                            char **ret_unknown) {
        struct hf__strbuf s = {0};
        size_t n_found = 0;
        int r = 0;

        *ret_unknown = NULL;
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
                if (shapes[i].kind && strcmp(shapes[i].kind, resource->kind) != 0)
                        continue;
                struct hf__json *part =
                        *shapes[i].part ? hf__json_get(object, shapes[i].part) : object;
                if (strchr(shapes[i].part, '['))
                        find_in_array(&shapes[i], object, &n_found, &s);
                else if (hf__json_is_object(part))
                        find_in_object(&shapes[i], shapes[i].part, part, &n_found, &s);
        }
        if (n_found > 0) {
                *ret_unknown = s.error != 0 ? NULL : strdup(s.data);
                r = *ret_unknown ? 0 : -ENOMEM;
        }
        hf__strbuf_done(&s);
        return r;
}
