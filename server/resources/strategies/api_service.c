/* SPDX-License-Identifier: Apache-2.0 */
/*
 * APIServices: one for each group version. A controller (server/controllers/api_services) creates
 * those of the groups that this server serves. One that names a service is stored, but requests are
 * never passed to a service: requests to its group version get 503, unless this server serves it
 * (server/handlers/rest/remote_group.c). Discovery has an order of its own
 * (server/resources/group_priority.c) and does not read the priorities here.
 *
 * Invariants: names, types and numbers are those of k8s.io/kube-aggregator and never change. The
 * rows of a table are sorted by name (strcmp), because look-ups bisect it. The texts of the causes
 * are those of kube-apiserver.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/names.h"
#include "server/schema/common.h"

#define REGISTRATION "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1."

/* Kubernetes' limits. Its core group, the first in discovery, has the priority 18000. */
#define GROUP_PRIORITY_MAX   20000
#define VERSION_PRIORITY_MAX 1000

static const struct hfd_schema_field service_fields[] = {
        {"name", &hfd_schema_text, "The name of the service.", .protobuf_tag = 2},
        {"namespace", &hfd_schema_text, "The namespace of the service.", .protobuf_tag = 1},
        {"port", &hfd_schema_int32, "The port of the service; 443 if it is absent.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema service_schema = {HFD_STRUCT(REGISTRATION "ServiceReference",
                                                            service_fields),
                                                 .description = "Names a service."};

static const struct hfd_schema_field spec_fields[] = {
        {"caBundle", &hfd_schema_bytes, "CA certificates in PEM, by which the service is trusted.",
         .protobuf_tag = 5},
        {"group", &hfd_schema_text, "The name of the group.", .protobuf_tag = 2},
        {"groupPriorityMinimum", &hfd_schema_int32,
         "Groups with a higher priority come first in discovery.", .protobuf_tag = 7,
         .flags = HFD_FIELD_REQUIRED},
        {"insecureSkipTLSVerify", &hfd_schema_boolean,
         "Whether the service is trusted without a look at its certificate.", .protobuf_tag = 4},
        {"service", &service_schema,
         "The service that answers for the group version. Absent: this server does.",
         .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"version", &hfd_schema_text, "The name of the version.", .protobuf_tag = 3},
        {"versionPriority", &hfd_schema_int32,
         "Versions of a group with a higher priority come first.", .protobuf_tag = 8,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema spec_schema = {HFD_STRUCT(REGISTRATION "APIServiceSpec",
                                                         spec_fields),
                                              .description = "Who answers for a group version."};

static const struct hfd_schema_field condition_fields[] = {
        {"lastTransitionTime", &hfd_schema_time, "When the status last changed.",
         .protobuf_tag = 3},
        {"message", &hfd_schema_text, "Details for a human reader.", .protobuf_tag = 5},
        {"reason", &hfd_schema_text, "Why the status last changed, in one word.",
         .protobuf_tag = 4},
        {"status", &hfd_schema_text, "True, False or Unknown.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"type", &hfd_schema_text, "The type of the condition: Available.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema condition_schema =
        {HFD_STRUCT(REGISTRATION "APIServiceCondition", condition_fields),
         .description = "One aspect of the state of a group version."};
static const char *const by_type[] = {"type", NULL};

static const struct hfd_schema_field status_fields[] = {
        {"conditions",
         HFD_LIST_OF(&condition_schema, .list_type = HFD_LIST_MAP, .list_keys = by_type),
         "Whether the group version is available.", .merge_key = "type", .protobuf_tag = 1,
         .flags = HFD_FIELD_MERGE},
};
static const struct hfd_schema status_schema = {HFD_STRUCT(REGISTRATION "APIServiceStatus",
                                                           status_fields),
                                                .description = "The state of a group version."};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &spec_schema, "Who answers for the group version.", .protobuf_tag = 2},
        {"status", &status_schema, "Whether it is available.", .protobuf_tag = 3},
};
const struct hfd_schema hfd_api_service_schema =
        {HFD_STRUCT(REGISTRATION "APIService", fields),
         .description = "APIService says who answers for a group version. Its name is the version, "
                        "a dot and the group."};

/* ---- defaults ---- */

/* An APIService that names no service is local, and so counts as available from the start. 0 or
 * -ENOMEM. */
static int set_available(struct hf__json *object) {
        static const char *const members[][2] = {{"type", "Available"},
                                                 {"status", "True"},
                                                 {"reason", "Local"},
                                                 {"message",
                                                  "Local APIServices are always available"}};
        const char *now = hf__json_string(object, "metadata.creationTimestamp");
        HF__CLEANUP(hf__json_cleanup)
        struct hf__json *list = hf__json_array(), *condition = hf__json_object();
        int r = hf__json_add_string(condition, "lastTransitionTime", now ? now : "");

        for (size_t i = 0; r == 0 && i < sizeof members / sizeof members[0]; i++)
                r = hf__json_add_string(condition, members[i][0], members[i][1]);
        if (!list || r != 0)
                return -ENOMEM;
        r = hf__json_append(list, HF__TAKE(condition));
        if (r != 0)
                return r;
        return hf__json_set(object, "status.conditions", HF__TAKE(list));
}

int hfd_api_service_prepare(struct hf__json *object, const struct hf__json *old) {
        const struct hf__json *service = hf__json_path(object, "spec.service");
        int r = 0;

        if (service && !hf__json_get(service, "port"))
                r = hf__json_set_i64(object, "spec.service.port", 443);
        return r == 0 && !old && !service ? set_available(object) : r;
}

/* ---- validation ---- */

/* The name must be "VERSION.GROUP", so that a group version has one APIService at most. A version
 * or a group that is so long that it is cut here gets a cause elsewhere. */
static void validate_name(const struct hf__json *object, struct hfd_causes *causes) {
        const char *name = hf__json_string_or_empty(object, "metadata.name");
        char wanted[400], quoted[410], detail[480];

        (void)snprintf(wanted, sizeof wanted, "%.64s.%.260s",
                       hf__json_string_or_empty(object, "spec.version"),
                       hf__json_string_or_empty(object, "spec.group"));
        if (!*name || strcmp(name, wanted) == 0)
                return;
        hfd_quote(wanted, quoted, sizeof quoted);
        (void)snprintf(detail, sizeof detail, "must be `spec.version+\".\"+spec.group`: %s",
                       quoted);
        hfd_cause_invalid_text(causes, "metadata.name", name, detail);
}

static void validate_version(const char *version, struct hfd_causes *causes) {
        if (strlen(version) > HFD_DNS_LABEL_MAX)
                hfd_cause_invalid_text(causes, "spec.version", version, hfd_dns_label_length_rule);
        else if (!hfd_is_dns1035_label(version))
                hfd_cause_invalid_text(causes, "spec.version", version, hfd_dns1035_label_rule);
}

/* kube-apiserver's text says "less than", but the maximum itself is valid. */
static void validate_priority(const struct hf__json *object, const char *field, int max,
                              struct hfd_causes *causes) {
        char value[32], detail[60];
        int64_t priority = 0;

        (void)hf__json_i64(object, field, &priority);
        if (priority > 0 && priority <= max)
                return;
        (void)snprintf(value, sizeof value, "%lld", (long long)priority);
        (void)snprintf(detail, sizeof detail, "must be positive and less than %d", max);
        hfd_cause_invalid(causes, field, value, detail);
}

/* Certificates and trust are about a service, so a local APIService has none. */
static void validate_service(const struct hf__json *object, struct hfd_causes *causes) {
        const char *bundle = hf__json_string_or_empty(object, "spec.caBundle");
        bool skips = hf__json_bool(object, "spec.insecureSkipTLSVerify", false);
        char value[40];
        size_t n = 0;

        if (hf__json_path(object, "spec.service")) {
                if (!*hf__json_string_or_empty(object, "spec.service.namespace"))
                        hfd_cause_required(causes, "spec.service.namespace", "");
                if (!*hf__json_string_or_empty(object, "spec.service.name"))
                        hfd_cause_required(causes, "spec.service.name", "");
                if (skips && *bundle)
                        hfd_cause_invalid(causes, "spec.insecureSkipTLSVerify", "true",
                                          "may not be true if caBundle is present");
                return;
        }
        if (*bundle) {
                (void)hf__base64_check(bundle, &n); /* the decoder has checked it */
                (void)snprintf(value, sizeof value, "\"%zu bytes\"", n);
                hfd_cause_invalid(causes, "spec.caBundle", value,
                                  "local APIServices may not have a caBundle");
        }
        if (skips)
                hfd_cause_invalid(causes, "spec.insecureSkipTLSVerify", "true",
                                  "local APIServices may not have insecureSkipTLSVerify");
}

static void validate_status(const struct hf__json *object, struct hfd_causes *causes) {
        char field[64];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_path(object, "status.conditions"));
             m; m = hf__json_next(m), i++) {
                const char *status = hf__json_string_or_empty(m, "status");
                (void)snprintf(field, sizeof field, "status.conditions[%zu].status", i);
                if (strcmp(status, "True") != 0 && strcmp(status, "False") != 0 &&
                    strcmp(status, "Unknown") != 0)
                        hfd_cause_unsupported_text(causes, field, status,
                                                   "\"True\", \"False\", \"Unknown\"");
        }
}

void hfd_api_service_validate(const struct hf__json *object, const struct hf__json *old,
                              struct hfd_causes *causes) {
        const char *group = hf__json_string_or_empty(object, "spec.group"),
                   *version = hf__json_string_or_empty(object, "spec.version");

        validate_name(object, causes);
        if (!*group && strcmp(version, "v1") != 0)
                hfd_cause_required(causes, "spec.group",
                                   "only v1 may have an empty group and it better be legacy kube");
        if (*group && !hfd_is_dns_subdomain(group))
                hfd_cause_invalid_text(causes, "spec.group", group, hfd_dns_subdomain_rule);
        validate_version(version, causes);
        validate_priority(object, "spec.groupPriorityMinimum", GROUP_PRIORITY_MAX, causes);
        validate_priority(object, "spec.versionPriority", VERSION_PRIORITY_MAX, causes);
        validate_service(object, causes);
        validate_status(object, causes);
}
