/* SPDX-License-Identifier: Apache-2.0 */
/* Leases (apiserver.md 3.1-3.3): types and MicroTime strictly, two numbers validated, times never related to each other. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/timetext.h"
#include "server/api/answer.h"
#include "server/api/resource.h"

static bool micro_time(struct hf__json *spec, const char *field, char *reason, size_t max_reason) {
        struct hf__json *value = hf__json_get(spec, field);
        char text[HF__MICROTIME_MAX];
        int64_t usec;

        if (!value)
                return true;
        if (!hf__json_is_string(value) || hf__microtime_parse(hf__json_text(value), &usec)) {
                (void)snprintf(reason, max_reason, "parsing time \"%.100s\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse spec.%s",
                               hf__json_is_string(value) ? hf__json_text(value) : "", field);
                return false;
        }
        hf__microtime_format(usec, text);
        return !strcmp(text, hf__json_text(value)) || !hf__json_set_string(spec, field, text);
}

static bool typed(const struct hf__json *spec, const char *field, bool number, char *reason, size_t max_reason) {
        const struct hf__json *value = hf__json_get(spec, field);
        int64_t whole;
        bool good = !value ||
                    (number ? hf__json_i64(spec, field, &whole) && whole >= INT32_MIN && whole <= INT32_MAX : hf__json_is_string(value));

        if (!good)
                (void)snprintf(reason, max_reason, "json: cannot unmarshal into Go struct field LeaseSpec.spec.%s of type %s", field,
                               number ? "int32" : "string");
        return good;
}

bool hfd_lease_decode(struct hf__json *object, char *reason, size_t max_reason) {
        static const char *const fields[] = {"holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions",
                                             "strategy",       "preferredHolder"};
        struct hf__json *spec = hf__json_get(object, "spec");

        if (!spec)
                return true;
        if (hf__json_is_null(spec)) {
                hf__json_remove(object, "spec");
                return true;
        }
        if (!hf__json_is_object(spec)) {
                (void)snprintf(reason, max_reason, "json: cannot unmarshal into Go struct field Lease.spec of type v1.LeaseSpec");
                return false;
        }
        for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
                if (hf__json_is_null(hf__json_get(spec, fields[i])))
                        hf__json_remove(spec, fields[i]);
        hf__json_remove(spec, "strategy"); /* as upstream without coordinated election */
        hf__json_remove(spec, "preferredHolder");
        return typed(spec, "holderIdentity", false, reason, max_reason) && typed(spec, "leaseDurationSeconds", true, reason, max_reason) &&
               typed(spec, "leaseTransitions", true, reason, max_reason) && micro_time(spec, "acquireTime", reason, max_reason) &&
               micro_time(spec, "renewTime", reason, max_reason);
}

void hfd_lease_validate(const struct hf__json *object, const struct hf__json *old, struct hfd_causes *causes) {
        char value[32];
        int64_t number;

        if (hf__json_i64(object, "spec.leaseDurationSeconds", &number) && number <= 0) {
                (void)snprintf(value, sizeof value, "%lld", (long long)number);
                hfd_cause_invalid(causes, "spec.leaseDurationSeconds", value, "must be greater than 0");
        }
        if (hf__json_i64(object, "spec.leaseTransitions", &number) && number < 0) {
                (void)snprintf(value, sizeof value, "%lld", (long long)number);
                hfd_cause_invalid(causes, "spec.leaseTransitions", value, "must be greater than or equal to 0");
        }
}
