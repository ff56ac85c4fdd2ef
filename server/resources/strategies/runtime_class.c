/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RuntimeClasses. There are no pods here, so the classes are data for those who run them: the rules
 * keep them as kube-apiserver does.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/names.h"
#include "server/schema/common.h"

#define NODE "io.k8s.api.node.v1."

#define FIELD_MAX 160 /* bytes of the path of a field, with the NUL */

static const struct hfd_schema atomic_map_of_texts = {.type = HFD_SCHEMA_MAP,
                                                      .items = &hfd_schema_text,
                                                      .atomic = true};

static const struct hfd_schema_field overhead_fields[] = {
        {"podFixed", &hfd_schema_map_of_quantities,
         "The resources that each pod needs in addition.", .protobuf_tag = 1},
};
static const struct hfd_schema overhead_schema = {HFD_STRUCT(NODE "Overhead", overhead_fields),
                                                  .description =
                                                          "What it costs to run a pod at all."};

static const struct hfd_schema_field toleration_fields[] = {
        {"effect", &hfd_schema_text,
         "NoSchedule, PreferNoSchedule or NoExecute. Empty: every effect.", .protobuf_tag = 4},
        {"key", &hfd_schema_text, "The key of the taint. Empty: every key.", .protobuf_tag = 1},
        {"operator", &hfd_schema_text, "Exists, or Equal, which is meant if it is empty.",
         .protobuf_tag = 2},
        {"tolerationSeconds", &hfd_schema_int64,
         "How long a taint with the effect NoExecute is tolerated. Absent: for ever.",
         .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"value", &hfd_schema_text, "The value of the taint, for the operator Equal.",
         .protobuf_tag = 3},
};
static const struct hfd_schema toleration_schema = {HFD_STRUCT(HFD_CORE "Toleration",
                                                               toleration_fields),
                                                    .description =
                                                            "Taints that a pod does not mind."};

static const struct hfd_schema_field scheduling_fields[] = {
        {"nodeSelector", &atomic_map_of_texts, "Labels that a node must have to support the class.",
         .protobuf_tag = 1},
        {"tolerations", HFD_LIST_OF(&toleration_schema),
         "Tolerations that the pods of the class get.", .protobuf_tag = 2},
};
static const struct hfd_schema scheduling_schema = {HFD_STRUCT(NODE "Scheduling",
                                                               scheduling_fields),
                                                    .description = "Which nodes support a class."};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        {"handler", &hfd_schema_text,
         "The name by which the nodes know the runtime and its settings. It cannot be changed.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"overhead", &overhead_schema, "What it costs to run a pod of the class.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"scheduling", &scheduling_schema, "Which nodes support the class. Absent: all of them.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_runtime_class_schema =
        {HFD_STRUCT(NODE "RuntimeClass", fields),
         .description = "RuntimeClass names a container runtime that pods can ask for."};

static const char *text_of(const struct hf__json *object, const char *path) {
        const char *text = hf__json_string(object, path);

        return text ? text : "";
}

/* ---- overhead ---- */

static bool is_one_of(const char *text, const char *const *list) {
        while (*list && strcmp(text, *list) != 0)
                list++;
        return *list != NULL;
}

/* Names without a slash that Kubernetes knows for containers, and those it knows elsewhere. */
static bool is_container_resource(const char *name) {
        static const char *const names[] = {"cpu", "memory", "ephemeral-storage", NULL};

        return is_one_of(name, names) || strncmp(name, "hugepages-", 10) == 0;
}

static bool is_standard_resource(const char *name) {
        static const char *const names[] = {"cpu",
                                            "memory",
                                            "ephemeral-storage",
                                            "requests.cpu",
                                            "requests.memory",
                                            "requests.ephemeral-storage",
                                            "limits.cpu",
                                            "limits.memory",
                                            "limits.ephemeral-storage",
                                            "pods",
                                            "resourcequotas",
                                            "services",
                                            "replicationcontrollers",
                                            "secrets",
                                            "configmaps",
                                            "persistentvolumeclaims",
                                            "storage",
                                            "requests.storage",
                                            "services.nodeports",
                                            "services.loadbalancers",
                                            NULL};

        return is_one_of(name, names) || strncmp(name, "hugepages-", 10) == 0 ||
               strncmp(name, "requests.hugepages-", 19) == 0;
}

/* A name with a domain must not be one of Kubernetes' own or a quota's, unless the domain is
 * Kubernetes'. */
static bool is_domain_resource(const char *name) {
        const char *slash = strchr(name, '/');

        return strstr(name, "kubernetes.io/") || (slash && strncmp(name, "requests.", 9) != 0);
}

static void validate_resource_name(const char *name, const char *field, struct hfd_causes *causes) {
        bool plain = !strchr(name, '/');

        if (!hfd_is_qualified_name(name)) {
                hfd_cause_invalid_text(causes, field, name, hfd_qualified_name_rule);
                return;
        }
        if (plain && !is_standard_resource(name))
                hfd_cause_invalid_text(causes, field, name,
                                       "must be a standard resource type or fully qualified");
        if (plain && !is_container_resource(name))
                hfd_cause_invalid_text(causes, field, name,
                                       "must be a standard resource for containers");
        if (!plain && !is_domain_resource(name))
                hfd_cause_invalid_text(causes, field, name,
                                       "doesn't follow extended resource name standard");
}

static bool is_negative(const struct hf__json *amount) {
        const char *text = hf__json_is_string(amount) ? hf__json_text(amount) : NULL;

        return text ? *text == '-' && strpbrk(text, "123456789") != NULL
                    : hf__json_number(amount) < 0;
}

static void validate_overhead(const struct hf__json *object, struct hfd_causes *causes) {
        const struct hf__json *fixed = hf__json_path(object, "overhead.podFixed");
        char field[FIELD_MAX];

        for (const struct hf__json *m = hf__json_first(fixed); m; m = hf__json_next(m)) {
                const char *name = hf__json_key(m);
                (void)snprintf(field, sizeof field, "overhead.limits[%s]", name);
                validate_resource_name(name, field, causes);
                if (is_negative(m))
                        hfd_cause_invalid_text(causes, field, text_of(fixed, name),
                                               "must be greater than or equal to 0");
        }
}

/* ---- scheduling ---- */

/* The whole toleration as the value of a cause, with the names of Kubernetes' internal type. */
static void refuse_value_of_exists(const struct hf__json *t, const char *field,
                                   struct hfd_causes *causes) {
        static const char *const names[][2] = {{"Key", "key"},
                                               {"Operator", "operator"},
                                               {"Value", "value"},
                                               {"Effect", "effect"}};
        struct hf__strbuf value = {0};
        int64_t seconds;

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                const char *text = text_of(t, names[i][1]);
                hf__strbuf_printf(&value, "%s\"%s\":", i == 0 ? "{" : ",", names[i][0]);
                hf__strbuf_json(&value, text, strlen(text));
        }
        if (hf__json_i64(t, "tolerationSeconds", &seconds))
                hf__strbuf_printf(&value, ",\"TolerationSeconds\":%lld}", (long long)seconds);
        else
                hf__strbuf_puts(&value, ",\"TolerationSeconds\":null}");
        hfd_cause_invalid(causes, field, value.error == 0 ? value.data : "",
                          "value must be empty when `operator` is 'Exists'");
        hf__strbuf_done(&value);
}

static void validate_operator(const struct hf__json *t, const char *field,
                              struct hfd_causes *causes) {
        const char *op = text_of(t, "operator"), *value = text_of(t, "value");

        if (strcmp(op, "Exists") == 0) {
                if (*value)
                        refuse_value_of_exists(t, field, causes);
        } else if (*op && strcmp(op, "Equal") != 0) {
                hfd_cause_unsupported_text(causes, field, op, "\"Equal\", \"Exists\"");
        } else if (strlen(value) > HFD_LABEL_VALUE_MAX) {
                hfd_cause_invalid_text(causes, field, value, "must be no more than 63 bytes");
        } else if (!hfd_is_label_value(value)) {
                hfd_cause_invalid_text(causes, field, value, hfd_label_value_rule);
        }
}

static void validate_toleration(const struct hf__json *t, size_t i, struct hfd_causes *causes) {
        static const char *const effects[] = {"", "NoSchedule", "PreferNoSchedule", "NoExecute",
                                              NULL};
        const char *key = text_of(t, "key"), *op = text_of(t, "operator"),
                   *effect = text_of(t, "effect");
        char of_key[64], of_operator[64], of_effect[64];

        (void)snprintf(of_key, sizeof of_key, "scheduling.tolerations[%zu].key", i);
        (void)snprintf(of_operator, sizeof of_operator, "scheduling.tolerations[%zu].operator", i);
        (void)snprintf(of_effect, sizeof of_effect, "scheduling.tolerations[%zu].effect", i);
        if (*key && !hfd_is_qualified_name(key))
                hfd_cause_invalid_text(causes, of_key, key, hfd_qualified_name_rule);
        if (!*key && strcmp(op, "Exists") != 0)
                hfd_cause_invalid_text(causes, of_operator, op,
                                       "operator must be Exists when `key` is empty, which means "
                                       "\"match all values and all keys\"");
        if (hf__json_get(t, "tolerationSeconds") && strcmp(effect, "NoExecute") != 0)
                hfd_cause_invalid_text(causes, of_effect, effect,
                                       "effect must be 'NoExecute' when `tolerationSeconds` is "
                                       "set");
        validate_operator(t, of_operator, causes);
        if (!is_one_of(effect, effects))
                hfd_cause_unsupported_text(causes, of_effect, effect,
                                           "\"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"");
}

static void validate_scheduling(const struct hf__json *object, struct hfd_causes *causes) {
        static const char field[] = "scheduling.nodeSelector";
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_path(object, field)); m;
             m = hf__json_next(m)) {
                const char *value = hf__json_text(m);
                if (!hfd_is_qualified_name(hf__json_key(m)))
                        hfd_cause_invalid_text(causes, field, hf__json_key(m),
                                               hfd_qualified_name_rule);
                if (strlen(value) > HFD_LABEL_VALUE_MAX)
                        hfd_cause_invalid_text(causes, field, value,
                                               "must be no more than 63 bytes");
                else if (!hfd_is_label_value(value))
                        hfd_cause_invalid_text(causes, field, value, hfd_label_value_rule);
        }
        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(object, "scheduling.tolerations"));
             m; m = hf__json_next(m))
                validate_toleration(m, i++, causes);
}

void hfd_runtime_class_validate(const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes) {
        const char *handler = text_of(object, "handler");

        if (old) { /* as in Kubernetes, nothing else is checked then */
                if (strcmp(handler, text_of(old, "handler")) != 0)
                        hfd_cause_invalid_text(causes, "handler", handler, "field is immutable");
                return;
        }
        if (!*handler)
                hfd_cause_required(causes, "handler", "");
        else if (strlen(handler) > HFD_DNS_LABEL_MAX)
                hfd_cause_invalid_text(causes, "handler", handler, "must be no more than 63 bytes");
        else if (!hfd_is_dns_label(handler))
                hfd_cause_invalid_text(causes, "handler", handler, hfd_dns_label_rule);
        validate_overhead(object, causes);
        validate_scheduling(object, causes);
}
