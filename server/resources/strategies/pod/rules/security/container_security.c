/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the security context of a container, and of profiles of seccomp, which pods have
 * too.
 *
 * Invariant: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them.
 */
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"

/* ---- the Go types that causes show ---- */

static const struct hfd_internal_member of_profile[] = {{"Type", "type", .is_text = true},
                                                        {"LocalhostProfile", "localhostProfile"},
                                                        {0}},
                                        of_capabilities[] = {{"Add", "add"}, {"Drop", "drop"}, {0}},
                                        of_se_linux[] = {{"User", "user", .is_text = true},
                                                         {"Role", "role", .is_text = true},
                                                         {"Type", "type", .is_text = true},
                                                         {"Level", "level", .is_text = true},
                                                         {0}},
                                        of_windows[] = {{"GMSACredentialSpecName",
                                                         "gmsaCredentialSpecName"},
                                                        {"GMSACredentialSpec",
                                                         "gmsaCredentialSpec"},
                                                        {"RunAsUserName", "runAsUserName"},
                                                        {"HostProcess", "hostProcess"},
                                                        {0}};
static const struct hfd_internal_member of_context[] =
        {{"Capabilities", "capabilities", of_capabilities},
         {"Privileged", "privileged"},
         {"SELinuxOptions", "seLinuxOptions", of_se_linux},
         {"WindowsOptions", "windowsOptions", of_windows},
         {"RunAsUser", "runAsUser"},
         {"RunAsGroup", "runAsGroup"},
         {"RunAsNonRoot", "runAsNonRoot"},
         {"ReadOnlyRootFilesystem", "readOnlyRootFilesystem"},
         {"AllowPrivilegeEscalation", "allowPrivilegeEscalation"},
         {"ProcMount", "procMount"},
         {"SeccompProfile", "seccompProfile", of_profile},
         {"AppArmorProfile", "appArmorProfile", of_profile},
         {0}};

/* ---- seccomp ---- */

void hfd_seccomp_validate(const struct hf__json *context, const char *field,
                          struct hfd_causes *causes) {
        static const char *const types[] = {"Localhost", "RuntimeDefault", "Unconfined", NULL};
        const struct hf__json *profile = hf__json_get(context, "seccompProfile");
        const char *type = hfd_text_of(profile, "type");
        bool has_file = hf__json_get(profile, "localhostProfile");
        char of[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];

        if (!profile)
                return;
        hfd_field_path(of, field, "seccompProfile");
        hfd_field_path(path, of, "type");
        if (*type)
                hfd_refuse_others(type, path, types, causes);
        else
                hfd_cause_required(causes, path, "type is required when seccompProfile is set");
        hfd_field_path(path, of, "localhostProfile");
        if (strcmp(type, "Localhost") == 0 && has_file)
                hfd_descending_path_validate(profile, of, "localhostProfile", causes);
        else if (strcmp(type, "Localhost") == 0)
                hfd_cause_required(causes, path, "must be set when seccomp type is Localhost");
        else if (has_file)
                hfd_internal_refuse(profile, of_profile, path,
                                    "can only be set when seccomp type is Localhost", causes);
}

/* ---- containers ---- */

static void validate_proc_mount(const struct hf__json *context, const char *field, bool host_users,
                                struct hfd_causes *causes) {
        static const char *const mounts[] = {"Default", "Unmasked", NULL};
        const char *mount = hfd_text_of(context, "procMount");
        char path[HFD_FIELD_PATH_MAX];

        if (!hf__json_get(context, "procMount"))
                return;
        hfd_refuse_others(mount, hfd_field_path(path, field, "procMount"), mounts, causes);
        if (host_users && strcmp(mount, "Unmasked") == 0)
                hfd_cause_invalid_text(causes, path, mount,
                                       "`hostUsers` must be false to use `Unmasked`");
}

/* A process that has all rights already cannot be kept from getting more. */
static void validate_escalation(const struct hf__json *context, const char *field,
                                struct hfd_causes *causes) {
        const struct hf__json *added = hf__json_get(hf__json_get(context, "capabilities"), "add");

        if (hf__json_bool(context, "allowPrivilegeEscalation", true))
                return;
        if (hf__json_bool(context, "privileged", false))
                hfd_internal_refuse(context, of_context, field,
                                    "cannot set `allowPrivilegeEscalation` to false and "
                                    "`privileged` to true",
                                    causes);
        for (const struct hf__json *m = hf__json_first(added); m; m = hf__json_next(m))
                if (strcmp(hf__json_text_or_empty(m), "CAP_SYS_ADMIN") == 0)
                        hfd_internal_refuse(context, of_context, field,
                                            "cannot set `allowPrivilegeEscalation` to false and "
                                            "`capabilities.Add` CAP_SYS_ADMIN",
                                            causes);
}

void hfd_container_security_validate(const struct hf__json *context, const char *field,
                                     bool host_users, struct hfd_causes *causes) {
        hfd_security_ids_validate(context, field, causes);
        validate_proc_mount(context, field, host_users, causes);
        hfd_seccomp_validate(context, field, causes);
        validate_escalation(context, field, causes);
        hfd_windows_options_validate(context, field, causes);
        hfd_app_armor_validate(context, field, causes);
}
