/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of containers, and of what they contain: environment variables, ports,
 * mounts and resources.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/core/v1: the name in JSON, the
 * schema of the value, a description for `kubectl explain`, the number of the field in protobuf
 * (protobuf_tag), and flags. HFD_FIELD_POINTER stands for a Go pointer, HFD_FIELD_MERGE and
 * merge_key for the struct tags patchStrategy and patchMergeKey, list_type and list_keys for the
 * markers +listType and +listMapKey, and embedded_tag for the number of an embedded struct, which
 * is an inner message in protobuf. A schema named *_text (not hfd_schema_text) is a Go string type
 * with a name of its own; error messages show this name.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/strategies/pod/pod_schema.h"

#include "server/schema/common.h"

static const struct hfd_schema protocol_text = {.type = HFD_SCHEMA_TEXT,
                                                .definition = HFD_CORE "Protocol"};
static const char *const by_name[] = {"name", NULL};
static const struct hfd_schema resource_name_text = {.type = HFD_SCHEMA_TEXT,
                                                     .definition = HFD_CORE "ResourceName"};
static const struct hfd_schema resource_resize_restart_policy_text =
        {.type = HFD_SCHEMA_TEXT, .definition = HFD_CORE "ResourceResizeRestartPolicy"};
static const struct hfd_schema container_restart_rule_on_exit_codes_operator_text =
        {.type = HFD_SCHEMA_TEXT, .definition = HFD_CORE "ContainerRestartRuleOnExitCodesOperator"};
static const struct hfd_schema container_restart_rule_action_text = {.type = HFD_SCHEMA_TEXT,
                                                                     .definition = HFD_CORE
                                                                     "ContainerRestartRuleAction"};
static const struct hfd_schema mount_propagation_mode_text = {.type = HFD_SCHEMA_TEXT,
                                                              .definition = HFD_CORE
                                                              "MountPropagationMode"};
static const struct hfd_schema recursive_read_only_mode_text = {.type = HFD_SCHEMA_TEXT,
                                                                .definition = HFD_CORE
                                                                "RecursiveReadOnlyMode"};
static const struct hfd_schema pull_policy_text = {.type = HFD_SCHEMA_TEXT,
                                                   .definition = HFD_CORE "PullPolicy"};
/* Apply tells ports apart by number and protocol, a strategic merge patch by merge_key alone,
 * because patchMergeKey can name only one. So such a patch takes UDP 53 and TCP 53 for the same
 * port, as in Kubernetes. */
static const char *const by_container_port_and_protocol[] = {"containerPort", "protocol", NULL};
static const struct hfd_schema container_restart_policy_text = {.type = HFD_SCHEMA_TEXT,
                                                                .definition = HFD_CORE
                                                                "ContainerRestartPolicy"};
static const struct hfd_schema termination_message_policy_text = {.type = HFD_SCHEMA_TEXT,
                                                                  .definition = HFD_CORE
                                                                  "TerminationMessagePolicy"};
static const char *const by_device_path[] = {"devicePath", NULL};
static const char *const by_mount_path[] = {"mountPath", NULL};

/* "protocol" is a part of the list's key, and may be absent: key_default is the value that an
 * absent one stands for, so that the two forms of a port are the same element. */
static const struct hfd_schema_field container_port_fields[] = {
        {"containerPort", &hfd_schema_int32, "The number of the port in the pod.",
         .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"hostIP", &hfd_schema_text, "The address of the host at which the port is opened.",
         .protobuf_tag = 5},
        {"hostPort", &hfd_schema_int32, "The number of the port at the host.", .protobuf_tag = 2},
        {"name", &hfd_schema_text, "The name of the port, by which services refer to it.",
         .protobuf_tag = 1},
        {"protocol", &protocol_text, "TCP, UDP or SCTP.", .protobuf_tag = 4, .key_default = "TCP"},
};
static const struct hfd_schema container_port = {HFD_STRUCT(HFD_CORE "ContainerPort",
                                                            container_port_fields),
                                                 .description = "A port that a container opens."};

/* Go embeds a LocalObjectReference in these structs, so in protobuf the name is in an inner
 * message: embedded_tag. */
static const struct hfd_schema_field config_map_env_source_fields[] = {
        {"name", &hfd_schema_text, "The name of the ConfigMap.", .protobuf_tag = 1,
         .embedded_tag = 1},
        {"optional", &hfd_schema_boolean, "Whether the ConfigMap may be missing.",
         .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema config_map_env_source = {HFD_STRUCT(HFD_CORE "ConfigMapEnvSource",
                                                                   config_map_env_source_fields),
                                                        .embedded = "LocalObjectReference"};

static const struct hfd_schema_field secret_env_source_fields[] = {
        {"name", &hfd_schema_text, "The name of the Secret.", .protobuf_tag = 1, .embedded_tag = 1},
        {"optional", &hfd_schema_boolean, "Whether the Secret may be missing.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema secret_env_source = {HFD_STRUCT(HFD_CORE "SecretEnvSource",
                                                               secret_env_source_fields),
                                                    .embedded = "LocalObjectReference"};

static const struct hfd_schema_field env_from_source_fields[] = {
        {"configMapRef", &config_map_env_source, "The ConfigMap that has the variables.",
         .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"prefix", &hfd_schema_text, "A text before each name.", .protobuf_tag = 1},
        {"secretRef", &secret_env_source, "The Secret that has the variables.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema env_from_source = {
        HFD_STRUCT(HFD_CORE "EnvFromSource", env_from_source_fields)};

/* The selectors of keys are atomic, so they have one owner: a key of one manager together with the
 * name of another one would refer to what neither of them means. */
static const struct hfd_schema_field config_map_key_selector_fields[] = {
        {"key", &hfd_schema_text, "The key whose value is taken.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text, "The name of the ConfigMap.", .protobuf_tag = 1,
         .embedded_tag = 1},
        {"optional", &hfd_schema_boolean, "Whether the ConfigMap or its key may be missing.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema config_map_key_selector =
        {HFD_STRUCT(HFD_CORE "ConfigMapKeySelector", config_map_key_selector_fields),
         .embedded = "LocalObjectReference", .atomic = true};

static const struct hfd_schema_field secret_key_selector_fields[] = {
        {"key", &hfd_schema_text, "The key whose value is taken.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text, "The name of the Secret.", .protobuf_tag = 1, .embedded_tag = 1},
        {"optional", &hfd_schema_boolean, "Whether the Secret or its key may be missing.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema secret_key_selector = {HFD_STRUCT(HFD_CORE "SecretKeySelector",
                                                                 secret_key_selector_fields),
                                                      .embedded = "LocalObjectReference",
                                                      .atomic = true};

static const struct hfd_schema_field file_key_selector_fields[] = {
        {"key", &hfd_schema_text, "The key whose value is taken.", .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED},
        {"optional", &hfd_schema_boolean, "Whether the file or its key may be missing.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"path", &hfd_schema_text, "The path of the file in the volume.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"volumeName", &hfd_schema_text, "The name of the volume.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema file_key_selector = {HFD_STRUCT(HFD_CORE "FileKeySelector",
                                                               file_key_selector_fields),
                                                    .atomic = true};

/* Each source is a Go pointer, because a variable has exactly one of them. */
static const struct hfd_schema_field env_var_source_fields[] = {
        {"configMapKeyRef", &config_map_key_selector, "A key of a ConfigMap.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"fieldRef", &hfd_object_field_selector_schema, "A field of the pod.", .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
        {"fileKeyRef", &file_key_selector, "A key in a file of a volume.", .protobuf_tag = 5,
         .flags = HFD_FIELD_POINTER},
        {"resourceFieldRef", &hfd_resource_field_selector_schema, "A resource of a container.",
         .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"secretKeyRef", &secret_key_selector, "A key of a Secret.", .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema env_var_source = {HFD_STRUCT(HFD_CORE "EnvVarSource",
                                                            env_var_source_fields),
                                                 .description =
                                                         "Where the value of a variable is from."};

static const struct hfd_schema_field env_var_fields[] = {
        {"name", &hfd_schema_text, "The name of the variable.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"value", &hfd_schema_text, "The value. $(NAME) stands for the value of another variable.",
         .protobuf_tag = 2},
        {"valueFrom", &env_var_source, "Where the value is from. It excludes value.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema env_var = {HFD_STRUCT(HFD_CORE "EnvVar", env_var_fields),
                                          .description =
                                                  "A variable in the environment of a container."};

static const struct hfd_schema_field resource_claim_fields[] = {
        {"name", &hfd_schema_text, "The name of an entry in the resourceClaims of the pod.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"request", &hfd_schema_text, "The name of one request of the claim.", .protobuf_tag = 2},
};
static const struct hfd_schema resource_claim = {
        HFD_STRUCT(HFD_CORE "ResourceClaim", resource_claim_fields)};

/* The maps are granular: an autoscaler can own the CPU, and a user the memory of the same
 * container. */
static const struct hfd_schema_field resource_requirements_fields[] = {
        {"claims", HFD_LIST_OF(&resource_claim, .list_type = HFD_LIST_MAP, .list_keys = by_name),
         "Resource claims of the pod that the container uses.", .protobuf_tag = 3},
        {"limits", &hfd_schema_resource_list, "The most of each resource that may be used.",
         .protobuf_tag = 1},
        {"requests", &hfd_schema_resource_list, "The least of each resource that is needed.",
         .protobuf_tag = 2},
};
const struct hfd_schema hfd_resource_requirements_schema =
        {HFD_STRUCT(HFD_CORE "ResourceRequirements", resource_requirements_fields),
         .description = "What a program needs, and how much it may use."};

/* The list of these policies is atomic, although a container has at most one for each resource. A
 * policy decides whether a change of resources restarts the container. */
static const struct hfd_schema_field container_resize_policy_fields[] = {
        {"resourceName", &resource_name_text, "The resource: cpu or memory.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"restartPolicy", &resource_resize_restart_policy_text, "NotRequired or RestartContainer.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema container_resize_policy = {
        HFD_STRUCT(HFD_CORE "ContainerResizePolicy", container_resize_policy_fields)};

static const struct hfd_schema_field container_restart_rule_on_exit_codes_fields[] = {
        {"operator", &container_restart_rule_on_exit_codes_operator_text, "In or NotIn.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"values", HFD_LIST_OF(&hfd_schema_int32, .list_type = HFD_LIST_SET), "The exit codes.",
         .protobuf_tag = 2},
};
static const struct hfd_schema container_restart_rule_on_exit_codes = {
        HFD_STRUCT(HFD_CORE "ContainerRestartRuleOnExitCodes",
                   container_restart_rule_on_exit_codes_fields)};

static const struct hfd_schema_field container_restart_rule_fields[] = {
        {"action", &container_restart_rule_action_text,
         "What is done if the rule matches: Restart.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"exitCodes", &container_restart_rule_on_exit_codes,
         "The exit codes for which the rule matches.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema container_restart_rule = {
        HFD_STRUCT(HFD_CORE "ContainerRestartRule", container_restart_rule_fields)};

/* The path, not the name, identifies a mount: a container may mount a volume at several paths, but
 * only one volume at a path. */
static const struct hfd_schema_field volume_mount_fields[] = {
        {"mountPath", &hfd_schema_text, "The path in the container. It may not contain a colon.",
         .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"mountPropagation", &mount_propagation_mode_text,
         "None, HostToContainer or Bidirectional.", .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"name", &hfd_schema_text, "The name of the volume.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"readOnly", &hfd_schema_boolean, "Whether it can only be read.", .protobuf_tag = 2},
        {"recursiveReadOnly", &recursive_read_only_mode_text,
         "Whether mounts below it can only be read too.", .protobuf_tag = 7,
         .flags = HFD_FIELD_POINTER},
        {"subPath", &hfd_schema_text,
         "The path in the volume that is mounted. Not allowed in an ephemeral container.",
         .protobuf_tag = 4},
        {"subPathExpr", &hfd_schema_text,
         "Like subPath, but $(NAME) stands for an environment variable of the container. Not "
         "allowed "
         "in an ephemeral container.",
         .protobuf_tag = 6},
};
static const struct hfd_schema volume_mount = {HFD_STRUCT(HFD_CORE "VolumeMount",
                                                          volume_mount_fields),
                                               .description = "Where a container sees a volume."};

static const struct hfd_schema_field volume_device_fields[] = {
        {"devicePath", &hfd_schema_text, "The path of the device in the container.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text, "The name of the volume.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema volume_device = {
        HFD_STRUCT(HFD_CORE "VolumeDevice", volume_device_fields)};

/* Init containers have the same Go struct. An init container with the restartPolicy Always is a
 * sidecar (rules/container_validation.c). */
static const struct hfd_schema_field container_fields[] = {
        {"args", &hfd_schema_list_of_texts,
         "Arguments of the entry point. Absent: those of the image.", .protobuf_tag = 4},
        {"command", &hfd_schema_list_of_texts,
         "The command, instead of the entry point of the image. No shell runs it.",
         .protobuf_tag = 3},
        {"env", HFD_LIST_OF(&env_var, .list_type = HFD_LIST_MAP, .list_keys = by_name),
         "Environment variables.", .merge_key = "name", .protobuf_tag = 7,
         .flags = HFD_FIELD_MERGE},
        {"envFrom", HFD_LIST_OF(&env_from_source),
         "Objects whose keys become environment variables.", .protobuf_tag = 19},
        {"image", &hfd_schema_text, "The name of the image.", .protobuf_tag = 2},
        {"imagePullPolicy", &pull_policy_text, "Always, Never or IfNotPresent.",
         .protobuf_tag = 14},
        {"lifecycle", &hfd_lifecycle_schema,
         "What is done after the start and before the stop of the container.", .protobuf_tag = 12,
         .flags = HFD_FIELD_POINTER},
        {"livenessProbe", &hfd_probe_schema,
         "A probe after whose failure the container is restarted.", .protobuf_tag = 10,
         .flags = HFD_FIELD_POINTER},
        {"name", &hfd_schema_text, "The name of the container, unique in the pod.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"ports",
         HFD_LIST_OF(&container_port, .list_type = HFD_LIST_MAP,
                     .list_keys = by_container_port_and_protocol),
         "Ports that the container opens. A port that is not listed can be reached all the same.",
         .merge_key = "containerPort", .protobuf_tag = 6, .flags = HFD_FIELD_MERGE},
        {"readinessProbe", &hfd_probe_schema,
         "A probe that decides whether services send requests to the container.",
         .protobuf_tag = 11, .flags = HFD_FIELD_POINTER},
        {"resizePolicy", HFD_LIST_OF(&container_resize_policy),
         "What a change of resources does to the container.", .protobuf_tag = 23},
        {"resources", &hfd_resource_requirements_schema,
         "The resources that are needed, and how much may be used.", .protobuf_tag = 8},
        {"restartPolicy", &container_restart_policy_text,
         "Always makes an init container run beside the others.", .protobuf_tag = 24,
         .flags = HFD_FIELD_POINTER},
        {"restartPolicyRules", HFD_LIST_OF(&container_restart_rule),
         "Rules that decide by the exit code whether the container is restarted.",
         .protobuf_tag = 25},
        {"securityContext", &hfd_security_context_schema,
         "Users, groups and rights of the processes.", .protobuf_tag = 15,
         .flags = HFD_FIELD_POINTER},
        {"startupProbe", &hfd_probe_schema,
         "A probe before whose success the other probes of the container do not begin.",
         .protobuf_tag = 22, .flags = HFD_FIELD_POINTER},
        {"stdin", &hfd_schema_boolean, "Whether there is a standard input.", .protobuf_tag = 16},
        {"stdinOnce", &hfd_schema_boolean,
         "Whether the standard input ends after the first session.", .protobuf_tag = 17},
        {"terminationMessagePath", &hfd_schema_text,
         "The file whose contents become the message of the container.", .protobuf_tag = 13},
        {"terminationMessagePolicy", &termination_message_policy_text,
         "File or FallbackToLogsOnError: where the message is from.", .protobuf_tag = 20},
        {"tty", &hfd_schema_boolean, "Whether there is a terminal. It needs stdin.",
         .protobuf_tag = 18},
        {"volumeDevices",
         HFD_LIST_OF(&volume_device, .list_type = HFD_LIST_MAP, .list_keys = by_device_path),
         "Volumes that the container uses as devices.", .merge_key = "devicePath",
         .protobuf_tag = 21, .flags = HFD_FIELD_MERGE},
        {"volumeMounts",
         HFD_LIST_OF(&volume_mount, .list_type = HFD_LIST_MAP, .list_keys = by_mount_path),
         "Volumes that the container sees, and where.", .merge_key = "mountPath", .protobuf_tag = 9,
         .flags = HFD_FIELD_MERGE},
        {"workingDir", &hfd_schema_text, "The working directory.", .protobuf_tag = 5},
};
const struct hfd_schema hfd_container_schema = {HFD_STRUCT(HFD_CORE "Container", container_fields),
                                                .description = "A program that runs in a pod."};

/* Go embeds an EphemeralContainerCommon, which has the fields of a container: in protobuf they are
 * in the inner message 1. Some of them are not allowed here. The schema has them all the same, so
 * that the rules can refuse them: an unknown field is only dropped, unless fieldValidation is
 * Strict. */
static const struct hfd_schema_field ephemeral_container_fields[] = {
        {"args", &hfd_schema_list_of_texts,
         "Arguments of the entry point. Absent: those of the image.", .protobuf_tag = 4,
         .embedded_tag = 1},
        {"command", &hfd_schema_list_of_texts,
         "The command, instead of the entry point of the image. No shell runs it.",
         .protobuf_tag = 3, .embedded_tag = 1},
        {"env", HFD_LIST_OF(&env_var, .list_type = HFD_LIST_MAP, .list_keys = by_name),
         "Environment variables.", .merge_key = "name", .protobuf_tag = 7, .embedded_tag = 1,
         .flags = HFD_FIELD_MERGE},
        {"envFrom", HFD_LIST_OF(&env_from_source),
         "Objects whose keys become environment variables.", .protobuf_tag = 19, .embedded_tag = 1},
        {"image", &hfd_schema_text, "The name of the image.", .protobuf_tag = 2, .embedded_tag = 1},
        {"imagePullPolicy", &pull_policy_text, "Always, Never or IfNotPresent.", .protobuf_tag = 14,
         .embedded_tag = 1},
        {"lifecycle", &hfd_lifecycle_schema, "Not allowed in an ephemeral container.",
         .protobuf_tag = 12, .embedded_tag = 1, .flags = HFD_FIELD_POINTER},
        {"livenessProbe", &hfd_probe_schema, "Not allowed in an ephemeral container.",
         .protobuf_tag = 10, .embedded_tag = 1, .flags = HFD_FIELD_POINTER},
        {"name", &hfd_schema_text, "The name of the container, unique in the pod.",
         .protobuf_tag = 1, .embedded_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"ports",
         HFD_LIST_OF(&container_port, .list_type = HFD_LIST_MAP,
                     .list_keys = by_container_port_and_protocol),
         "Not allowed in an ephemeral container.", .merge_key = "containerPort", .protobuf_tag = 6,
         .embedded_tag = 1, .flags = HFD_FIELD_MERGE},
        {"readinessProbe", &hfd_probe_schema, "Not allowed in an ephemeral container.",
         .protobuf_tag = 11, .embedded_tag = 1, .flags = HFD_FIELD_POINTER},
        {"resizePolicy", HFD_LIST_OF(&container_resize_policy),
         "Not allowed in an ephemeral container.", .protobuf_tag = 23, .embedded_tag = 1},
        {"resources", &hfd_resource_requirements_schema, "Not allowed in an ephemeral container.",
         .protobuf_tag = 8, .embedded_tag = 1},
        {"restartPolicy", &container_restart_policy_text, "Not allowed in an ephemeral container.",
         .protobuf_tag = 24, .embedded_tag = 1, .flags = HFD_FIELD_POINTER},
        {"restartPolicyRules", HFD_LIST_OF(&container_restart_rule),
         "Not allowed in an ephemeral container.", .protobuf_tag = 25, .embedded_tag = 1},
        {"securityContext", &hfd_security_context_schema,
         "Users, groups and rights of the processes.", .protobuf_tag = 15, .embedded_tag = 1,
         .flags = HFD_FIELD_POINTER},
        {"startupProbe", &hfd_probe_schema, "Not allowed in an ephemeral container.",
         .protobuf_tag = 22, .embedded_tag = 1, .flags = HFD_FIELD_POINTER},
        {"stdin", &hfd_schema_boolean, "Whether there is a standard input.", .protobuf_tag = 16,
         .embedded_tag = 1},
        {"stdinOnce", &hfd_schema_boolean,
         "Whether the standard input ends after the first session.", .protobuf_tag = 17,
         .embedded_tag = 1},
        {"targetContainerName", &hfd_schema_text, "The container whose processes are seen.",
         .protobuf_tag = 2},
        {"terminationMessagePath", &hfd_schema_text,
         "The file whose contents become the message of the container.", .protobuf_tag = 13,
         .embedded_tag = 1},
        {"terminationMessagePolicy", &termination_message_policy_text,
         "File or FallbackToLogsOnError: where the message is from.", .protobuf_tag = 20,
         .embedded_tag = 1},
        {"tty", &hfd_schema_boolean, "Whether there is a terminal. It needs stdin.",
         .protobuf_tag = 18, .embedded_tag = 1},
        {"volumeDevices",
         HFD_LIST_OF(&volume_device, .list_type = HFD_LIST_MAP, .list_keys = by_device_path),
         "Volumes that the container uses as devices.", .merge_key = "devicePath",
         .protobuf_tag = 21, .embedded_tag = 1, .flags = HFD_FIELD_MERGE},
        {"volumeMounts",
         HFD_LIST_OF(&volume_mount, .list_type = HFD_LIST_MAP, .list_keys = by_mount_path),
         "Volumes that the container sees, and where.", .merge_key = "mountPath", .protobuf_tag = 9,
         .embedded_tag = 1, .flags = HFD_FIELD_MERGE},
        {"workingDir", &hfd_schema_text, "The working directory.", .protobuf_tag = 5,
         .embedded_tag = 1},
};
const struct hfd_schema hfd_ephemeral_container_schema =
        {HFD_STRUCT(HFD_CORE "EphemeralContainer", ephemeral_container_fields),
         .embedded = "EphemeralContainerCommon",
         .description = "A program that is added to a running pod to examine it."};
