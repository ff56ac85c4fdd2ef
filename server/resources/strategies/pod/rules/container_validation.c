/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of containers. The texts, and the order of the rules, are those of kube-apiserver.
 *
 * Invariant: names are looked up in indexes, so that the time does not grow with the product of the
 * numbers of containers, mounts and volumes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/names.h"
#include "server/resources/validation/resource_names.h"

/* The parts of the pod that the rules of one container need. */
struct pod {
        struct hf__json_index volumes, containers, init_containers; /* by name */
        int64_t grace; /* spec.terminationGracePeriodSeconds */
        struct hfd_causes *causes;
};

/* Whether an element before this one has the same text. */
static bool is_repeated(const struct hf__json_index *index, const char *text, size_t position) {
        const struct hf__json_index_entry *entry = hf__json_index_find(index, text);

        return entry && entry->position < position;
}

/* ---- ports ---- */

static void validate_port(const struct hf__json *port, const char *field,
                          const struct hf__json_index *names, size_t position,
                          struct hfd_causes *causes) {
        static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
        const char *name = hfd_text_of(port, "name");
        char path[HFD_FIELD_PATH_MAX];
        size_t n = causes->n;
        int64_t number = 0;

        if (*name) {
                hfd_port_name_validate(name, hfd_field_path(path, field, "name"), causes);
                if (causes->n == n && is_repeated(names, name, position))
                        hfd_cause_duplicate_text(causes, path, name);
        }
        (void)hf__json_integer(hf__json_get(port, "containerPort"), &number);
        hfd_field_path(path, field, "containerPort");
        if (number == 0)
                hfd_cause_required(causes, path, "");
        else
                hfd_port_validate(hf__json_get(port, "containerPort"), path, causes);
        if (hf__json_integer(hf__json_get(port, "hostPort"), &number) && number != 0)
                hfd_port_validate(hf__json_get(port, "hostPort"),
                                  hfd_field_path(path, field, "hostPort"), causes);
        hfd_require_one_of(port, field, "protocol", protocols, causes);
}

static void validate_ports(const struct hf__json *ports, const char *field,
                           struct hfd_causes *causes) {
        struct hf__json_index names;
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (hf__json_index_init(&names, ports, "name") == 0)
                for (const struct hf__json *m = hf__json_first(ports); m; m = hf__json_next(m)) {
                        validate_port(m, hfd_field_index(path, field, i), &names, i, causes);
                        i++;
                }
        hf__json_index_done(&names);
}

/* ---- variables ---- */

static void validate_variable_name(const char *name, const char *field, struct hfd_causes *causes) {
        for (const char *c = name; *c; c++)
                if ((unsigned char)*c < ' ' || (unsigned char)*c > '~' || *c == '=') {
                        hfd_cause_invalid_text(causes, field, name,
                                               "a valid environment variable name must consist "
                                               "only of printable ASCII characters other than '='");
                        return;
                }
}

static void validate_key_reference(const struct hf__json *reference, const char *field,
                                   struct hfd_causes *causes) {
        const char *key = hfd_text_of(reference, "key");
        char path[HFD_FIELD_PATH_MAX];

        hfd_subdomain_validate(hfd_text_of(reference, "name"), hfd_field_path(path, field, "name"),
                               causes);
        hfd_field_path(path, field, "key");
        if (!*key)
                hfd_cause_required(causes, path, "");
        else if (!hfd_is_config_key(key))
                hfd_cause_invalid_text(causes, path, key, hfd_config_key_rule);
}

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
                        (void)hfd_require_text(source, path, "resource", causes);
                else if (i < 4)
                        validate_key_reference(source, path, causes);
        }
        if (n == 0)
                hfd_cause_invalid_text(causes, field, "",
                                       "must specify one of: `fieldRef`, `resourceFieldRef`, "
                                       "`configMapKeyRef` or `secretKeyRef`");
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

/* As in Kubernetes, the causes about the number of sources name the list, not the element. */
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
                                hfd_subdomain_validate(hfd_text_of(source, "name"),
                                                       hfd_field_path(name, member, "name"),
                                                       causes);
                }
                if (n != 1)
                        hfd_cause_invalid_text(causes, field, "",
                                               n == 0 ? "must specify one of: `configMapRef` or "
                                                        "`secretRef`"
                                                      : "may not have more than one field "
                                                        "specified at a time");
        }
}

/* ---- mounts ---- */

static void validate_mounts(const struct pod *pod, const struct hf__json *mounts,
                            const char *field) {
        char path[HFD_FIELD_PATH_MAX], member[HFD_FIELD_PATH_MAX];
        struct hf__json_index paths;
        size_t i = 0;

        if (hf__json_index_init(&paths, mounts, "mountPath") == 0)
                for (const struct hf__json *m = hf__json_first(mounts); m; m = hf__json_next(m)) {
                        const char *name = hfd_text_of(m, "name"),
                                   *at = hfd_text_of(m, "mountPath");
                        hfd_field_index(path, field, i);
                        (void)hfd_require_text(m, path, "name", pod->causes);
                        if (!hf__json_index_find(&pod->volumes, name))
                                hfd_cause_not_found_text(pod->causes,
                                                         hfd_field_path(member, path, "name"),
                                                         name);
                        (void)hfd_require_text(m, path, "mountPath", pod->causes);
                        if (is_repeated(&paths, at, i))
                                hfd_cause_invalid_text(pod->causes,
                                                       hfd_field_path(member, path, "mountPath"),
                                                       at, "must be unique");
                        i++;
                }
        hf__json_index_done(&paths);
}

/* ---- resources ---- */

static void validate_request(const char *name, const struct hf__json *request,
                             const struct hf__json *limit, const char *field,
                             struct hfd_causes *causes) {
        const struct hfd_quantity wanted = hfd_quantity_of_json(request),
                                  most = hfd_quantity_of_json(limit);
        char path[HFD_FIELD_PATH_MAX], text[HFD_QUANTITY_TEXT_MAX], detail[400];
        bool may_differ = hfd_resource_name_may_overcommit(name);

        if (!limit) {
                if (!may_differ)
                        hfd_cause_required(causes, hfd_field_path(path, field, "limits"),
                                           "Limit must be set for non overcommitable resources");
                return;
        }
        int order = hfd_quantity_compare(&wanted, &most);
        if (order == 0 || (may_differ && order < 0))
                return;
        hfd_quantity_format(&most, text);
        (void)snprintf(detail, sizeof detail, "must be %s %.253s limit of %s",
                       may_differ ? "less than or equal to" : "equal to", name, text);
        hfd_cause_invalid_quantity(causes, hfd_field_path(path, field, "requests"), &wanted,
                                   detail);
}

static void validate_resources(const struct hf__json *resources, const char *field,
                               struct hfd_causes *causes) {
        static const char *const maps[] = {"limits", "requests"};
        const struct hf__json *limits = hf__json_get(resources, "limits");
        struct hf__json_index by_name;
        char path[HFD_FIELD_PATH_MAX];

        if (hf__json_index_init(&by_name, limits, NULL) != 0) {
                hf__json_index_done(&by_name);
                return;
        }
        for (size_t i = 0; i < 2; i++)
                for (const struct hf__json *m = hf__json_first(hf__json_get(resources, maps[i])); m;
                     m = hf__json_next(m)) {
                        const char *name = hf__json_key(m);
                        struct hf__json_index_entry *limit = hf__json_index_find(&by_name, name);
                        (void)snprintf(path, sizeof path, "%s.%s[%s]", field, maps[i], name);
                        hfd_resource_name_validate_container(name, path, causes);
                        hfd_resource_value_validate(name, m, path, causes);
                        if (i == 1)
                                validate_request(name, m, limit ? limit->item : NULL, field,
                                                 causes);
                }
        hf__json_index_done(&by_name);
}

/* ---- containers ---- */

/* The rules that containers of all lists share. */
static void validate_container(const struct pod *pod, const struct hf__json *container,
                               const char *field) {
        static const char *const policies[] = {"File", "FallbackToLogsOnError", NULL};
        static const char *const pulls[] = {"Always", "IfNotPresent", "Never", NULL};
        struct hfd_causes *causes = pod->causes;
        char path[HFD_FIELD_PATH_MAX];

        hfd_label_name_validate(container, field, "name", causes);
        (void)hfd_require_text(container, field, "image", causes);
        hfd_require_one_of(container, field, "terminationMessagePolicy", policies, causes);
        validate_ports(hf__json_get(container, "ports"), hfd_field_path(path, field, "ports"),
                       causes);
        validate_variables(hf__json_get(container, "env"), hfd_field_path(path, field, "env"),
                           causes);
        validate_variable_sources(hf__json_get(container, "envFrom"),
                                  hfd_field_path(path, field, "envFrom"), causes);
        validate_mounts(pod, hf__json_get(container, "volumeMounts"),
                        hfd_field_path(path, field, "volumeMounts"));
        hfd_require_one_of(container, field, "imagePullPolicy", pulls, causes);
        validate_resources(hf__json_get(container, "resources"),
                           hfd_field_path(path, field, "resources"), causes);
}

/* Only an init container with restartPolicy Always, a sidecar, may have probes and a lifecycle. */
static void validate_init_container(const struct pod *pod, const struct hf__json *container,
                                    const char *field) {
        static const char *const members[] = {"lifecycle", "livenessProbe", "readinessProbe",
                                              "startupProbe"};
        const char *policy = hfd_text_of(container, "restartPolicy");
        char path[HFD_FIELD_PATH_MAX];

        if (strcmp(policy, "Always") == 0) {
                hfd_handlers_validate(container, field, pod->grace, pod->causes);
                return;
        }
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
                if (hf__json_get(container, members[i]))
                        hfd_cause_forbidden(pod->causes, hfd_field_path(path, field, members[i]),
                                            "may not be set for init containers without "
                                            "restartPolicy=Always");
}

static void validate_list(const struct pod *pod, const struct hf__json *list, const char *field,
                          bool init) {
        const struct hf__json_index *own = init ? &pod->init_containers : &pod->containers;
        char path[HFD_FIELD_PATH_MAX], name_path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                const char *name = hfd_text_of(m, "name");
                hfd_field_index(path, field, i);
                validate_container(pod, m, path);
                if (*name && (is_repeated(own, name, i) ||
                              (init && hf__json_index_find(&pod->containers, name))))
                        hfd_cause_duplicate_text(pod->causes,
                                                 hfd_field_path(name_path, path, "name"), name);
                if (init)
                        validate_init_container(pod, m, path);
                else
                        hfd_handlers_validate(m, path, pod->grace, pod->causes);
                i++;
        }
}

void hfd_containers_validate(const struct hf__json *spec, const char *field,
                             struct hfd_causes *causes) {
        const struct hf__json *containers = hf__json_get(spec, "containers"),
                              *init = hf__json_get(spec, "initContainers");
        struct pod pod = {.grace = 0, .causes = causes};
        char path[HFD_FIELD_PATH_MAX];

        (void)hf__json_i64(spec, "terminationGracePeriodSeconds", &pod.grace);
        int r = hf__json_index_init(&pod.volumes, hf__json_get(spec, "volumes"), "name"),
            r_containers = hf__json_index_init(&pod.containers, containers, "name"),
            r_init = hf__json_index_init(&pod.init_containers, init, "name");
        if (r == 0 && r_containers == 0 && r_init == 0) {
                hfd_field_path(path, field, "containers");
                if (!hf__json_first(containers))
                        hfd_cause_required(causes, path, "");
                validate_list(&pod, containers, path, false);
                validate_list(&pod, init, hfd_field_path(path, field, "initContainers"), true);
        }
        hf__json_index_done(&pod.volumes);
        hf__json_index_done(&pod.containers);
        hf__json_index_done(&pod.init_containers);
}
