/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a container's environment variables: `env` (single variables) and `envFrom` (all
 * keys of a ConfigMap or Secret).
 *
 * Invariant: the texts of the causes, their paths and their order are those of kube-apiserver,
 * because clients show them and tests compare them. Some paths of kube-apiserver lead to a list in
 * place of the element at fault.
 */
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"

/* The name of a variable, or the prefix of several names. "" is valid here. */
static void validate_variable_name(const char *name, const char *field, struct hfd_causes *causes) {
        for (const char *c = name; *c; c++)
                if ((unsigned char)*c < ' ' || (unsigned char)*c > '~' || *c == '=') {
                        hfd_cause_invalid_text(causes, field, name,
                                               "a valid environment variable name must consist "
                                               "only of printable ASCII characters other than '='");
                        return;
                }
}

/* A reference to a key of a ConfigMap or Secret. */
static void validate_key_reference(const struct hf__json *reference, const char *field,
                                   struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        hfd_subdomain_validate(hfd_text_of(reference, "name"), hfd_field_path(path, field, "name"),
                               causes);
        if (hfd_require_text(reference, field, "key", causes))
                hfd_config_key_validate(hfd_text_of(reference, "key"),
                                        hfd_field_path(path, field, "key"), causes);
}

/* A reference to a key in a file of a volume. */
static void validate_file_reference(const struct hf__json *reference, const char *field,
                                    struct hfd_causes *causes) {
        const char *at = hfd_text_of(reference, "path");
        char path[HFD_FIELD_PATH_MAX];

        if (hfd_require_text(reference, field, "key", causes))
                validate_variable_name(hfd_text_of(reference, "key"),
                                       hfd_field_path(path, field, "key"), causes);
        hfd_label_name_validate(reference, field, "volumeName", causes);
        if (hfd_require_text(reference, field, "path", causes) && hfd_has_backsteps(at))
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "path"), at,
                                       "must not contain '..'");
}

/* A variable has a value or one source. */
static void validate_value_from(const struct hf__json *variable, const char *field,
                                struct hfd_causes *causes) {
        static const char *const sources[] = {"fieldRef", "resourceFieldRef", "configMapKeyRef",
                                              "secretKeyRef", "fileKeyRef"};
        const struct hf__json *from = hf__json_get(variable, "valueFrom");
        char path[HFD_FIELD_PATH_MAX];
        size_t n = 0;

        if (!from)
                return;
        for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
                const struct hf__json *source = hf__json_get(from, sources[i]);
                if (!source)
                        continue;
                n++;
                hfd_field_path(path, field, sources[i]);
                if (i == 0)
                        hfd_object_field_selector_validate(source, path, false, causes);
                else if (i == 1)
                        hfd_resource_field_selector_validate(source, path, false, causes);
                else if (i < 4)
                        validate_key_reference(source, path, causes);
                else
                        validate_file_reference(source, path, causes);
        }
        if (n == 0)
                hfd_cause_invalid_text(causes, field, "",
                                       "must specify one of: `fieldRef`, `resourceFieldRef`, "
                                       "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`");
        else if (*hfd_text_of(variable, "value"))
                hfd_cause_invalid_text(causes, field, "",
                                       "may not be specified when `value` is not empty");
        else if (n > 1)
                hfd_cause_invalid_text(causes, field, "",
                                       "may not have more than one field specified at a time");
}

static void validate_variables(const struct hf__json *variables, const char *field,
                               struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX], member[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(variables); m; m = hf__json_next(m)) {
                hfd_field_index(path, field, i++);
                if (hfd_require_text(m, path, "name", causes))
                        validate_variable_name(hfd_text_of(m, "name"),
                                               hfd_field_path(member, path, "name"), causes);
                validate_value_from(m, hfd_field_path(member, path, "valueFrom"), causes);
        }
}

/* The name of a ConfigMap or Secret in envFrom. As in kube-apiserver, it counts as the
 * beginning of a name: it may end with '-', and then an `a` stands for its last two characters. */
static void validate_source_name(const char *name, const char *field, struct hfd_causes *causes) {
        struct hf__strbuf masked = {0};
        size_t n = strlen(name);

        if (n < 2 || name[n - 1] != '-') {
                hfd_subdomain_validate(name, field, causes);
                return;
        }
        hf__strbuf_add(&masked, name, n - 2);
        hf__strbuf_putc(&masked, 'a');
        if (hfd_causes_check(causes, masked.error))
                hfd_subdomain_text_validate(masked.data, masked.n, field, name, causes);
        hf__strbuf_done(&masked);
}

/* As in kube-apiserver, the causes about the number of sources have the path of the list, not of
 * the element. */
static void validate_variable_sources(const struct hf__json *list, const char *field,
                                      struct hfd_causes *causes) {
        static const char *const sources[] = {"configMapRef", "secretRef"};
        char path[HFD_FIELD_PATH_MAX], member[HFD_FIELD_PATH_MAX], name[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                size_t n = 0;
                hfd_field_index(path, field, i++);
                validate_variable_name(hfd_text_of(m, "prefix"),
                                       hfd_field_path(member, path, "prefix"), causes);
                for (size_t s = 0; s < 2; s++) {
                        const struct hf__json *source = hf__json_get(m, sources[s]);
                        if (!source)
                                continue;
                        n++;
                        hfd_field_path(member, path, sources[s]);
                        if (hfd_require_text(source, member, "name", causes))
                                validate_source_name(hfd_text_of(source, "name"),
                                                     hfd_field_path(name, member, "name"), causes);
                }
                if (n != 1)
                        hfd_cause_invalid_text(causes, field, "",
                                               n == 0 ? "must specify one of: `configMapRef` or "
                                                        "`secretRef`"
                                                      : "may not have more than one field "
                                                        "specified at a time");
        }
}

void hfd_variables_validate(const struct hf__json *container, const char *field,
                            struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        validate_variables(hf__json_get(container, "env"), hfd_field_path(path, field, "env"),
                           causes);
        validate_variable_sources(hf__json_get(container, "envFrom"),
                                  hfd_field_path(path, field, "envFrom"), causes);
}

/* ---- files of volumes ---- */

struct file_volumes {
        struct hf__json_index by_name; /* all volumes of the pod, also those with mistakes */
        struct hfd_causes *causes;
};

/* Only what the containers of the pod write themselves can be read, so the volume is an emptyDir.
 */
static void validate_file_volume(const struct file_volumes *volumes, const struct hf__json *file,
                                 const char *field) {
        const char *name = hfd_text_of(file, "volumeName");
        const struct hf__json_index_entry *volume = hf__json_index_find(&volumes->by_name, name);
        char path[HFD_FIELD_PATH_MAX];

        hfd_field_path(path, field, "valueFrom.fileKeyRef.volumeName");
        if (!volume)
                hfd_cause_not_found_text(volumes->causes, path, name);
        else if (!hf__json_get(volume->item, "emptyDir"))
                hfd_cause_invalid_text(volumes->causes, path, name,
                                       "referenced volume must be of type emptyDir");
}

static void validate_files(const struct hf__json *container, const char *field, void *userdata) {
        char list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(list, field, "env");
        for (const struct hf__json *m = hf__json_first(hf__json_get(container, "env")); m;
             m = hf__json_next(m), i++) {
                const struct hf__json *file =
                        hf__json_get(hf__json_get(m, "valueFrom"), "fileKeyRef");
                if (file)
                        validate_file_volume(userdata, file, hfd_field_index(path, list, i));
        }
}

/* As in kube-apiserver, the last one of several volumes with the same name counts. */
void hfd_file_volumes_validate(const struct hf__json *spec, const char *field,
                               struct hfd_causes *causes) {
        struct file_volumes volumes = {.causes = causes};

        if (hfd_causes_check(causes,
                             hf__json_index_init_texts(&volumes.by_name,
                                                       hf__json_get(spec, "volumes"), "name"))) {
                hfd_keep_last_items(&volumes.by_name);
                hfd_containers_visit(spec, field, validate_files, &volumes);
        }
        hf__json_index_done(&volumes.by_name);
}
