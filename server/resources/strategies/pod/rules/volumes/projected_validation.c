/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of projected volumes, whose files come from several sources.
 *
 * Invariants: the texts of the causes, their fields and their order are those of kube-apiserver,
 * because clients show them and tests compare them. No path leads out of the volume (".."), and no
 * two paths are equal, except those of tokens. Repeated paths are found with an index, never by
 * comparing all paths with each other: clients choose how many there are.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/volumes/volume_sources.h"

#define TOKEN_SECONDS_MIN 600
#define TOKEN_SECONDS_MAX (INT64_C(1) << 32)

/* The lists of files, and the paths of a certificate, in the order in which they are checked. */
static const char *const lists[] = {"secret", "configMap", "downwardAPI"},
                         *const certificate_paths[] = {"credentialBundlePath", "keyPath",
                                                       "certificateChainPath"};

/* ---- repeated paths ---- */

/* The paths of files among which none may occur twice. As in Kubernetes, the paths of tokens are
 * not among them, and a missing path is one of them (as "") only if it is a bundle's. */
struct paths {
        struct hf__json *all; /* an array of texts */
        struct hf__json_index by_text;
        size_t n_seen;
        const char *field; /* of the source `projected`; borrowed */
};

/* Leaves out a path that is missing. 0 or -ENOMEM. */
static int add_path(struct paths *paths, const struct hf__json *object, const char *member) {
        const char *path = hfd_text_of(object, member);

        return *path ? hf__json_append_string(paths->all, path) : 0;
}

/* Adds the paths in the order in which note_path is called. 0 or -ENOMEM. */
static int add_paths(struct paths *paths, const struct hf__json *source) {
        const struct hf__json *bundle = hf__json_get(source, "clusterTrustBundle");
        int r = 0;

        for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
                const struct hf__json *items =
                        hf__json_get(hf__json_get(source, lists[i]), "items");
                for (const struct hf__json *m = hf__json_first(items); m && r == 0;
                     m = hf__json_next(m))
                        r = add_path(paths, m, "path");
        }
        if (r == 0 && bundle)
                r = hf__json_append_string(paths->all, hfd_text_of(bundle, "path"));
        for (size_t i = 0; i < sizeof certificate_paths / sizeof certificate_paths[0] && r == 0;
             i++)
                r = add_path(paths, hf__json_get(source, "podCertificate"), certificate_paths[i]);
        return r;
}

/* Refuses the next path if an earlier one is equal. value: what the cause shows. */
static void note_path(struct paths *paths, const char *path, const char *value,
                      struct hfd_causes *causes) {
        const struct hf__json_index_entry *first = hf__json_index_find(&paths->by_text, path);

        if (first && first->position < paths->n_seen)
                hfd_cause_invalid_text(causes, paths->field, value, "conflicting duplicate paths");
        paths->n_seen++;
}

/* The same for a path that may be missing. */
static void note_file(struct paths *paths, const char *path, const char *value,
                      struct hfd_causes *causes) {
        if (*path)
                note_path(paths, path, value, causes);
}

/* ---- sources ---- */

/* The keys of a Secret or a ConfigMap. */
static void validate_keys(const struct hf__json *source, const char *field, struct paths *paths,
                          struct hfd_causes *causes) {
        char items[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        (void)hfd_require_text(source, field, "name", causes);
        hfd_field_path(items, field, "items");
        for (const struct hf__json *m = hf__json_first(hf__json_get(source, "items")); m;
             m = hf__json_next(m)) {
                hfd_key_file_validate(m, hfd_field_index(path, items, i++), causes);
                note_file(paths, hfd_text_of(m, "path"), hfd_text_of(source, "name"), causes);
        }
}

/* As in Kubernetes, the causes do not say which of the files is meant. */
static void validate_downward_files(const struct hf__json *source, const char *field,
                                    struct paths *paths, struct hfd_causes *causes) {
        for (const struct hf__json *m = hf__json_first(hf__json_get(source, "items")); m;
             m = hf__json_next(m)) {
                hfd_downward_file_validate(m, field, causes);
                note_file(paths, hfd_text_of(m, "path"), hfd_text_of(m, "path"), causes);
        }
}

/* As in Kubernetes, the field of a cause about the path is "...projected.path", which does not say
 * which of the sources is meant. */
static void validate_token(const struct hf__json *source, const char *field, struct paths *paths,
                           struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX], shown[24];
        int64_t seconds = 0;

        (void)hf__json_integer(hf__json_get(source, "expirationSeconds"), &seconds);
        (void)snprintf(shown, sizeof shown, "%" PRId64, seconds);
        hfd_field_path(path, field, "expirationSeconds");
        if (seconds < TOKEN_SECONDS_MIN)
                hfd_cause_invalid(causes, path, shown,
                                  "may not specify a duration less than 10 minutes");
        else if (seconds > TOKEN_SECONDS_MAX)
                hfd_cause_invalid(causes, path, shown,
                                  "may not specify a duration larger than 2^32 seconds");
        if (hfd_require_text(source, paths->field, "path", causes))
                hfd_local_path_validate(source, paths->field, "path", causes);
}

static void validate_bundle(const struct hf__json *source, const char *field, struct paths *paths,
                            struct hfd_causes *causes) {
        hfd_trust_bundle_validate(source, field, causes);
        if (hfd_require_text(source, field, "path", causes))
                hfd_local_path_validate(source, field, "path", causes);
        note_path(paths, hfd_text_of(source, "path"), hfd_text_of(source, "path"), causes);
}

static void validate_certificate(const struct hf__json *source, const char *field,
                                 struct paths *paths, struct hfd_causes *causes) {
        bool found = false;

        hfd_pod_certificate_validate(source, field, causes);
        for (size_t i = 0; i < sizeof certificate_paths / sizeof certificate_paths[0]; i++) {
                const char *path = hfd_text_of(source, certificate_paths[i]);
                hfd_local_path_validate(source, field, certificate_paths[i], causes);
                note_file(paths, path, path, causes);
                found = found || *path;
        }
        if (!found)
                hfd_cause_required(causes, field,
                                   "specify at least one of credentialBundlePath, keyPath, and "
                                   "certificateChainPath");
}

/* field: that of the element. */
static void validate_source(const struct hf__json *source, const char *field, struct paths *paths,
                            struct hfd_causes *causes) {
        static const struct {
                const char *name;
                void (*validate)(const struct hf__json *source, const char *field,
                                 struct paths *paths, struct hfd_causes *causes);
        } kinds[] = {{"secret", validate_keys},
                     {"configMap", validate_keys},
                     {"downwardAPI", validate_downward_files},
                     {"serviceAccountToken", validate_token},
                     {"clusterTrustBundle", validate_bundle},
                     {"podCertificate", validate_certificate}};
        char path[HFD_FIELD_PATH_MAX];
        size_t n = 0;

        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
                const struct hf__json *of_kind = hf__json_get(source, kinds[i].name);
                if (!of_kind)
                        continue;
                kinds[i].validate(of_kind, hfd_field_path(path, field, kinds[i].name), paths,
                                  causes);
                n++;
        }
        if (n > 1)
                hfd_cause_forbidden(causes, field,
                                    "may not specify more than 1 volume type per source");
}

void hfd_projected_source_validate(const struct hf__json *projected, const char *field,
                                   bool persistent, struct hfd_causes *causes) {
        const struct hf__json *sources = hf__json_get(projected, "sources");
        struct paths paths = {.all = hf__json_array(), .field = field};
        char list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        int r = paths.all ? 0 : -ENOMEM;
        size_t i = 0;

        hfd_require_range(projected, field, "defaultMode", 0, 0777,
                          "must be a number between 0 and 0777 (octal), both inclusive", causes);
        hfd_field_path(list, field, "sources");
        for (const struct hf__json *m = hf__json_first(sources); m && r == 0; m = hf__json_next(m))
                r = add_paths(&paths, m);
        if (r == 0)
                r = hf__json_index_init(&paths.by_text, paths.all, NULL);
        if (hfd_causes_check(causes, r)) {
                for (const struct hf__json *m = hf__json_first(sources); m; m = hf__json_next(m))
                        validate_source(m, hfd_field_index(path, list, i++), &paths, causes);
                hf__json_index_done(&paths.by_text);
        }
        hf__json_free(paths.all);
}
