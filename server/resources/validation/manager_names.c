/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates names of field managers, as Kubernetes does.
 *
 * Invariant: a name that a client can bring into managedFields is short, because every conflict
 * with its manager repeats it, and every read returns it. An apiVersion has no limit but that of
 * the object, as in Kubernetes; messages cut it (apply/conflicts.c).
 */
#include "server/resources/validation/manager_names.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/quote.h"
#include "base/utf8.h"

/* The position of the first character from `at` on that is not printable, or n. *ret_n: its bytes.
 * A byte that belongs to no character is not printable, and *ret_character is the byte then. */
static size_t find_unprintable(const char *name, size_t n, size_t at, uint32_t *ret_character,
                               size_t *ret_n) {
        while (at < n) {
                *ret_n = hf__utf8_decode(name + at, n - at, ret_character);
                if (*ret_n == 0) {
                        *ret_character = (unsigned char)name[at];
                        *ret_n = 1;
                        return at;
                }
                if (!hf__is_printable(*ret_character))
                        return at;
                at += *ret_n;
        }
        return n;
}

void hfd_manager_name_validate(const char *name, const char *field, struct hfd_causes *causes) {
        size_t n = strlen(name), n_character = 0;
        uint32_t character = 0;
        char detail[80];

        if (n > HFD_FIELD_MANAGER_MAX) {
                (void)snprintf(detail, sizeof detail, "may not be more than %d bytes",
                               HFD_FIELD_MANAGER_MAX);
                hfd_cause_too_long(causes, field, detail);
        }
        for (size_t at = 0; causes->n < HFD_CAUSES_MAX &&
                            (at = find_unprintable(name, n, at, &character, &n_character)) < n;
             at += n_character) {
                (void)snprintf(detail, sizeof detail, "invalid character U+%04X (at position %zu)",
                               (unsigned)character, at);
                hfd_cause_invalid_text(causes, field, name, detail);
        }
}

/* ---- managedFields ---- */

static bool is_name(const char *name) {
        size_t n = strlen(name);

        return n <= HFD_FIELD_MANAGER_MAX &&
               find_unprintable(name, n, 0, &(uint32_t){0}, &(size_t){0}) == n;
}

static bool is_wrong(const char *manager, const char *subresource) {
        return (manager && !is_name(manager)) ||
               (subresource && strlen(subresource) > HFD_SUBRESOURCE_BYTES_MAX);
}

bool hfd_managed_fields_are_suspect(const struct hf__json *list) {
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                if (is_wrong(hf__json_string(m, "manager"), hf__json_string(m, "subresource")))
                        return true;
        return false;
}

void hfd_managed_fields_validate(const struct hf__json *list, const struct hf__json *old_list,
                                 struct hfd_causes *causes) {
        struct hf__json_index managers = {0}, subresources = {0};
        char field[80];
        size_t i = 0;

        (void)hfd_causes_check(causes, hf__json_index_init(&managers, old_list, "manager"));
        (void)hfd_causes_check(causes, hf__json_index_init(&subresources, old_list, "subresource"));
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m), i++) {
                const char *manager = hf__json_string(m, "manager"),
                           *subresource = hf__json_string(m, "subresource");
                (void)snprintf(field, sizeof field, "metadata.managedFields[%zu].manager", i);
                if (manager && !hf__json_index_find(&managers, manager))
                        hfd_manager_name_validate(manager, field, causes);
                (void)snprintf(field, sizeof field, "metadata.managedFields[%zu].subresource", i);
                if (subresource && strlen(subresource) > HFD_SUBRESOURCE_BYTES_MAX &&
                    !hf__json_index_find(&subresources, subresource))
                        hfd_cause_too_long(causes, field, "may not be more than 256 bytes");
        }
        hf__json_index_done(&managers);
        hf__json_index_done(&subresources);
}
