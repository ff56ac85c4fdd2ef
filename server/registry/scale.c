/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales. The paths have the form ".spec.replicas": validation refuses others.
 */
#include "server/registry/scale.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "server/schema/common.h"

static const struct hfd_schema_field spec_fields[] = {
        {"replicas", &hfd_schema_int32, "How many replicas are wanted."},
};
static const struct hfd_schema_field status_fields[] = {
        {"replicas", &hfd_schema_int32, "How many replicas there are."},
        {"selector", &hfd_schema_text, "Selects the labels of the replicas."},
};
static const struct hfd_schema spec_schema = {
        HFD_STRUCT("io.k8s.api.autoscaling.v1.ScaleSpec", spec_fields)};
static const struct hfd_schema status_schema = {
        HFD_STRUCT("io.k8s.api.autoscaling.v1.ScaleStatus", status_fields)};
static const struct hfd_schema_field scale_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &spec_schema, "The desired state."},
        {"status", &status_schema, "The observed state."},
};
static const struct hfd_schema scale_schema = {
        HFD_STRUCT("io.k8s.api.autoscaling.v1.Scale", scale_fields)};

const struct hfd_resource *hfd_scale_row(void) {
        static const struct hfd_resource row = {.group = "autoscaling",
                                                .version = "v1",
                                                .plural = "scales",
                                                .singular = "scale",
                                                .kind = "Scale",
                                                .namespaced = true,
                                                .no_strategic_patch = true,
                                                .schema = &scale_schema};

        return &row;
}

/* The value at ".spec.replicas". */
static const struct hf__json *value_at(const struct hf__json *object, const char *path) {
        return path && *path == '.' ? hf__json_path(object, path + 1) : NULL;
}

static int64_t replicas_at(const struct hf__json *object, const char *path) {
        int64_t replicas = 0;

        (void)hf__json_integer(value_at(object, path), &replicas);
        return replicas;
}

bool hfd_scale_has_replicas(const struct hfd_custom_version *version,
                            const struct hf__json *object) {
        const struct hf__json *value = value_at(object, version->scale.spec_replicas);

        return value && !hf__json_is_null(value);
}

static int copy_meta(struct hf__json *scale, const struct hf__json *object) {
        static const char *const members[] = {"name", "namespace", "uid", "resourceVersion",
                                              "creationTimestamp"};
        const struct hf__json *meta = hf__json_get(object, "metadata");
        char path[40];
        int r = 0;

        for (size_t i = 0; r == 0 && i < sizeof members / sizeof members[0]; i++) {
                const char *text = hf__json_string(meta, members[i]);
                (void)snprintf(path, sizeof path, "metadata.%s", members[i]);
                if (text)
                        r = hf__json_set_string(scale, path, text);
        }
        return r;
}

struct hf__json *hfd_scale_make(const struct hfd_custom_version *version,
                                const struct hf__json *object) {
        struct hf__json *scale = hf__json_object();
        int64_t wanted = replicas_at(object, version->scale.spec_replicas);
        const char *selector = hf__json_text(value_at(object, version->scale.label_selector));
        int r = scale ? hf__json_set_string(scale, "kind", "Scale") : -ENOMEM;

        if (r == 0)
                r = hf__json_set_string(scale, "apiVersion", "autoscaling/v1");
        if (r == 0)
                r = copy_meta(scale, object);
        if (r == 0)
                r = hf__json_set(scale, "spec", hf__json_object());
        if (r == 0 && wanted != 0)
                r = hf__json_set_i64(scale, "spec.replicas", wanted);
        if (r == 0)
                r = hf__json_set_i64(scale, "status.replicas",
                                     replicas_at(object, version->scale.status_replicas));
        if (r == 0 && selector && *selector)
                r = hf__json_set_string(scale, "status.selector", selector);
        return r == 0 ? scale : hf__json_free(scale);
}

int hfd_scale_set(const struct hfd_custom_version *version, const struct hf__json *scale,
                  struct hf__json *object) {
        return hf__json_set_i64(object, version->scale.spec_replicas + 1,
                                replicas_at(scale, ".spec.replicas"));
}

bool hfd_scale_validate(const struct hf__json *scale, const char *name,
                        struct hfd_response *response) {
        int64_t replicas = replicas_at(scale, ".spec.replicas");
        struct hfd_causes causes;
        char text[24];

        causes.n = 0;
        (void)snprintf(text, sizeof text, "%" PRId64, replicas);
        if (replicas < 0)
                hfd_cause_invalid(&causes, "spec.replicas", text,
                                  "must be greater than or equal to 0");
        if (causes.n > 0)
                hfd_response_invalid(response, hfd_scale_row(), name, &causes);
        return causes.n == 0;
}

static void validate_replicas(const struct hf__json *object, const char *path,
                              struct hfd_causes *causes) {
        int64_t replicas = replicas_at(object, path);
        char text[24];

        (void)snprintf(text, sizeof text, "%" PRId64, replicas);
        if (replicas < 0)
                hfd_cause_invalid(causes, path, text, "should be a non-negative integer");
        else if (replicas > INT32_MAX)
                hfd_cause_invalid(causes, path, text, "should be less than or equal to 2147483647");
}

void hfd_scale_validate_object(const struct hfd_custom_version *version,
                               const struct hf__json *object, struct hfd_causes *causes) {
        if (!(version->row.subresources & HFD_SUB_SCALE))
                return;
        validate_replicas(object, version->scale.spec_replicas, causes);
        validate_replicas(object, version->scale.status_replicas, causes);
}
