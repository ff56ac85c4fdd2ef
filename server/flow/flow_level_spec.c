/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a stored PriorityLevelConfiguration.
 *
 * Invariant: every number is checked again. The object was validated and has its defaults, but
 * another server may have written it into the store.
 */
#include "server/flow/flow_level_spec.h"

#include "base/json.h"

/* Reads a member; if it is absent or no integer, its value is `otherwise`. False: the value is out
 * of bounds. */
static bool read_number(const struct hf__json *object, const char *path, int64_t otherwise,
                        int64_t min, int64_t max, int64_t *ret_value) {
        *ret_value = otherwise;
        (void)hf__json_i64(object, path, ret_value);
        return *ret_value >= min && *ret_value <= max;
}

/* The numbers in this file for members that are absent are the defaults of the API. */
static bool read_queuing(const struct hf__json *queuing, struct hfd_queue_config *config) {
        int64_t queues, hand, length;

        if (!read_number(queuing, "queues", 64, 1, INT32_MAX, &queues) ||
            !read_number(queuing, "handSize", 8, 1, INT32_MAX, &hand) ||
            !read_number(queuing, "queueLengthLimit", 50, 1, INT32_MAX, &length))
                return false;
        *config = (struct hfd_queue_config){.kind = HFD_LEVEL_QUEUE,
                                            .n_queues = (unsigned)queues,
                                            .n_hand = (unsigned)hand,
                                            .max_length = (unsigned)length};
        return true;
}

static bool read_limited(const struct hf__json *limited, struct hfd_flow_level_spec *spec) {
        const struct hf__json *response = hf__json_get(limited, "limitResponse");

        if (!read_number(limited, "borrowingLimitPercent", -1, -1, INT32_MAX,
                         &spec->shares.borrowing_percent))
                return false;
        if (hf__json_has_text(response, "type", "Queue"))
                return read_queuing(hf__json_get(response, "queuing"), &spec->queues);
        spec->queues = (struct hfd_queue_config){.kind = HFD_LEVEL_REJECT};
        return hf__json_has_text(response, "type", "Reject");
}

bool hfd_flow_level_spec_read(const struct hf__json *object, struct hfd_flow_level_spec *ret_spec) {
        const struct hf__json *spec = hf__json_get(object, "spec");
        bool is_exempt = hf__json_has_text(spec, "type", "Exempt");
        const struct hf__json *part = hf__json_get(spec, is_exempt ? "exempt" : "limited");
        int64_t shares, lendable;

        *ret_spec = (struct hfd_flow_level_spec){.shares = {.is_exempt = is_exempt,
                                                            .borrowing_percent = -1},
                                                 .queues.kind = HFD_LEVEL_EXEMPT};
        if (!is_exempt && !hf__json_has_text(spec, "type", "Limited"))
                return false;
        if (!read_number(part, "nominalConcurrencyShares", is_exempt ? 0 : 30, 0, INT32_MAX,
                         &shares) ||
            !read_number(part, "lendablePercent", 0, 0, 100, &lendable))
                return false;
        ret_spec->shares.shares = (uint32_t)shares;
        ret_spec->shares.lendable_percent = (unsigned)lendable;
        return is_exempt || read_limited(part, ret_spec);
}
