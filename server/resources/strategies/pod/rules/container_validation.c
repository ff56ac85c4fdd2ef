/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of containers, init containers and ephemeral containers.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. Names are looked up in indexes, so that the time does not grow
 * with the product of the numbers of containers, ports and claims, all of which a client chooses.
 */
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"

/* The parts of the pod that the rules of one container need. The indexes borrow from the spec. */
struct pod {
        const struct hf__json_index *volumes; /* for hfd_volume_find; borrowed */
        struct hf__json_index containers, init_containers, ephemeral, claims; /* by name */
        int64_t grace;             /* spec.terminationGracePeriodSeconds */
        bool never_restarts;       /* spec.restartPolicy is Never */
        bool host_users;           /* the pod uses the user namespace of the host */
        struct hfd_causes *causes; /* borrowed */
};

/* ---- ports ---- */

/* names: an index of the names of the container's ports; position: the index of this port. */
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
                if (causes->n == n && hfd_is_repeated(names, name, position))
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

        if (hfd_causes_check(causes, hf__json_index_init(&names, ports, "name")))
                for (const struct hf__json *m = hf__json_first(ports); m; m = hf__json_next(m)) {
                        validate_port(m, hfd_field_index(path, field, i), &names, i, causes);
                        i++;
                }
        hf__json_index_done(&names);
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
        hfd_variables_validate(container, field, causes);
        hfd_mounts_validate(container, pod->volumes, field, causes);
        hfd_require_one_of(container, field, "imagePullPolicy", pulls, causes);
        hfd_container_resources_validate(hf__json_get(container, "resources"), &pod->claims,
                                         hfd_field_path(path, field, "resources"), causes);
        hfd_resize_policy_validate(hf__json_get(container, "resizePolicy"),
                                   hfd_field_path(path, field, "resizePolicy"), pod->never_restarts,
                                   causes);
        hfd_container_security_validate(hf__json_get(container, "securityContext"),
                                        hfd_field_path(path, field, "securityContext"),
                                        pod->host_users, causes);
}

/* A resize cannot restart a container that runs once. */
static void refuse_restart(const struct hf__json *policies, const char *field,
                           struct hfd_causes *causes) {
        char item[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(policies); m; m = hf__json_next(m), i++)
                if (hf__json_has_text(m, "restartPolicy", "RestartContainer"))
                        hfd_cause_invalid_text(causes,
                                               hfd_field_path(path, hfd_field_index(item, field, i),
                                                              "restartPolicy"),
                                               "RestartContainer",
                                               "must not be set to 'RestartContainer' for "
                                               "non-sidecar initContainers");
}

/* Of the init containers, only a sidecar (restartPolicy Always) may have probes and a lifecycle,
 * and be restarted by a resize. */
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
        refuse_restart(hf__json_get(container, "resizePolicy"),
                       hfd_field_path(path, field, "resizePolicy"), pod->causes);
}

/* Whether another container before this one has its name. As in kube-apiserver, the name "" of an
 * init container is repeated if a container has it, but not if only another init container has. */
static bool is_name_repeated(const struct pod *pod, const char *name, size_t position, bool init) {
        if (!init)
                return hfd_is_repeated(&pod->containers, name, position);
        return hf__json_index_find(&pod->containers, name) ||
               (*name && hfd_is_repeated(&pod->init_containers, name, position));
}

/* The containers (init false) or the init containers of the pod. The names of both together are
 * unique, because the status refers to a container by its name. */
static void validate_list(const struct pod *pod, const struct hf__json *list, const char *field,
                          bool init) {
        char path[HFD_FIELD_PATH_MAX], name_path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                const char *name = hfd_text_of(m, "name");
                hfd_field_index(path, field, i);
                validate_container(pod, m, path);
                if (init)
                        hfd_container_restart_validate(m, path, true, pod->causes);
                if (is_name_repeated(pod, name, i, init))
                        hfd_cause_duplicate_text(pod->causes,
                                                 hfd_field_path(name_path, path, "name"), name);
                /* Init containers run one after the other, so each is alone with its ports. As in
                 * kube-apiserver, a sidecar is no exception, and the path in the cause is that of
                 * element 0 of the list, whichever container the cause is about. */
                if (init)
                        hfd_host_ports_validate(m, true, field, pod->causes);
                if (init) {
                        validate_init_container(pod, m, path);
                } else {
                        hfd_handlers_validate(m, path, pod->grace, pod->causes);
                        hfd_container_restart_validate(m, path, false, pod->causes);
                }
                i++;
        }
        if (!init)
                hfd_host_ports_validate(hf__json_first(list), false, field, pod->causes);
}

/* ---- ephemeral containers ---- */

/* Refuses the members that no ephemeral container may have: such a container helps to debug a pod
 * that already runs, and is neither scheduled nor restarted. The table has the order of the members
 * of Kubernetes' Go type, which is the order of its causes. */
static void refuse_members(const struct hf__json *container, const char *field,
                           struct hfd_causes *causes) {
        static const struct {
                const char *name;
                bool may_be_empty; /* no Go pointer, so an empty member counts as absent */
        } members[] =
                {{"ports", true},           {"resources", true},          {"resizePolicy", true},
                 {"restartPolicy", false},  {"restartPolicyRules", true}, {"livenessProbe", false},
                 {"readinessProbe", false}, {"startupProbe", false},      {"lifecycle", false}};
        static const char *const of_mounts[] = {"subPath", "subPathExpr"};
        static const char why[] = "cannot be set for an Ephemeral Container";
        char path[HFD_FIELD_PATH_MAX], mount[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (size_t k = 0; k < sizeof members / sizeof members[0]; k++) {
                const struct hf__json *value = hf__json_get(container, members[k].name);
                if (value && (hf__json_first(value) || !members[k].may_be_empty))
                        hfd_cause_forbidden(causes, hfd_field_path(path, field, members[k].name),
                                            why);
        }
        hfd_field_path(path, field, "volumeMounts");
        for (const struct hf__json *m = hf__json_first(hf__json_get(container, "volumeMounts")); m;
             m = hf__json_next(m)) {
                char member[HFD_FIELD_PATH_MAX];
                hfd_field_index(mount, path, i++);
                for (size_t k = 0; k < 2; k++)
                        if (*hfd_text_of(m, of_mounts[k]))
                                hfd_cause_forbidden(causes,
                                                    hfd_field_path(member, mount, of_mounts[k]),
                                                    why);
        }
}

/* Whether a container or an init container has this name. */
static bool is_other_container(const struct pod *pod, const char *name) {
        return hf__json_index_find(&pod->containers, name) ||
               hf__json_index_find(&pod->init_containers, name);
}

static void validate_ephemeral(const struct pod *pod, const struct hf__json *list,
                               const char *field) {
        struct hfd_causes *causes = pod->causes;
        char path[HFD_FIELD_PATH_MAX], member[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                const char *name = hfd_text_of(m, "name"),
                           *target = hfd_text_of(m, "targetContainerName");
                hfd_field_index(path, field, i);
                validate_container(pod, m, path);
                hfd_image_validate(m, path, causes);
                if (is_other_container(pod, name) || hfd_is_repeated(&pod->ephemeral, name, i))
                        hfd_cause_duplicate_text(causes, hfd_field_path(member, path, "name"),
                                                 name);
                if (*target && !is_other_container(pod, target))
                        hfd_cause_not_found_text(causes,
                                                 hfd_field_path(member, path,
                                                                "targetContainerName"),
                                                 target);
                refuse_members(m, path, causes);
                i++;
        }
}

/* ---- the containers of a pod ---- */

/* done_pod frees the indexes, also after a failure, so all of them are initialized in any case. 0
 * or -ENOMEM. */
static int init_pod(struct pod *pod, const struct hf__json *spec,
                    const struct hf__json_index *volumes, struct hfd_causes *causes) {
        const char *const names[] = {"containers", "initContainers", "ephemeralContainers"};
        struct hf__json_index *const indexes[] = {&pod->containers, &pod->init_containers,
                                                  &pod->ephemeral};
        int r;

        *pod = (struct pod){.volumes = volumes,
                            .causes = causes,
                            .host_users = hf__json_bool(spec, "hostUsers", true),
                            .never_restarts =
                                    strcmp(hfd_text_of(spec, "restartPolicy"), "Never") == 0};
        (void)hf__json_i64(spec, "terminationGracePeriodSeconds", &pod->grace);
        r = hf__json_index_init(&pod->claims, hf__json_get(spec, "resourceClaims"), "name");
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                int failed =
                        hf__json_index_init_texts(indexes[i], hf__json_get(spec, names[i]), "name");
                r = r == 0 ? failed : r;
        }
        return r;
}

static void done_pod(struct pod *pod) {
        hf__json_index_done(&pod->containers);
        hf__json_index_done(&pod->init_containers);
        hf__json_index_done(&pod->ephemeral);
        hf__json_index_done(&pod->claims);
}

void hfd_containers_validate(const struct hf__json *spec, const char *field,
                             const struct hf__json_index *volumes, struct hfd_causes *causes) {
        const struct hf__json *containers = hf__json_get(spec, "containers");
        struct pod pod;
        char path[HFD_FIELD_PATH_MAX];

        if (hfd_causes_check(causes, init_pod(&pod, spec, volumes, causes))) {
                hfd_field_path(path, field, "containers");
                if (!hf__json_first(containers))
                        hfd_cause_required(causes, path, "");
                validate_list(&pod, containers, path, false);
                validate_list(&pod, hf__json_get(spec, "initContainers"),
                              hfd_field_path(path, field, "initContainers"), true);
                validate_ephemeral(&pod, hf__json_get(spec, "ephemeralContainers"),
                                   hfd_field_path(path, field, "ephemeralContainers"));
        }
        done_pod(&pod);
}

/* ---- images ---- */

void hfd_image_validate(const struct hf__json *container, const char *field,
                        struct hfd_causes *causes) {
        const char *image = hfd_text_of(container, "image");
        char path[HFD_FIELD_PATH_MAX];

        if (hfd_is_padded(image))
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "image"), image,
                                       "must not have leading or trailing whitespace");
}
