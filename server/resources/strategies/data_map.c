/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data maps. A kubelet writes each entry of a mounted ConfigMap or Secret to a file with the name
 * of its key. So a key must be a file name: without a slash, and neither "." nor "..".
 */
#include "server/resources/strategies/data_map.h"

#include <stdio.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/validation/names.h"

void hfd_data_map_validate_keys(const struct hf__json *object, const char *part,
                                struct hfd_causes *causes) {
        for (struct hf__json *m = hf__json_first(hf__json_get(object, part)); m;
             m = hf__json_next(m)) {
                char field[128];
                if (hfd_is_config_key(hf__json_key(m)))
                        continue;
                (void)snprintf(field, sizeof field, "%s[%.100s]", part, hf__json_key(m));
                hfd_cause_invalid_text(causes, field, hf__json_key(m), hfd_config_key_rule);
        }
}

void hfd_data_map_validate_immutable(const struct hf__json *object, const struct hf__json *old,
                                     const char *const *parts, size_t n_parts,
                                     struct hfd_causes *causes) {
        if (!old || !hf__json_bool(old, "immutable", false))
                return;
        if (!hf__json_bool(object, "immutable", false))
                hfd_cause_forbidden(causes, "immutable",
                                    "field is immutable when `immutable` is set");
        for (size_t i = 0; i < n_parts; i++) {
                const struct hf__json *new_part = hf__json_get(object, parts[i]),
                                      *old_part = hf__json_get(old, parts[i]);
                /* Older versions of the server stored empty maps, so an absent map is equal. */
                bool both_empty = !hf__json_first(new_part) && !hf__json_first(old_part);
                if (!both_empty && !hfd_causes_equal(causes, new_part, old_part))
                        hfd_cause_forbidden(causes, parts[i],
                                            "field is immutable when `immutable` is set");
        }
}
