/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod must not have because of its operating system (spec.os), or because it has a user
 * namespace of its own (spec.hostUsers).
 *
 * Invariant: the texts of the causes, their paths and their order are those of kube-apiserver,
 * because clients show them and tests compare them.
 */
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"

/* ---- user namespaces ---- */

static void refuse_devices(const struct hf__json *container, const char *field, void *userdata) {
        char path[HFD_FIELD_PATH_MAX];

        if (hf__json_first(hf__json_get(container, "volumeDevices")))
                hfd_cause_forbidden(userdata, hfd_field_path(path, field, "volumeDevices"),
                                    "when `hostUsers` is false");
}

/* As in kube-apiserver, two of the paths have capitals that the names of the members do not have.
 */
void hfd_host_users_validate(const struct hf__json *spec, const char *field,
                             struct hfd_causes *causes) {
        static const char *const members[][2] = {{"hostNetwork", "hostNetwork"},
                                                 {"hostPID", "HostPID"},
                                                 {"hostIPC", "HostIPC"}};
        char path[HFD_FIELD_PATH_MAX];

        if (hf__json_bool(spec, "hostUsers", true))
                return;
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
                if (hf__json_bool(spec, members[i][0], false))
                        hfd_cause_forbidden(causes, hfd_field_path(path, field, members[i][1]),
                                            "when `hostUsers` is false");
        hfd_containers_visit(spec, field, refuse_devices, causes);
}

/* ---- Windows ---- */

static const char of_windows[] = "cannot be set for a windows pod";

/* Refuses the members that are there. names ends with NULL. */
static void refuse_members(const struct hf__json *object, const char *field,
                           const char *const *names, const char *why, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        for (; *names; names++)
                if (hf__json_get(object, *names))
                        hfd_cause_forbidden(causes, hfd_field_path(path, field, *names), why);
}

static void refuse_true(const struct hf__json *spec, const char *field, const char *name,
                        struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        if (hf__json_bool(spec, name, false))
                hfd_cause_forbidden(causes, hfd_field_path(path, field, name), of_windows);
}

static void refuse_in_container(const struct hf__json *container, const char *field,
                                void *userdata) {
        static const char *const names[] = {"appArmorProfile",
                                            "seLinuxOptions",
                                            "seccompProfile",
                                            "capabilities",
                                            "readOnlyRootFilesystem",
                                            "privileged",
                                            "allowPrivilegeEscalation",
                                            "procMount",
                                            "runAsUser",
                                            "runAsGroup",
                                            NULL};
        char path[HFD_FIELD_PATH_MAX];

        refuse_members(hf__json_get(container, "securityContext"),
                       hfd_field_path(path, field, "securityContext"), names, of_windows, userdata);
}

/* The order is that of the checks in kube-apiserver, where members of the spec such as hostPID
 * belong to the security context. */
static void validate_windows(const struct hf__json *spec, const char *field,
                             struct hfd_causes *causes) {
        static const char *const first[] = {"appArmorProfile", "seLinuxOptions", NULL},
                                 *const users[] = {"hostUsers", NULL},
                                 *const second[] = {"seccompProfile", "fsGroup",
                                                    "fsGroupChangePolicy", NULL},
                                 *const share[] = {"shareProcessNamespace", NULL},
                                 *const third[] = {"runAsUser",
                                                   "runAsGroup",
                                                   "supplementalGroups",
                                                   "supplementalGroupsPolicy",
                                                   "seLinuxChangePolicy",
                                                   NULL};
        const struct hf__json *context = hf__json_get(spec, "securityContext");
        char of_context[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];

        hfd_field_path(of_context, field, "securityContext");
        refuse_members(context, of_context, first, of_windows, causes);
        refuse_members(spec, field, users, of_windows, causes);
        refuse_true(spec, field, "hostPID", causes);
        refuse_true(spec, field, "hostIPC", causes);
        refuse_members(context, of_context, second, of_windows, causes);
        if (hf__json_first(hf__json_get(context, "sysctls")))
                hfd_cause_forbidden(causes, hfd_field_path(path, of_context, "sysctls"),
                                    of_windows);
        refuse_members(spec, field, share, of_windows, causes);
        refuse_members(context, of_context, third, of_windows, causes);
        hfd_containers_visit(spec, field, refuse_in_container, causes);
}

/* ---- Linux ---- */

static void refuse_options(const struct hf__json *container, const char *field, void *userdata) {
        static const char *const names[] = {"windowsOptions", NULL};
        char path[HFD_FIELD_PATH_MAX];

        refuse_members(hf__json_get(container, "securityContext"),
                       hfd_field_path(path, field, "securityContext"), names,
                       "windows options cannot be set for a linux pod", userdata);
}

/* ---- spec.os ---- */

/* As in kube-apiserver, an unknown name has the path of the os, a missing one that of the name. */
void hfd_os_validate(const struct hf__json *spec, const char *field, struct hfd_causes *causes) {
        static const char *const systems[] = {"linux", "windows", NULL};
        const struct hf__json *os = hf__json_get(spec, "os");
        const char *name = hfd_text_of(os, "name");
        char path[HFD_FIELD_PATH_MAX];

        if (!os)
                return;
        if (!*name) {
                hfd_cause_required(causes, hfd_field_path(path, field, "os.name"), "");
        } else if (strcmp(name, "linux") == 0) {
                refuse_options(spec, field, causes); /* spec.securityContext has them too */
                hfd_containers_visit(spec, field, refuse_options, causes);
        } else if (strcmp(name, "windows") == 0) {
                validate_windows(spec, field, causes);
        } else {
                hfd_refuse_others(name, hfd_field_path(path, field, "os"), systems, causes);
        }
}
