/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LeaseCandidates: one for each replica that takes part in a coordinated election. A coordinator,
 * which this server does not have (docs/semantics.md), compares their versions to pick the holder.
 * So a version must have all three numbers, and the emulation version must not be newer than the
 * binary version.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/lease_spec.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/names.h"
#include "server/schema/common.h"

#define COORDINATION "io.k8s.api.coordination.v1beta1."

static const struct hfd_schema_field spec_fields[] = {
        {"binaryVersion", &hfd_schema_text, "The version of the candidate's program.",
         .protobuf_tag = 4, .flags = HFD_FIELD_REQUIRED},
        {"emulationVersion", &hfd_schema_text, "The version whose behaviour the program shows.",
         .protobuf_tag = 5},
        {"leaseName", &hfd_schema_text,
         "The lease for which this is a candidate. It cannot be changed.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"pingTime", &hfd_schema_micro_time,
         "When the coordinator last asked whether the candidate is there.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"renewTime", &hfd_schema_micro_time, "When the candidate last answered.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"strategy", HFD_NAMED_TEXT("io.k8s.api.coordination.v1.CoordinatedLeaseStrategy"),
         "How the coordinator picks the holder.", .protobuf_tag = 6, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema spec_schema = {HFD_STRUCT(COORDINATION "LeaseCandidateSpec",
                                                         spec_fields),
                                              .description = "A candidate for a lease."};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS("More info: " HFD_CONVENTIONS "#metadata"),
        {"spec", &spec_schema, "The candidate.", .protobuf_tag = 2},
};
const struct hfd_schema hfd_lease_candidate_schema =
        {HFD_STRUCT(COORDINATION "LeaseCandidate", fields),
         .description =
                 "LeaseCandidate is one replica that can hold a lease in a coordinated election."};

#define SUFFIX_CHARS "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-.+"

/*
 * Parses one number of a version at *at. The separator must follow; *at is advanced past both.
 * separator '\0' = this is the last number, so a suffix or the end of the text must follow, and *at
 * is advanced to it. Leading zeros are not allowed. A number above UINT64_MAX becomes UINT64_MAX.
 */
static bool parse_number(const char **at, char separator, uint64_t *ret_number) {
        char *end;

        if (**at < '0' || **at > '9')
                return false;
        if (**at == '0' && (*at)[1] >= '0' && (*at)[1] <= '9')
                return false;
        *ret_number = strtoull(*at, &end, 10);
        if (separator == '\0' ? *end && *end != '-' && *end != '+' : *end != separator)
                return false;
        *at = separator == '\0' ? end : end + 1;
        return true;
}

/* Parses major.minor.patch. A suffix after '-' or '+' must not be empty, and is ignored. */
static bool parse_version(const char *text, uint64_t version[3]) {
        const char *at = text;

        if (!parse_number(&at, '.', &version[0]) || !parse_number(&at, '.', &version[1]) ||
            !parse_number(&at, '\0', &version[2]))
                return false;
        return !*at || (at[1] && at[strspn(at, SUFFIX_CHARS)] == '\0');
}

static bool validate_version(const char *text, const char *field, uint64_t version[3],
                             struct hfd_causes *causes) {
        if (text && *text && parse_version(text, version))
                return true;
        hfd_cause_invalid_text(causes, field, text ? text : "",
                               "must be a semantic version: major.minor.patch");
        return false;
}

/* < 0: a is older than b; 0: they are equal; > 0: a is newer. */
static int compare_versions(const uint64_t a[3], const uint64_t b[3]) {
        for (int i = 0; i < 3; i++)
                if (a[i] != b[i])
                        return a[i] < b[i] ? -1 : 1;
        return 0;
}

static void validate_versions(const struct hf__json *object, bool needs_emulation,
                              struct hfd_causes *causes) {
        const char *binary = hf__json_string(object, "spec.binaryVersion"),
                   *emulation = hf__json_string(object, "spec.emulationVersion");
        uint64_t binary_version[3], emulation_version[3];
        bool comparable = validate_version(binary, "spec.binaryVersion", binary_version, causes);

        if (!emulation || !*emulation) {
                if (needs_emulation)
                        hfd_cause_required(causes, "spec.emulationVersion",
                                           "must be specified when `strategy` is "
                                           "'" HFD_OLDEST_EMULATION_VERSION "'");
                return;
        }
        if (!validate_version(emulation, "spec.emulationVersion", emulation_version, causes) ||
            !comparable)
                return;
        if (compare_versions(emulation_version, binary_version) > 0)
                hfd_cause_invalid_text(causes, "spec.binaryVersion", binary,
                                       "must be greater than or equal to `emulationVersion`");
}

void hfd_lease_candidate_validate(const struct hf__json *object, const struct hf__json *old,
                                  struct hfd_causes *causes) {
        const char *lease = hf__json_string(object, "spec.leaseName"),
                   *old_lease = hf__json_string(old, "spec.leaseName"),
                   *strategy = hf__json_string(object, "spec.strategy"),
                   *name = hf__json_string(object, "metadata.name");

        if (name && *name && !hfd_is_config_key(name))
                hfd_cause_invalid_text(causes, "metadata.name", name,
                                       "must consist of alphanumeric characters, '-', '_' or '.'");
        if (!lease || !*lease)
                hfd_cause_required(causes, "spec.leaseName", "");
        if (old_lease && *old_lease && strcmp(lease ? lease : "", old_lease) != 0)
                hfd_cause_invalid_text(causes, "spec.leaseName", lease ? lease : "",
                                       "field is immutable");
        if (!strategy || !*strategy)
                hfd_cause_required(causes, "spec.strategy", "");
        else
                hfd_lease_spec_validate_strategy(strategy, causes);
        validate_versions(object, strategy && strcmp(strategy, HFD_OLDEST_EMULATION_VERSION) == 0,
                          causes);
}
