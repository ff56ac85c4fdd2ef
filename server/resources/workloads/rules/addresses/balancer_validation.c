/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of what a Service says to a load balancer: its class, the ranges of addresses that it
 * lets through, and the port of its health check.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. A range that the old field had is accepted, and so is an
 * annotation that has not changed, because they may have been stored before these rules existed; so
 * are the class and the health check's port of the old Service, because an update cannot change
 * them. This port is not required: nothing here allocates one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/workloads/addresses.h"
#include "server/resources/workloads/workloads.h"

#define RANGE_MAX 300 /* bytes of a range, with the NUL; a cause shows fewer */

static const char other_type[] = "may only be used when `type` is 'LoadBalancer'";

static bool is_balanced(const struct hf__json *spec) {
        return hf__json_has_text(spec, "type", "LoadBalancer");
}

/* ---- ranges ---- */

/* Copies the n bytes of the text without the white space (of ASCII) around them. What does not fit
 * is cut: it is no range either. */
static const char *trim(const char *text, size_t n, char out[RANGE_MAX]) {
        static const char spaces[] = " \t\n\v\f\r";

        while (n > 0 && strchr(spaces, text[0])) {
                text++;
                n--;
        }
        while (n > 0 && strchr(spaces, text[n - 1]))
                n--;
        if (n >= RANGE_MAX)
                n = RANGE_MAX - 1;
        memcpy(out, text, n);
        out[n] = '\0';
        return out;
}

/* As in Kubernetes, the ranges of the field may have white space around them. Returns an array of
 * the trimmed ranges, which the caller frees; NULL: memory ran out. */
static struct hf__json *trim_ranges(const struct hf__json *list) {
        struct hf__json *trimmed = hf__json_array();
        char range[RANGE_MAX];
        int r = trimmed ? 0 : -ENOMEM;

        for (const struct hf__json *m = hf__json_first(list); m && r == 0; m = hf__json_next(m)) {
                const char *text = hf__json_text_or_empty(m);
                r = hf__json_append_string(trimmed, trim(text, strlen(text), range));
        }
        if (r == 0)
                return trimmed;
        hf__json_free(trimmed);
        return NULL;
}

/* In the path, the name of the field begins with a capital letter, as in Kubernetes. */
static void validate_ranges(const struct hf__json *list, const struct hf__json *old,
                            struct hfd_causes *causes) {
        struct hf__json *had = trim_ranges(old);
        char path[HFD_FIELD_PATH_MAX], range[RANGE_MAX];
        struct hf__json_index known;
        struct hfd_cidr cidr;
        size_t i = 0;

        if (!had) {
                hfd_causes_no_memory(causes);
                return;
        }
        if (hfd_causes_check(causes, hf__json_index_init(&known, had, NULL)))
                for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                        const char *text = hf__json_text_or_empty(m);
                        trim(text, strlen(text), range);
                        hfd_field_index(path, "spec.LoadBalancerSourceRanges", i++);
                        if (!hf__json_index_find(&known, range))
                                (void)hfd_cidr_validate(range, path, &cidr, causes);
                }
        hf__json_index_done(&known);
        hf__json_free(had);
}

/* Ranges between commas. Only "" and white space have none. */
static void validate_annotated_ranges(const char *text, const char *field,
                                      struct hfd_causes *causes) {
        char range[RANGE_MAX];
        struct hfd_cidr cidr;

        if (!*trim(text, strlen(text), range))
                return;
        for (;;) {
                size_t n = strcspn(text, ",");
                (void)hfd_cidr_validate(trim(text, n, range), field, &cidr, causes);
                if (text[n] == '\0')
                        return;
                text += n + 1;
        }
}

const struct hf__json *hfd_service_annotation(const struct hf__json *service, const char *key) {
        return hf__json_get(hf__json_path(service, "metadata.annotations"), key);
}

void hfd_balancer_ranges_validate(const struct hf__json *object, const struct hf__json *old,
                                  struct hfd_causes *causes) {
        static const char member[] = "loadBalancerSourceRanges",
                          field[] = "metadata.annotations[" HFD_RANGES_ANNOTATION "]";
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *list = hf__json_get(spec, member),
                              *annotation = hfd_service_annotation(object, HFD_RANGES_ANNOTATION),
                              *had = hfd_service_annotation(old, HFD_RANGES_ANNOTATION);

        if (hf__json_first(list)) {
                if (!is_balanced(spec))
                        hfd_cause_forbidden(causes, "spec.LoadBalancerSourceRanges", other_type);
                validate_ranges(list, hf__json_get(hf__json_get(old, "spec"), member), causes);
        } else if (annotation) {
                if (!is_balanced(spec))
                        hfd_cause_forbidden(causes, field, other_type);
                if (!had ||
                    strcmp(hf__json_text_or_empty(annotation), hf__json_text_or_empty(had)) != 0)
                        validate_annotated_ranges(hf__json_text_or_empty(annotation), field,
                                                  causes);
        }
}

/* ---- the class ---- */

/* The class says which load balancer serves the Service, so it cannot change while the Service has
 * the type LoadBalancer. */
void hfd_balancer_class_validate(const struct hf__json *spec, const struct hf__json *old,
                                 struct hfd_causes *causes) {
        static const char field[] = "spec.loadBalancerClass";
        const struct hf__json *class = hf__json_get(spec, "loadBalancerClass"),
                              *had = hf__json_get(old, "loadBalancerClass");
        const char *name = hf__json_text_or_empty(class);
        bool was_balanced = is_balanced(old), same = hf__json_equal(class, had);

        if (class && !is_balanced(spec)) {
                hfd_cause_forbidden(causes, field, other_type);
                return;
        }
        if (is_balanced(spec) && was_balanced && !same) {
                if (class)
                        hfd_cause_invalid_text(causes, field, name, "may not change once set");
                else
                        hfd_cause_invalid(causes, field, "null", "may not change once set");
        }
        if (class && !(was_balanced && same))
                hfd_qualified_name_validate(name, field, causes);
}

/* ---- the health check ---- */

/* Whether a load balancer must find the nodes with endpoints: it asks each node at
 * healthCheckNodePort. */
static bool is_checked(const struct hf__json *spec) {
        return is_balanced(spec) && hf__json_has_text(spec, "externalTrafficPolicy", "Local");
}

static int64_t health_port_of(const struct hf__json *spec) {
        int64_t number = 0;

        (void)hf__json_integer(hf__json_get(spec, "healthCheckNodePort"), &number);
        return number;
}

void hfd_balancer_health_port_validate(const struct hf__json *spec, const struct hf__json *old,
                                       struct hfd_causes *causes) {
        static const char field[] = "spec.healthCheckNodePort";
        int64_t number = health_port_of(spec);
        char shown[24];

        if (number == 0)
                return;
        (void)snprintf(shown, sizeof shown, "%" PRId64, number);
        bool kept = is_checked(old) && health_port_of(old) == number;
        if (is_checked(spec) && !kept)
                hfd_port_validate(hf__json_get(spec, "healthCheckNodePort"), field, causes);
        else if (!is_checked(spec))
                hfd_cause_invalid(causes, field, shown,
                                  "may only be set when `type` is 'LoadBalancer' and "
                                  "`externalTrafficPolicy` is 'Local'");
}

/* Kubernetes allocates a port at the create. Here an update may set the first one. */
void hfd_balancer_health_port_validate_update(const struct hf__json *spec,
                                              const struct hf__json *old,
                                              struct hfd_causes *causes) {
        int64_t had = health_port_of(old);

        if (is_checked(spec) && is_checked(old) && had != 0 && health_port_of(spec) != had)
                hfd_cause_forbidden(causes, "spec.healthCheckNodePort", "field is immutable");
}
