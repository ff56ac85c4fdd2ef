/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of the security contexts of pods and containers.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/core/v1: the name in JSON, the
 * schema of the value, a description for `kubectl explain`, the number of the field in protobuf
 * (protobuf_tag), and flags. HFD_FIELD_POINTER stands for a Go pointer. A schema *_text of this
 * file is a Go string type with a name of its own; error messages show this name.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/strategies/pod/pod_schema.h"

#include "server/schema/common.h"

static const struct hfd_schema capability_text = {.type = HFD_SCHEMA_TEXT,
                                                  .definition = HFD_CORE "Capability"};
static const struct hfd_schema seccomp_profile_type_text = {.type = HFD_SCHEMA_TEXT,
                                                            .definition =
                                                                    HFD_CORE "SeccompProfileType"};
static const struct hfd_schema app_armor_profile_type_text = {.type = HFD_SCHEMA_TEXT,
                                                              .definition = HFD_CORE
                                                              "AppArmorProfileType"};
static const struct hfd_schema proc_mount_type_text = {.type = HFD_SCHEMA_TEXT,
                                                       .definition = HFD_CORE "ProcMountType"};
static const struct hfd_schema pod_fs_group_change_policy_text = {.type = HFD_SCHEMA_TEXT,
                                                                  .definition = HFD_CORE
                                                                  "PodFSGroupChangePolicy"};
static const struct hfd_schema pod_se_linux_change_policy_text = {.type = HFD_SCHEMA_TEXT,
                                                                  .definition = HFD_CORE
                                                                  "PodSELinuxChangePolicy"};
static const struct hfd_schema supplemental_groups_policy_text = {.type = HFD_SCHEMA_TEXT,
                                                                  .definition = HFD_CORE
                                                                  "SupplementalGroupsPolicy"};

static const struct hfd_schema_field capabilities_fields[] = {
        {"add", HFD_LIST_OF(&capability_text), "Capabilities that the processes get in addition.",
         .protobuf_tag = 1},
        {"drop", HFD_LIST_OF(&capability_text), "Capabilities that the processes lose.",
         .protobuf_tag = 2},
};
static const struct hfd_schema capabilities = {
        HFD_STRUCT(HFD_CORE "Capabilities", capabilities_fields)};

static const struct hfd_schema_field se_linux_options_fields[] = {
        {"level", &hfd_schema_text, "The level of SELinux.", .protobuf_tag = 4},
        {"role", &hfd_schema_text, "The role of SELinux.", .protobuf_tag = 2},
        {"type", &hfd_schema_text, "The type.", .protobuf_tag = 3},
        {"user", &hfd_schema_text, "The user.", .protobuf_tag = 1},
};
static const struct hfd_schema se_linux_options = {
        HFD_STRUCT(HFD_CORE "SELinuxOptions", se_linux_options_fields)};

static const struct hfd_schema_field windows_security_context_options_fields[] = {
        {"gmsaCredentialSpec", &hfd_schema_text,
         "The credential spec of the account of a group of machines.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"gmsaCredentialSpecName", &hfd_schema_text, "The name of the credential spec.",
         .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"hostProcess", &hfd_schema_boolean, "Whether the container runs in the host itself.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"runAsUserName", &hfd_schema_text, "The name of the user of the processes.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema windows_options = {
        HFD_STRUCT(HFD_CORE "WindowsSecurityContextOptions",
                   windows_security_context_options_fields)};

static const struct hfd_schema_field seccomp_profile_fields[] = {
        {"localhostProfile", &hfd_schema_text, "The profile on the node, for the type Localhost.",
         .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"type", &seccomp_profile_type_text, "Localhost, RuntimeDefault or Unconfined.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema seccomp_profile = {
        HFD_STRUCT(HFD_CORE "SeccompProfile", seccomp_profile_fields)};

static const struct hfd_schema_field app_armor_profile_fields[] = {
        {"localhostProfile", &hfd_schema_text, "The profile on the node, for the type Localhost.",
         .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"type", &app_armor_profile_type_text, "Localhost, RuntimeDefault or Unconfined.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema app_armor_profile = {
        HFD_STRUCT(HFD_CORE "AppArmorProfile", app_armor_profile_fields)};

/* All fields are pointers. An absent one takes the value of the pod's security context or of the
 * image, or a default; `false` and 0, which is root, are decisions of the container. */
static const struct hfd_schema_field security_context_fields[] = {
        {"allowPrivilegeEscalation", &hfd_schema_boolean,
         "Whether a process can gain more rights than its parent has.", .protobuf_tag = 7,
         .flags = HFD_FIELD_POINTER},
        {"appArmorProfile", &app_armor_profile, "The AppArmor profile of the processes.",
         .protobuf_tag = 12, .flags = HFD_FIELD_POINTER},
        {"capabilities", &capabilities, "Capabilities that the processes have or lack.",
         .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"privileged", &hfd_schema_boolean,
         "Whether the container has all rights of the host's root.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"procMount", &proc_mount_type_text, "Default or Unmasked: what of /proc is hidden.",
         .protobuf_tag = 9, .flags = HFD_FIELD_POINTER},
        {"readOnlyRootFilesystem", &hfd_schema_boolean,
         "Whether the root file system can only be read.", .protobuf_tag = 6,
         .flags = HFD_FIELD_POINTER},
        {"runAsGroup", &hfd_schema_int64, "The group of the processes.", .protobuf_tag = 8,
         .flags = HFD_FIELD_POINTER},
        {"runAsNonRoot", &hfd_schema_boolean,
         "Whether a container is refused whose user would be root.", .protobuf_tag = 5,
         .flags = HFD_FIELD_POINTER},
        {"runAsUser", &hfd_schema_int64, "The user of the processes.", .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
        {"seLinuxOptions", &se_linux_options, "The context of SELinux.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"seccompProfile", &seccomp_profile, "The system calls that the processes may make.",
         .protobuf_tag = 11, .flags = HFD_FIELD_POINTER},
        {"windowsOptions", &windows_options, "Settings for Windows.", .protobuf_tag = 10,
         .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_security_context_schema = {HFD_STRUCT(HFD_CORE "SecurityContext",
                                                                  security_context_fields),
                                                       .description = "The rights of a container."};

static const struct hfd_schema_field sysctl_fields[] = {
        {"name", &hfd_schema_text, "The name.", .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"value", &hfd_schema_text, "The value.", .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema sysctl = {HFD_STRUCT(HFD_CORE "Sysctl", sysctl_fields)};

/* A field that SecurityContext has too is a default for all containers. fsGroup and sysctls exist
 * only here, because the containers share the volumes and the namespaces of the pod. */
static const struct hfd_schema_field pod_security_context_fields[] = {
        {"appArmorProfile", &app_armor_profile, "The AppArmor profile of the processes.",
         .protobuf_tag = 11, .flags = HFD_FIELD_POINTER},
        {"fsGroup", &hfd_schema_int64,
         "The group that owns the volumes, and that all processes have.", .protobuf_tag = 5,
         .flags = HFD_FIELD_POINTER},
        {"fsGroupChangePolicy", &pod_fs_group_change_policy_text,
         "When the owner of a volume is changed: OnRootMismatch or Always.", .protobuf_tag = 9,
         .flags = HFD_FIELD_POINTER},
        {"runAsGroup", &hfd_schema_int64, "The group of the processes.", .protobuf_tag = 6,
         .flags = HFD_FIELD_POINTER},
        {"runAsNonRoot", &hfd_schema_boolean,
         "Whether a container is refused whose user would be root.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"runAsUser", &hfd_schema_int64, "The user of the processes.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"seLinuxChangePolicy", &pod_se_linux_change_policy_text,
         "How labels of volumes are set: Recursive or MountOption.", .protobuf_tag = 13,
         .flags = HFD_FIELD_POINTER},
        {"seLinuxOptions", &se_linux_options, "The context of SELinux.", .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
        {"seccompProfile", &seccomp_profile, "The system calls that the processes may make.",
         .protobuf_tag = 10, .flags = HFD_FIELD_POINTER},
        {"supplementalGroups", HFD_LIST_OF(&hfd_schema_int64), "Further groups of the processes.",
         .protobuf_tag = 4},
        {"supplementalGroupsPolicy", &supplemental_groups_policy_text,
         "Merge or Strict: whether groups of the image count.", .protobuf_tag = 12,
         .flags = HFD_FIELD_POINTER},
        {"sysctls", HFD_LIST_OF(&sysctl), "Settings of the kernel.", .protobuf_tag = 7},
        {"windowsOptions", &windows_options, "Settings for Windows.", .protobuf_tag = 8,
         .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_pod_security_context_schema =
        {HFD_STRUCT(HFD_CORE "PodSecurityContext", pod_security_context_fields),
         .description = "The rights that all containers of a pod have."};
