/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases. The rules concern the numbers, and the fields of coordinated elections: `strategy` and
 * `preferredHolder`. Times are compared neither with each other nor with this server's clock: the
 * holders set them by their own clocks, and a renewal must not fail because a clock is wrong.
 */
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/lease_spec.h"
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

#define COORDINATION "io.k8s.api.coordination.v1."

static const struct hfd_schema_field spec_fields[] = {
        {"acquireTime", &hfd_schema_micro_time, "When the holder acquired the lease.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        /* An empty holderIdentity is a released lease, and differs from an absent one. */
        {"holderIdentity", &hfd_schema_text, "Who holds the lease. Empty: nobody.",
         .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"leaseDurationSeconds", &hfd_schema_int32,
         "How long others wait after renewTime before they take the lease.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"leaseTransitions", &hfd_schema_int32, "How often the holder has changed.",
         .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"preferredHolder", &hfd_schema_text, "To whom the holder should give the lease.",
         .protobuf_tag = 7, .flags = HFD_FIELD_POINTER},
        {"renewTime", &hfd_schema_micro_time, "When the holder last renewed the lease.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"strategy", HFD_NAMED_TEXT(COORDINATION "CoordinatedLeaseStrategy"),
         "How a coordinated election picks the holder.", .protobuf_tag = 6,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema spec_schema = {HFD_STRUCT(COORDINATION "LeaseSpec", spec_fields),
                                              .description = "Who holds a lease, and until when."};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS("More info: " HFD_CONVENTIONS "#metadata"),
        {"spec", &spec_schema, "Who holds the lease, and until when.", .protobuf_tag = 2},
};
const struct hfd_schema hfd_lease_schema =
        {HFD_STRUCT(COORDINATION "Lease", fields),
         .description = "Lease says who may act, and until when. Leader election uses it."};

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
