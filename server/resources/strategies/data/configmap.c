/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strategy of ConfigMaps. They have text in data, and bytes as base64 in binaryData.
 *
 * Invariants: both together have at most 1 MiB, and binaryData counts decoded. No key is in both,
 * because a pod that mounts the ConfigMap sees them as one directory.
 */
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/data/data_map.h"
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

static void refuse_shared_keys(const struct hf__json *object, struct hfd_causes *causes) {
        const struct hf__json *others = hf__json_get(object, "binaryData");
        struct hf__json_index index;

        if (!hf__json_first(others))
                return;
        (void)hfd_causes_check(causes, hf__json_index_init(&index, others, NULL));
        for (struct hf__json *m = hf__json_first(hf__json_get(object, "data")); m;
             m = hf__json_next(m)) {
                char field[128];
                if (!hf__json_index_find(&index, hf__json_key(m)))
                        continue;
                (void)snprintf(field, sizeof field, "data[%.100s]", hf__json_key(m));
                hfd_cause_invalid_text(causes, field, hf__json_key(m),
                                       "duplicate of key present in binaryData");
        }
        hf__json_index_done(&index);
}

void hfd_configmap_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes) {
        static const struct hfd_data_part parts[] = {{"data", false}, {"binaryData", true}};

        hfd_data_map_validate_keys(object, "data", causes);
        refuse_shared_keys(object, causes);
        hfd_data_map_validate_keys(object, "binaryData", causes);
        if (count_part_bytes(object, "data", false) + count_part_bytes(object, "binaryData", true) >
            HFD_DATA_MAP_MAX)
                /* Kubernetes names no field here, and prints an empty path like this. */
                hfd_cause_too_long(causes, "[]", "may not be more than 1048576 bytes");
        hfd_data_map_validate_immutable(object, old, parts, sizeof parts / sizeof parts[0], causes);
}
