/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks embedded resources (x-kubernetes-embedded-resource): whole objects within a custom
 * resource. Their metadata must have the form of ObjectMeta. A name is not required, and may be any
 * segment of a path, because the rules of the kind are not known.
 *
 * Invariant: the texts of the causes are those of Kubernetes. The recursion is as deep as the
 * object and the schema are nested.
 */
#include "server/resources/custom/schema/check/embedded.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "server/resources/resource.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"
#include "server/schema/common.h"
#include "server/schema/decode.h"

#define KIND_MAX 253 /* bytes of a kind whose syntax is checked; a longer one is refused anyway */

/* Adds an "Invalid value" at the place. Unlike most causes of a schema, its message has no path. */
static void report_field(const struct hfd_check_report *report, const struct hfd_place *place,
                         const struct hf__json *value, const char *detail) {
        char field[HFD_REPORT_PATH_MAX], text[HFD_REPORT_VALUE_MAX];

        if (hfd_check_report_is_full(report))
                return;
        hfd_check_report_field(report, place, field);
        hfd_check_report_value(value, text);
        hfd_cause_invalid(report->causes, field, text, detail);
}

static void require_field(const struct hfd_check_report *report, const struct hfd_place *place) {
        char field[HFD_REPORT_PATH_MAX];

        if (hfd_check_report_is_full(report))
                return;
        hfd_check_report_field(report, place, field);
        hfd_cause_required(report->causes, field, NULL);
}

/* "VERSION" or "GROUP/VERSION". */
static void check_api_version(const struct hfd_check_report *report, const struct hfd_place *place,
                              const struct hf__json *value) {
        const char *text = hf__json_text(value), *slash = text ? strchr(text, '/') : NULL;
        char detail[HFD_REPORT_VALUE_MAX];

        if (!text) {
                report_field(report, place, value, "must be a string");
        } else if (!*text) {
                report_field(report, place, value, "must not be empty");
        } else if (slash && strchr(slash + 1, '/')) {
                (void)snprintf(detail, sizeof detail, "unexpected GroupVersion string: %.250s",
                               text);
                report_field(report, place, value, detail);
        }
}

/* A kind is a DNS-1035 label in CamelCase, so it is checked in lower case. */
static void check_kind(const struct hfd_check_report *report, const struct hfd_place *place,
                       const struct hf__json *value) {
        const char *text = hf__json_text(value);
        const char *faults[HFD_LABEL_FAULTS_MAX];
        char lower[KIND_MAX + 1], detail[500];
        size_t i = 0;

        if (!text) {
                report_field(report, place, value, "must be a string");
                return;
        }
        if (!*text) {
                report_field(report, place, value, "must not be empty");
                return;
        }
        for (; text[i] && i < KIND_MAX; i++)
                lower[i] = (char)tolower((unsigned char)text[i]);
        lower[i] = '\0';
        size_t n = hfd_dns1035_label_faults(lower, faults);
        if (n == 0)
                return;
        (void)snprintf(detail, sizeof detail,
                       "may have mixed case, but should otherwise match: %s%s%s", faults[0],
                       n > 1 ? "," : "", n > 1 ? faults[1] : "");
        report_field(report, place, value, detail);
}

/* Adds the causes in `found`, with the path of the resource before their fields. */
static void add_causes(const struct hfd_check_report *report, const struct hfd_place *place,
                       const struct hfd_causes *found) {
        struct hfd_causes *causes = report->causes;

        for (size_t i = 0; i < found->n && causes->n < HFD_CAUSES_MAX; i++) {
                char field[HFD_REPORT_PATH_MAX], path[2 * HFD_REPORT_PATH_MAX];
                struct hfd_cause *cause = &causes->items[causes->n++];
                hfd_check_report_field(report, place, field);
                *cause = found->items[i];
                (void)snprintf(path, sizeof path, "%s%s%s", field, *field ? "." : "",
                               found->items[i].field);
                (void)snprintf(cause->field, sizeof cause->field, "%.159s", path);
        }
}

/* Checks metadata that has the form of ObjectMeta, by the rules for all kinds. They require a name,
 * so one that is absent or empty is replaced in a copy, as in Kubernetes. A namespace is not
 * required, so it is checked only if there is one. place: of metadata. 0 or -ENOMEM. */
static int check_meta(const struct hfd_check_report *report, const struct hfd_place *place,
                      const struct hf__json *metadata) {
        const struct hfd_resource resource = {.group = "embedded",
                                              .name_is_segment = true,
                                              .namespaced = hf__json_get(metadata, "namespace") &&
                                                            !hf__json_has_text(metadata,
                                                                               "namespace", "")};
        /* On the heap: the struct is large, and hfd_check_embedded has filled the stack already, as
         * deep as it has recursed. */
        struct hfd_causes *found = malloc(sizeof *found);
        struct hf__json *object = hf__json_object();
        int r = found && object ? hf__json_set(object, "metadata", hf__json_dup(metadata))
                                : -ENOMEM;

        if (r == 0 && !*hf__json_string_or_empty(metadata, "name"))
                r = hf__json_set_string(object, "metadata.name", "fakename");
        if (r == 0) {
                hfd_causes_init(found);
                hfd_meta_validate(&resource, object, NULL, found);
                add_causes(report, place->up, found);
                r = found->error;
        }
        free(found);
        hf__json_free(object);
        return r;
}

/* Checks metadata first by the schema of ObjectMeta, then by the rules of check_meta. */
static void check_metadata(const struct hfd_check_report *report, const struct hfd_place *place,
                           const struct hf__json *value) {
        struct hf__json *copy = hf__json_dup(value);
        char reason[256];
        int r = -ENOMEM;

        if (copy && !hf__json_is_object(copy)) {
                report_field(report, place, value,
                             "json: cannot unmarshal into Go value of type v1.ObjectMeta");
                hf__json_free(copy);
                return;
        }
        if (copy)
                r = hfd_schema_decode(&hfd_schema_object_meta, copy, NULL, reason, sizeof reason);
        if (r == HF_E_INVALID)
                report_field(report, place, value, reason);
        else if (r != 0 || check_meta(report, place, copy) != 0)
                hfd_causes_no_memory(report->causes);
        hf__json_free(copy);
}

/* Checks one embedded resource. */
static void check_resource(const struct hfd_check_report *report, const struct hf__json *value,
                           const struct hfd_custom_node *node, const struct hfd_place *place) {
        static const char *const required[] = {"apiVersion", "kind"};
        const struct hf__json *metadata = hf__json_get(value, "metadata");
        const struct hfd_place metadata_place = {.up = place,
                                                 .key = "metadata",
                                                 .in = node->fields};

        for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
                const struct hf__json *member = hf__json_get(value, required[i]);
                const struct hfd_place below = {.up = place,
                                                .key = required[i],
                                                .in = node->fields};
                if (!member)
                        require_field(report, &below);
                else if (i == 0)
                        check_api_version(report, &below, member);
                else
                        check_kind(report, &below, member);
        }
        if (metadata)
                check_metadata(report, &metadata_place, metadata);
}

void hfd_check_embedded(const struct hfd_check_report *report, const struct hfd_custom_node *node,
                        const struct hf__json *value, const struct hfd_place *place) {
        size_t i = 0;

        if (!node)
                return;
        if (hf__json_is_array(value)) {
                for (const struct hf__json *m = hf__json_first(value); m && node->items;
                     m = hf__json_next(m), i++) {
                        const struct hfd_place below = {.up = place, .index = i};
                        hfd_check_embedded(report, node->items, m, &below);
                }
                return;
        }
        if (!hf__json_is_object(value))
                return;
        if (node->embedded)
                check_resource(report, value, node, place);
        for (const struct hf__json *m = hf__json_first(value); m; m = hf__json_next(m)) {
                const struct hfd_custom_property *property =
                        hfd_custom_property(node, hf__json_key(m));
                const struct hfd_place below = {.up = place,
                                                .key = hf__json_key(m),
                                                .in = property ? node->fields : NULL};
                hfd_check_embedded(report, property ? property->node : node->values, m, &below);
        }
}
