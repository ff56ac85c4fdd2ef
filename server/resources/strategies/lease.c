/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases. Numbers and strategies are validated. Times are compared neither with each other nor with
 * this server's clock: the holders set them by their own clocks, and a renewal must not fail
 * because a clock is wrong.
 */
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/lease_spec.h"
#include "server/resources/strategies/strategies.h"

bool hfd_lease_decode(struct hf__json *object, char *reason, size_t max_reason) {
        static const char kind[] = "Lease";
        struct hf__json *spec;

        if (!hfd_lease_spec_get(object, kind, &spec, reason, max_reason))
                return false;
        if (!spec)
                return true;
        return hfd_lease_spec_is_text(spec, kind, "holderIdentity", reason, max_reason) &&
               hfd_lease_spec_is_int32(spec, kind, "leaseDurationSeconds", reason, max_reason) &&
               hfd_lease_spec_is_int32(spec, kind, "leaseTransitions", reason, max_reason) &&
               hfd_lease_spec_is_text(spec, kind, "strategy", reason, max_reason) &&
               hfd_lease_spec_is_text(spec, kind, "preferredHolder", reason, max_reason) &&
               hfd_lease_spec_is_micro_time(spec, "acquireTime", reason, max_reason) &&
               hfd_lease_spec_is_micro_time(spec, "renewTime", reason, max_reason);
}

static void add_invalid_number(struct hfd_causes *causes, const char *field, int64_t number,
                               const char *detail) {
        char value[32];

        (void)snprintf(value, sizeof value, "%lld", (long long)number);
        hfd_cause_invalid(causes, field, value, detail);
}

void hfd_lease_validate(const struct hf__json *object, const struct hf__json *old,
                        struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec");
        const char *strategy = hf__json_string(spec, "strategy"),
                   *preferred = hf__json_string(spec, "preferredHolder");
        int64_t number;

        if (hf__json_i64(spec, "leaseDurationSeconds", &number) && number <= 0)
                add_invalid_number(causes, "spec.leaseDurationSeconds", number,
                                   "must be greater than 0");
        if (hf__json_i64(spec, "leaseTransitions", &number) && number < 0)
                add_invalid_number(causes, "spec.leaseTransitions", number,
                                   "must be greater than or equal to 0");
        if (strategy && *strategy)
                hfd_lease_spec_validate_strategy(strategy, causes);
        else if (preferred && *preferred)
                hfd_cause_forbidden(causes, "spec.preferredHolder",
                                    "may only be specified if `strategy` is defined");
}
