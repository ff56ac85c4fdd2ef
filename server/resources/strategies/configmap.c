/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConfigMaps: text in data, bytes as base64 in binaryData, together at most 1 MiB.
 */
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/data_map.h"
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        {"binaryData", &hfd_schema_map_of_bytes,
         "Bytes, as base64. No key is in both data and binaryData.", .protobuf_tag = 3},
        {"data", &hfd_schema_map_of_texts, "Text. Each key is a valid file name.",
         .protobuf_tag = 2},
        {"immutable", &hfd_schema_boolean,
         "If true, neither data nor binaryData can be changed any more.", .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
};
const struct hfd_schema hfd_configmap_schema =
        {HFD_STRUCT(HFD_CORE "ConfigMap", fields),
         .description = "ConfigMap holds configuration for other objects to read."};

/* Bytes of all values of a part. Values of binaryData count decoded, as Kubernetes counts them. */
static size_t count_part_bytes(const struct hf__json *object, const char *part, bool base64) {
        size_t total = 0;

        for (struct hf__json *m = hf__json_first(hf__json_get(object, part)); m;
             m = hf__json_next(m)) {
                size_t n = strlen(hf__json_text(m));
                if (base64) /* cannot fail: the decoder has checked the value */
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
