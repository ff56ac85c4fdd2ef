/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases and LeaseCandidates (apiserver.md 3.1-3.3): types and MicroTime strictly, numbers,
 * versions and strategies validated, times never related to each other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/time_format.h"
#include "server/resources/meta.h"
#include "server/resources/resource.h"
#include "server/resources/response.h"

#define OLDEST_EMULATION_VERSION "OldestEmulationVersion"

static bool micro_time(struct hf__json *spec, const char *field, char *reason, size_t max_reason) {
        struct hf__json *value = hf__json_get(spec, field);
        char text[HF__MICROTIME_MAX];
        int64_t usec;

        if (!value)
                return true;
        if (!hf__json_is_string(value) || hf__microtime_parse(hf__json_text(value), &usec)) {
                (void)snprintf(reason, max_reason,
                               "parsing time \"%.100s\" as \"2006-01-02T15:04:05.000000Z07:00\": "
                               "cannot parse spec.%s",
                               hf__json_is_string(value) ? hf__json_text(value) : "", field);
                return false;
        }
        hf__microtime_format(usec, text);
        return strcmp(text, hf__json_text(value)) == 0 || !hf__json_set_string(spec, field, text);
}

static bool typed(const struct hf__json *spec, const char *kind, const char *field, bool number,
                  char *reason, size_t max_reason) {
        const struct hf__json *value = hf__json_get(spec, field);
        int64_t whole;
        bool good = !value || (number ? hf__json_i64(spec, field, &whole) && whole >= INT32_MIN &&
                                                whole <= INT32_MAX
                                      : hf__json_is_string(value));

        if (!good)
                (void)snprintf(reason, max_reason,
                               "json: cannot unmarshal into Go struct field %sSpec.spec.%s of type "
                               "%s",
                               kind, field, number ? "int32" : "string");
        return good;
}

/* The spec as an object without members that are null; NULL: there is none. False: it is something
 * else. */
static bool take_spec(struct hf__json *object, const char *kind, struct hf__json **ret_spec,
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
                next = hf__json_next(m);
                if (hf__json_is_null(m))
                        hf__json_drop(spec, hf__json_key(m));
        }
        *ret_spec = spec;
        return true;
}

bool hfd_lease_decode(struct hf__json *object, char *reason, size_t max_reason) {
        struct hf__json *spec;

        if (!take_spec(object, "Lease", &spec, reason, max_reason))
                return false;
        return !spec || (typed(spec, "Lease", "holderIdentity", false, reason, max_reason) &&
                         typed(spec, "Lease", "leaseDurationSeconds", true, reason, max_reason) &&
                         typed(spec, "Lease", "leaseTransitions", true, reason, max_reason) &&
                         typed(spec, "Lease", "strategy", false, reason, max_reason) &&
                         typed(spec, "Lease", "preferredHolder", false, reason, max_reason) &&
                         micro_time(spec, "acquireTime", reason, max_reason) &&
                         micro_time(spec, "renewTime", reason, max_reason));
}

/* The strategies of coordinated election: the field's own one, or anybody's as domain/name. */
static void validate_strategy(const char *strategy, struct hfd_causes *causes) {
        char quoted[300];

        if (strcmp(strategy, OLDEST_EMULATION_VERSION) == 0 ||
            (strchr(strategy, '/') && hfd_is_qualified_name(strategy)))
                return;
        hfd_quote(strategy, quoted, sizeof quoted);
        if (!strchr(strategy, '/'))
                hfd_cause_unsupported(causes, "spec.strategy.strategy", quoted,
                                      "\"" OLDEST_EMULATION_VERSION "\"");
        else
                hfd_cause_invalid(causes, "spec.strategy.strategy", quoted,
                                  "must be of the form domain/name");
}

void hfd_lease_validate(const struct hf__json *object, const struct hf__json *old,
                        struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec");
        char value[32];
        int64_t number;

        if (hf__json_i64(spec, "leaseDurationSeconds", &number) && number <= 0) {
                (void)snprintf(value, sizeof value, "%lld", (long long)number);
                hfd_cause_invalid(causes, "spec.leaseDurationSeconds", value,
                                  "must be greater than 0");
        }
        if (hf__json_i64(spec, "leaseTransitions", &number) && number < 0) {
                (void)snprintf(value, sizeof value, "%lld", (long long)number);
                hfd_cause_invalid(causes, "spec.leaseTransitions", value,
                                  "must be greater than or equal to 0");
        }
        const char *strategy = hf__json_string(spec, "strategy"),
                   *preferred = hf__json_string(spec, "preferredHolder");
        if (strategy && *strategy)
                validate_strategy(strategy, causes);
        else if (preferred && *preferred)
                hfd_cause_forbidden(causes, "spec.preferredHolder",
                                    "may only be specified if `strategy` is defined");
}

/* ---- LeaseCandidates ---- */

bool hfd_lease_candidate_decode(struct hf__json *object, char *reason, size_t max_reason) {
        static const char *const texts[] = {"leaseName", "binaryVersion", "emulationVersion",
                                            "strategy"};
        struct hf__json *spec;

        if (!take_spec(object, "LeaseCandidate", &spec, reason, max_reason))
                return false;
        for (size_t i = 0; spec && i < sizeof texts / sizeof texts[0]; i++)
                if (!typed(spec, "LeaseCandidate", texts[i], false, reason, max_reason))
                        return false;
        return !spec || (micro_time(spec, "pingTime", reason, max_reason) &&
                         micro_time(spec, "renewTime", reason, max_reason));
}

/* One number of a version, without leading zeros, and the separator behind it; '\0' = the rest may
 * follow. */
static bool take_number(const char **at, char separator, uint64_t *ret_number) {
        char *end;

        if (**at < '0' || **at > '9' || (**at == '0' && (*at)[1] >= '0' && (*at)[1] <= '9'))
                return false;
        *ret_number = strtoull(*at, &end, 10);
        if (separator ? *end != separator : *end && *end != '-' && *end != '+')
                return false;
        *at = end + (separator != '\0');
        return true;
}

/* major.minor.patch; what follows behind - or + is letters, digits, '-', '.', '+' and is not
 * compared. */
static bool parse_version(const char *text, uint64_t version[3]) {
        const char *at = text;

        if (!take_number(&at, '.', &version[0]) || !take_number(&at, '.', &version[1]) ||
            !take_number(&at, '\0', &version[2]))
                return false;
        return !*at ||
               (at[1] &&
                strspn(at, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-.+") ==
                        strlen(at));
}

static bool validate_version(const char *text, const char *field, uint64_t version[3],
                             struct hfd_causes *causes) {
        char quoted[300];

        if (text && *text && parse_version(text, version))
                return true;
        hfd_quote(text ? text : "", quoted, sizeof quoted);
        hfd_cause_invalid(causes, field, quoted, "must be a semantic version: major.minor.patch");
        return false;
}

static void validate_versions(const struct hf__json *object, bool needs_emulation,
                              struct hfd_causes *causes) {
        const char *binary = hf__json_string(object, "spec.binaryVersion"),
                   *emulation = hf__json_string(object, "spec.emulationVersion");
        uint64_t b[3], e[3];
        char quoted[300];
        bool comparable = validate_version(binary, "spec.binaryVersion", b, causes);

        if (!emulation || !*emulation) {
                if (needs_emulation)
                        hfd_cause_required(causes, "spec.emulationVersion",
                                           "must be specified when `strategy` is "
                                           "'" OLDEST_EMULATION_VERSION "'");
                return;
        }
        if (!validate_version(emulation, "spec.emulationVersion", e, causes) || !comparable)
                return;
        for (int i = 0; i < 3 && e[i] >= b[i]; i++)
                if (e[i] > b[i]) {
                        hfd_quote(binary, quoted, sizeof quoted);
                        hfd_cause_invalid(causes, "spec.binaryVersion", quoted,
                                          "must be greater than or equal to `emulationVersion`");
                        return;
                }
}

void hfd_lease_candidate_validate(const struct hf__json *object, const struct hf__json *old,
                                  struct hfd_causes *causes) {
        const char *lease = hf__json_string(object, "spec.leaseName"),
                   *strategy = hf__json_string(object, "spec.strategy");
        const char *before = old ? hf__json_string(old, "spec.leaseName") : NULL,
                   *name = hf__json_string(object, "metadata.name");
        char quoted[300];

        if (name && *name && !hfd_is_config_key(name)) {
                hfd_quote(name, quoted, sizeof quoted);
                hfd_cause_invalid(causes, "metadata.name", quoted,
                                  "must consist of alphanumeric characters, '-', '_' or '.'");
        }
        if (!lease || !*lease)
                hfd_cause_required(causes, "spec.leaseName", "");
        if (before && *before && strcmp(lease ? lease : "", before) != 0) {
                hfd_quote(lease ? lease : "", quoted, sizeof quoted);
                hfd_cause_invalid(causes, "spec.leaseName", quoted, "field is immutable");
        }
        if (!strategy || !*strategy)
                hfd_cause_required(causes, "spec.strategy", "");
        else
                validate_strategy(strategy, causes);
        validate_versions(object, strategy && strcmp(strategy, OLDEST_EMULATION_VERSION) == 0,
                          causes);
}
