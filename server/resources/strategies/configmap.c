/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConfigMaps: text in data, bytes as base64 in binaryData, together at most 1 MiB.
 */
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/parts.h"
#include "server/resources/strategies/data_map.h"
#include "server/resources/strategies/strategies.h"

bool hfd_configmap_decode(struct hf__json *object, char *reason, size_t max_reason) {
        return hfd_part_is_map(object, "data", "ConfigMap", reason, max_reason) &&
               hfd_part_is_map(object, "binaryData", "ConfigMap", reason, max_reason);
}

/* Bytes of all values of a part. Values of binaryData count decoded, as Kubernetes counts them. */
static size_t count_part_bytes(const struct hf__json *object, const char *part, bool base64) {
        size_t total = 0;

        for (struct hf__json *m = hf__json_first(hf__json_get(object, part)); m;
             m = hf__json_next(m)) {
                size_t n = strlen(hf__json_text(m));
                if (base64) /* cannot fail: field_types.c has checked the value */
                        (void)hf__base64_check(hf__json_text(m), &n);
                total += n;
        }
        return total;
}

void hfd_configmap_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes) {
        static const char *const parts[] = {"data", "binaryData"};

        hfd_data_map_validate_keys(object, "data", causes);
        hfd_data_map_validate_keys(object, "binaryData", causes);
        if (count_part_bytes(object, "data", false) + count_part_bytes(object, "binaryData", true) >
            HFD_DATA_MAP_MAX)
                hfd_cause_too_long(causes, "data", "must have at most 1048576 bytes");
        hfd_data_map_validate_immutable(object, old, parts, sizeof parts / sizeof parts[0], causes);
}
