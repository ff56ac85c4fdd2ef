/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields that the two specs of coordination.k8s.io share. A MicroTime is stored in one format
 * only. Some clients send a time back in another format ("+00:00" for "Z"), and this must not
 * change the object.
 */
#include "server/resources/strategies/lease_spec.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/time_format.h"
#include "server/resources/causes.h"
#include "server/resources/names.h"

/*
 * Kubernetes treats null as absent. Nulls are removed here, so that no later check must handle
 * them.
 */
bool hfd_lease_spec_get(struct hf__json *object, const char *kind, struct hf__json **ret_spec,
                        char *reason, size_t max_reason) {
        struct hf__json *spec = hf__json_get(object, "spec"), *next;

        *ret_spec = NULL;
        if (!spec)
                return true;
        if (hf__json_is_null(spec)) {
                hf__json_remove(object, "spec");
                return true;
        }
        if (!hf__json_is_object(spec)) {
                (void)snprintf(reason, max_reason,
                               "json: cannot unmarshal into Go struct field %s.spec of type %sSpec",
                               kind, kind);
                return false;
        }
        for (struct hf__json *m = hf__json_first(spec); m; m = next) {
                next = hf__json_next(m); /* removing m frees it */
                if (hf__json_is_null(m))
                        hf__json_drop(spec, hf__json_key(m));
        }
        *ret_spec = spec;
        return true;
}

static bool set_wrong_type(const char *kind, const char *field, const char *type, char *reason,
                           size_t max_reason) {
        (void)snprintf(reason, max_reason,
                       "json: cannot unmarshal into Go struct field %sSpec.spec.%s of type %s",
                       kind, field, type);
        return false;
}

bool hfd_lease_spec_is_text(const struct hf__json *spec, const char *kind, const char *field,
                            char *reason, size_t max_reason) {
        const struct hf__json *value = hf__json_get(spec, field);

        if (!value || hf__json_is_string(value))
                return true;
        return set_wrong_type(kind, field, "string", reason, max_reason);
}

/* Go clients decode leaseDurationSeconds and leaseTransitions into an int32, and could not read a
 * Lease with a larger number. */
bool hfd_lease_spec_is_int32(const struct hf__json *spec, const char *kind, const char *field,
                             char *reason, size_t max_reason) {
        int64_t whole;

        if (!hf__json_get(spec, field))
                return true;
        if (hf__json_i64(spec, field, &whole) && whole >= INT32_MIN && whole <= INT32_MAX)
                return true;
        return set_wrong_type(kind, field, "int32", reason, max_reason);
}

bool hfd_lease_spec_is_micro_time(struct hf__json *spec, const char *field, char *reason,
                                  size_t max_reason) {
        struct hf__json *value = hf__json_get(spec, field);
        char text[HF__MICROTIME_MAX];
        int64_t usec;

        if (!value)
                return true;
        if (!hf__json_is_string(value) || hf__microtime_parse(hf__json_text(value), &usec) != 0) {
                (void)snprintf(reason, max_reason,
                               "parsing time \"%.100s\" as \"2006-01-02T15:04:05.000000Z07:00\": "
                               "cannot parse spec.%s",
                               hf__json_is_string(value) ? hf__json_text(value) : "", field);
                return false;
        }
        hf__microtime_format(usec, text);
        if (strcmp(text, hf__json_text(value)) == 0 || hf__json_set_string(spec, field, text) == 0)
                return true;
        (void)snprintf(reason, max_reason, "out of memory");
        return false;
}

void hfd_lease_spec_validate_strategy(const char *strategy, struct hfd_causes *causes) {
        const char *slash = strchr(strategy, '/');

        assert(*strategy);
        if (strcmp(strategy, HFD_OLDEST_EMULATION_VERSION) == 0 ||
            (slash && hfd_is_qualified_name(strategy)))
                return;
        /* The field paths below repeat "strategy", as those of Kubernetes do. */
        if (!slash)
                hfd_cause_unsupported_text(causes, "spec.strategy.strategy", strategy,
                                           "\"" HFD_OLDEST_EMULATION_VERSION "\"");
        else
                hfd_cause_invalid_text(causes, "spec.strategy.strategy", strategy,
                                       "must be of the form domain/name");
}
