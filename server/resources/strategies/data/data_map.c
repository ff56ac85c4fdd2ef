/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data maps. A kubelet writes each entry of a mounted ConfigMap or Secret to a file with the name
 * of its key. So a key must be a file name: it has no slash, is not ".", and does not begin with
 * "..", as the kubelet's own files do. hfd_is_config_key has the whole rule.
 */
#include "server/resources/strategies/data/data_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/causes.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"

void hfd_data_map_validate_keys(const struct hf__json *object, const char *part,
                                struct hfd_causes *causes) {
        for (struct hf__json *m = hf__json_first(hf__json_get(object, part)); m;
             m = hf__json_next(m)) {
                char field[128];
                if (hfd_is_config_key(hf__json_key(m)))
                        continue;
                (void)snprintf(field, sizeof field, "%s[%.100s]", part, hf__json_key(m));
                hfd_config_key_validate(hf__json_key(m), field, causes);
        }
}

/* Whether two texts in base64 stand for the same bytes. The bytes may be a secret, so they are
 * wiped. False if a text is not base64, which only a stored object can have. False also if memory
 * runs out, which is noted in causes. */
static bool has_same_bytes(struct hfd_causes *causes, const char *a, const char *b) {
        char *x = NULL, *y = NULL;
        size_t n = 0, m = 0;
        bool decoded = hfd_causes_check(causes, hf__base64_decode(a, strlen(a), &x, &n)) &&
                       hfd_causes_check(causes, hf__base64_decode(b, strlen(b), &y, &m)),
             same = decoded && n == m && memcmp(x, y, n) == 0;

        if (x)
                explicit_bzero(x, n);
        if (y)
                explicit_bzero(y, m);
        free(x);
        free(y);
        return same;
}

/* Whether two maps have the same keys and the same bytes. The form in base64 does not matter: it
 * may differ in line breaks, which older versions of the server stored, and in the bits after the
 * last byte. False also if memory runs out, which is noted in causes. */
static bool has_same_values(struct hfd_causes *causes, const struct hf__json *new_part,
                            const struct hf__json *old_part) {
        struct hf__json_index had;
        size_t n = 0;
        bool same = true;

        if (!hf__json_is_object(new_part) || !hf__json_is_object(old_part) ||
            !hfd_causes_check(causes, hf__json_index_init(&had, old_part, NULL)))
                return false;
        for (const struct hf__json *m = hf__json_first(new_part); m && same;
             m = hf__json_next(m), n++) {
                const struct hf__json_index_entry *entry =
                        hf__json_index_find(&had, hf__json_key(m));
                same = entry && hf__json_is_string(m) && hf__json_is_string(entry->item) &&
                       (strcmp(hf__json_text(m), hf__json_text(entry->item)) == 0 ||
                        has_same_bytes(causes, hf__json_text(m), hf__json_text(entry->item)));
        }
        same = same && n == had.n;
        hf__json_index_done(&had);
        return same;
}

void hfd_data_map_validate_immutable(const struct hf__json *object, const struct hf__json *old,
                                     const struct hfd_data_part *parts, size_t n_parts,
                                     struct hfd_causes *causes) {
        if (!old || !hf__json_bool(old, "immutable", false))
                return;
        if (!hf__json_bool(object, "immutable", false))
                hfd_cause_forbidden(causes, "immutable",
                                    "field is immutable when `immutable` is set");
        for (size_t i = 0; i < n_parts; i++) {
                const struct hf__json *new_part = hf__json_get(object, parts[i].name),
                                      *old_part = hf__json_get(old, parts[i].name);
                /* Older versions of the server stored empty maps, so an absent map equals an empty
                 * one. */
                bool both_empty = !hf__json_first(new_part) && !hf__json_first(old_part);
                if (!both_empty && !hfd_causes_equal(causes, new_part, old_part) &&
                    !(parts[i].is_base64 && has_same_values(causes, new_part, old_part)))
                        hfd_cause_forbidden(causes, parts[i].name,
                                            "field is immutable when `immutable` is set");
        }
}
