/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of what quotas and limits count. The rules and their texts are those of Kubernetes.
 *
 * A name without a slash must be in the table, or begin with "hugepages-" or "requests.hugepages-".
 * A name with a slash only has to be a qualified name, because nodes and extensions may have
 * resources of any name. For containers such a name must also be that of an extended resource,
 * unless it belongs to Kubernetes.
 */
#include "server/resources/validation/resource_names.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "server/resources/causes.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"

enum {
        IN_QUOTA = 1,
        IN_CONTAINER = 2,
        COUNTED = 4,   /* objects are counted, so values are whole numbers */
        POD_COUNT = 8, /* this and the next two: what a quota with a scope may count */
        POD_COMPUTE = 16,
        CLAIMS = 32, /* PersistentVolumeClaims */
};

static const struct {
        const char *name;
        unsigned flags;
} standard[] = {
        {"configmaps", IN_QUOTA | COUNTED},
        {"cpu", IN_QUOTA | IN_CONTAINER | POD_COMPUTE},
        {"ephemeral-storage", IN_QUOTA | IN_CONTAINER},
        {"limits.cpu", IN_QUOTA | POD_COMPUTE},
        {"limits.ephemeral-storage", IN_QUOTA},
        {"limits.memory", IN_QUOTA | POD_COMPUTE},
        {"memory", IN_QUOTA | IN_CONTAINER | POD_COMPUTE},
        {"persistentvolumeclaims", IN_QUOTA | COUNTED | CLAIMS},
        {"pods", IN_QUOTA | COUNTED | POD_COUNT},
        {"replicationcontrollers", IN_QUOTA | COUNTED},
        {"requests.cpu", IN_QUOTA | POD_COMPUTE},
        {"requests.ephemeral-storage", IN_QUOTA},
        {"requests.memory", IN_QUOTA | POD_COMPUTE},
        {"requests.storage", IN_QUOTA | CLAIMS},
        {"resourcequotas", IN_QUOTA | COUNTED},
        {"secrets", IN_QUOTA | COUNTED},
        {"services", IN_QUOTA | COUNTED},
        {"services.loadbalancers", IN_QUOTA | COUNTED},
        {"services.nodeports", IN_QUOTA | COUNTED},
        {"storage", 0},
};

/* ---- classes of names ---- */

/* Whether the name is a standard one. *ret_flags: its flags, or 0. */
static bool is_standard(const char *name, unsigned *ret_flags) {
        *ret_flags = 0;
        for (size_t i = 0; i < sizeof standard / sizeof standard[0]; i++)
                if (strcmp(standard[i].name, name) == 0) {
                        *ret_flags = standard[i].flags;
                        return true;
                }
        if (hf__text_begins_with(name, "hugepages-"))
                *ret_flags = IN_QUOTA | IN_CONTAINER;
        else if (hf__text_begins_with(name, "requests.hugepages-"))
                *ret_flags = IN_QUOTA;
        return *ret_flags != 0;
}

/* Whether the name belongs to Kubernetes: it has no domain, or one that ends in kubernetes.io. */
static bool is_native(const char *name) {
        return !strchr(name, '/') || strstr(name, "kubernetes.io/");
}

/* Whether the name is that of an extended resource, of which a node has a whole number. Such a name
 * must also be valid in a quota, with "requests." in front. */
static bool is_extended(const char *name) {
        char in_quota[400];

        if (is_native(name) || hf__text_begins_with(name, "requests."))
                return false;
        int n = snprintf(in_quota, sizeof in_quota, "requests.%s", name);
        return n > 0 && (size_t)n < sizeof in_quota && hfd_is_qualified_name(in_quota);
}

bool hfd_resource_name_may_overcommit(const char *name) {
        return is_native(name) && !hf__text_begins_with(name, "hugepages-");
}

/* ---- scopes ---- */

unsigned hfd_quota_scope(const char *name) {
        /* In the order of the bits of enum hfd_quota_scope. */
        static const char *const names[] = {"Terminating",          "NotTerminating",
                                            "BestEffort",           "NotBestEffort",
                                            "PriorityClass",        "CrossNamespacePodAffinity",
                                            "VolumeAttributesClass"};

        for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
                if (strcmp(name, names[i]) == 0)
                        return 1u << i;
        return 0;
}

bool hfd_quota_scope_fits(unsigned scope, const char *resource) {
        unsigned flags, wanted = POD_COUNT | POD_COMPUTE;

        if (!is_standard(resource, &flags) || !(flags & IN_QUOTA))
                return true;
        if (scope == HFD_SCOPE_BEST_EFFORT)
                wanted = POD_COUNT;
        else if (scope == HFD_SCOPE_VOLUME_ATTRIBUTES_CLASS)
                wanted = CLAIMS;
        return (flags & wanted) != 0;
}

/* ---- names ---- */

void hfd_resource_name_validate(const char *name, const char *field, struct hfd_causes *causes) {
        unsigned flags;

        if (!hfd_is_qualified_name(name))
                hfd_qualified_name_validate(name, field, causes);
        else if (!strchr(name, '/') && !is_standard(name, &flags))
                hfd_cause_invalid_text(causes, field, name,
                                       "must be a standard resource type or fully qualified");
}

void hfd_resource_name_validate_quota(const char *name, const char *field,
                                      struct hfd_causes *causes) {
        unsigned flags;

        hfd_resource_name_validate(name, field, causes);
        if (!strchr(name, '/') && !(is_standard(name, &flags) && flags & IN_QUOTA))
                hfd_cause_invalid_text(causes, field, name,
                                       "must be a standard resource for quota");
}

void hfd_resource_name_validate_container(const char *name, const char *field,
                                          struct hfd_causes *causes) {
        unsigned flags;

        hfd_resource_name_validate(name, field, causes);
        if (!strchr(name, '/') && !(is_standard(name, &flags) && flags & IN_CONTAINER))
                hfd_cause_invalid_text(causes, field, name,
                                       "must be a standard resource for containers");
        else if (!is_native(name) && !is_extended(name))
                hfd_cause_invalid_text(causes, field, name,
                                       "doesn't follow extended resource name standard");
}

/* ---- values ---- */

struct hfd_quantity hfd_quantity_of_json(const struct hf__json *value) {
        struct hfd_quantity quantity = {0};
        const char *text = hf__json_text(value);

        if (text)
                (void)hfd_quantity_parse(text, &quantity); /* a malformed quantity stays zero */
        return quantity;
}

void hfd_cause_invalid_quantity(struct hfd_causes *causes, const char *field,
                                const struct hfd_quantity *value, const char *detail) {
        char text[HFD_QUANTITY_TEXT_MAX];

        hfd_quantity_format(value, text);
        hfd_cause_invalid_text(causes, field, text, detail);
}

bool hfd_amount_validate(const struct hf__json *value, const char *field,
                         struct hfd_causes *causes) {
        const struct hfd_quantity amount = hfd_quantity_of_json(value);
        char shown[24];

        if (!amount.negative)
                return true;
        (void)snprintf(shown, sizeof shown, "-%" PRIu64, amount.whole + (amount.nano > 0));
        hfd_cause_invalid(causes, field, shown, "must be a valid resource quantity");
        return false;
}

void hfd_resource_value_validate(const char *name, const struct hf__json *value, const char *field,
                                 struct hfd_causes *causes) {
        struct hfd_quantity quantity = hfd_quantity_of_json(value);
        unsigned flags;

        if (quantity.negative)
                hfd_cause_invalid_quantity(causes, field, &quantity,
                                           "must be greater than or equal to 0");
        (void)is_standard(name, &flags);
        if ((flags & COUNTED || is_extended(name)) && !hfd_quantity_is_whole(&quantity))
                hfd_cause_invalid_quantity(causes, field, &quantity, "must be an integer");
}
