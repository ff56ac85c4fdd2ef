/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema, the defaults and the rules of PriorityLevelConfigurations. One of them says how many
 * requests of a priority level may run at a time; server/flow/ enforces it.
 *
 * Invariants: the only level without a limit is the one with the name `exempt` and the type Exempt.
 * The mandatory levels keep the spec that the server gives them, except spec.exempt of `exempt`.
 * The texts of the causes, their order, and the defaults are those of kube-apiserver, because
 * clients show them and tests compare them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/flow/flow_fields.h"
#include "server/resources/strategies/flow/flow_objects.h"
#include "server/resources/strategies/flow/flow_rules.h"
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

#define QUEUES_MAX       10000000 /* Kubernetes' limit */
#define ENTROPY_BITS_MAX 60       /* of the hash by which Kubernetes chooses the queues of a flow */

/* An annotation that only v1beta3 allowed; v1 refuses it. */
#define ZERO_SHARES "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"

/* ---- the schema ---- */

/*
 * A row of a table is a field: its name in JSON, the schema of the value, a description for
 * `kubectl explain`, its number in protobuf (protobuf_tag), and flags (schema.h). Names and numbers
 * are those of k8s.io/api/flowcontrol/v1 and never change. Rows are sorted by name, because
 * look-ups bisect a table.
 */

static const struct hfd_schema_field queuing_fields[] = {
        {"handSize", &hfd_schema_int32, "Among how many queues each flow may choose; 8 if absent.",
         .protobuf_tag = 2},
        {"queueLengthLimit", &hfd_schema_int32,
         "How many requests may wait in a queue; 50 if absent.", .protobuf_tag = 3},
        {"queues", &hfd_schema_int32, "The number of queues; 64 if absent.", .protobuf_tag = 1},
};
static const struct hfd_schema queuing_schema = {HFD_STRUCT(HFD_FLOW "QueuingConfiguration",
                                                            queuing_fields),
                                                 .description =
                                                         "How requests wait for their turn."};

static const struct hfd_schema_field response_fields[] = {
        {"queuing", &queuing_schema, "The queues, if the type is Queue.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"type", HFD_NAMED_TEXT(HFD_FLOW "LimitResponseType"),
         "Queue: requests wait. Reject: they are refused.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema response_schema =
        {HFD_STRUCT(HFD_FLOW "LimitResponse", response_fields),
         .description = "What happens to requests beyond the limit."};

static const struct hfd_schema_field limited_fields[] = {
        {"borrowingLimitPercent", &hfd_schema_int32,
         "How much the level may borrow of others, in percent of its own share. Absent: no limit.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"lendablePercent", &hfd_schema_int32,
         "How much of its share other levels may borrow, in percent.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"limitResponse", &response_schema, "What happens to requests beyond the limit.",
         .protobuf_tag = 2},
        {"nominalConcurrencyShares", &hfd_schema_int32,
         "The share of the server's limit that the level has, in proportion to the other levels; "
         "30 if it is absent.",
         .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema limited_schema = {HFD_STRUCT(HFD_FLOW
                                                            "LimitedPriorityLevelConfiguration",
                                                            limited_fields),
                                                 .description = "The limits of a level."};

static const struct hfd_schema_field exempt_fields[] = {
        {"lendablePercent", &hfd_schema_int32,
         "How much of its share other levels may borrow, in percent.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"nominalConcurrencyShares", &hfd_schema_int32,
         "The share of the server's limit that is kept for the level.", .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema exempt_schema =
        {HFD_STRUCT(HFD_FLOW "ExemptPriorityLevelConfiguration", exempt_fields),
         .description = "What is kept for a level without limits."};

static const struct hfd_schema_field spec_fields[] = {
        {"exempt", &exempt_schema, "What is kept for the level, if the type is Exempt.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"limited", &limited_schema, "The limits, if the type is Limited.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"type", HFD_NAMED_TEXT(HFD_FLOW "PriorityLevelEnablement"),
         "Limited, or Exempt: the level has no limits.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema spec_schema = {HFD_STRUCT(HFD_FLOW "PriorityLevelConfigurationSpec",
                                                         spec_fields),
                                              .description =
                                                      "How many requests may run at a time."};

HFD_FLOW_STATUS("PriorityLevelConfiguration", "The state of the level.");

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS(
                "`metadata` is the standard object's metadata. More info: " HFD_CONVENTIONS
                "#metadata"),
        {"spec", &spec_schema, "How many requests may run at a time.", .protobuf_tag = 2},
        {"status", &status_schema, "The state of the level.", .protobuf_tag = 3},
};
const struct hfd_schema hfd_priority_level_schema =
        {HFD_STRUCT(HFD_FLOW "PriorityLevelConfiguration", fields),
         .description = "PriorityLevelConfiguration says how many requests of a priority level may "
                        "run at a time."};

/* ---- defaults ---- */

/* Sets a member that is absent. of_zero: 0 counts as absent, because the member is no pointer in
 * Go. object NULL: there is nothing to set. 0 or -ENOMEM. */
static int set_default(struct hf__json *object, const char *key, int64_t value, bool of_zero) {
        int64_t now = 0;

        if (!hf__json_is_object(object) ||
            (hf__json_i64(object, key, &now) && !(of_zero && now == 0)))
                return 0;
        return hf__json_set_i64(object, key, value);
}

int hfd_priority_level_prepare(struct hf__json *object, const struct hf__json *old) {
        int r = 0;
        struct hf__json *limited = hf__json_path(object, "spec.limited"),
                        *exempt = hf__json_path(object, "spec.exempt");
        if (limited && !hf__json_get(limited, "limitResponse"))
                r = hf__json_put(limited, "limitResponse", hf__json_object());
        struct hf__json *queuing = hf__json_path(limited, "limitResponse.queuing");
        const struct {
                struct hf__json *object;
                const char *key;
                int64_t value;
                bool of_zero;
        } defaults[] = {{exempt, "nominalConcurrencyShares", 0, false},
                        {exempt, "lendablePercent", 0, false},
                        {limited, "nominalConcurrencyShares", 30, false},
                        {limited, "lendablePercent", 0, false},
                        {queuing, "queues", 64, true},
                        {queuing, "handSize", 8, true},
                        {queuing, "queueLengthLimit", 50, true}};
        for (size_t i = 0; r == 0 && i < sizeof defaults / sizeof defaults[0]; i++)
                r = set_default(defaults[i].object, defaults[i].key, defaults[i].value,
                                defaults[i].of_zero);
        return r;
}

/* ---- rules ---- */

/* The number at a path; `otherwise` if there is none. */
static int64_t number_at(const struct hf__json *object, const char *path, int64_t otherwise) {
        int64_t value = otherwise;

        (void)hf__json_i64(object, path, &value);
        return value;
}

static void refuse_number(struct hfd_causes *causes, const char *field, int64_t number,
                          const char *detail) {
        char value[32];

        (void)snprintf(value, sizeof value, "%" PRId64, number);
        hfd_cause_invalid(causes, field, value, detail);
}

/*
 * Whether a hash of ENTROPY_BITS_MAX bits can choose any hand. A hand is the set of queues that a
 * flow may use; Kubernetes computes it from a hash of the flow. The number of hands is counted as
 * queues to the power of hand, as in kube-apiserver; hand is at most queues. The loop ends as soon
 * as the number is too large, so it takes 16 steps at most. It needs no libm, which nothing else in
 * the server needs.
 */
static bool hands_fit(int64_t queues, int64_t hand) {
        const double max = (double)(UINT64_C(1) << ENTROPY_BITS_MAX);
        double hands = 1;

        for (int64_t i = 0; i < hand && hands <= max; i++)
                hands *= (double)queues;
        return hands <= max;
}

#define QUEUING "spec.limited.limitResponse.queuing"

static void validate_hand(int64_t queues, int64_t hand, struct hfd_causes *causes) {
        char detail[140];

        if (hand <= 0) {
                refuse_number(causes, QUEUING ".handSize", hand, "must be positive");
                return;
        }
        if (hand > queues) {
                (void)snprintf(detail, sizeof detail,
                               "should not be greater than queues (%" PRId64 ")", queues);
                refuse_number(causes, QUEUING ".handSize", hand, detail);
                return;
        }
        if (hands_fit(queues, hand))
                return;
        (void)snprintf(detail, sizeof detail,
                       "required entropy bits of deckSize %" PRId64 " and handSize %" PRId64
                       " should not be greater than %d",
                       queues, hand, ENTROPY_BITS_MAX);
        refuse_number(causes, QUEUING ".handSize", hand, detail);
}

static void validate_queuing(const struct hf__json *object, struct hfd_causes *causes) {
        int64_t queues = number_at(object, QUEUING ".queues", 0),
                length = number_at(object, QUEUING ".queueLengthLimit", 0);

        if (length <= 0)
                refuse_number(causes, QUEUING ".queueLengthLimit", length, "must be positive");
        if (queues <= 0)
                refuse_number(causes, QUEUING ".queues", queues, "must be positive");
        else if (queues > QUEUES_MAX)
                refuse_number(causes, QUEUING ".queues", queues,
                              "must not be greater than 10000000");
        validate_hand(queues, number_at(object, QUEUING ".handSize", 0), causes);
}

static void validate_response(const struct hf__json *object, struct hfd_causes *causes) {
        static const char field[] = "spec.limited.limitResponse.type";
        const char *type = hf__json_string(object, field);
        bool has_queues = hf__json_path(object, QUEUING) != NULL;

        if (type && strcmp(type, "Reject") == 0) {
                if (has_queues)
                        hfd_cause_forbidden(causes, QUEUING,
                                            "must be nil if limited.limitResponse.type is not "
                                            "Limited");
        } else if (type && strcmp(type, "Queue") == 0) {
                if (has_queues)
                        validate_queuing(object, causes);
                else
                        hfd_cause_required(causes, QUEUING,
                                           "must not be empty if limited.limitResponse.type is "
                                           "Limited");
        } else {
                hfd_cause_unsupported_text(causes, field, type ? type : "",
                                           "\"Queue\", \"Reject\"");
        }
}

static void validate_shares(const struct hf__json *object, const char *part,
                            struct hfd_causes *causes) {
        char field[80];
        int64_t value;

        (void)snprintf(field, sizeof field, "spec.%s.nominalConcurrencyShares", part);
        value = number_at(object, field, 0);
        if (value < 0)
                refuse_number(causes, field, value, "must be a non-negative integer");
}

static void validate_lendable(const struct hf__json *object, const char *part,
                              struct hfd_causes *causes) {
        char field[80];
        int64_t value;

        (void)snprintf(field, sizeof field, "spec.%s.lendablePercent", part);
        value = number_at(object, field, 0);
        if (value < 0 || value > 100)
                refuse_number(causes, field, value, "must be between 0 and 100, inclusive");
}

static void validate_limited(const struct hf__json *object, struct hfd_causes *causes) {
        static const char borrowing[] = "spec.limited.borrowingLimitPercent";
        int64_t value = number_at(object, borrowing, 0);

        validate_shares(object, "limited", causes);
        validate_response(object, causes);
        validate_lendable(object, "limited", causes);
        if (value < 0)
                refuse_number(causes, borrowing, value,
                              "if specified, must be a non-negative integer");
}

static void validate_spec(const struct hf__json *object, struct hfd_causes *causes) {
        const char *type = hf__json_string(object, "spec.type");
        bool is_exempt = type && strcmp(type, "Exempt") == 0,
             has_limited = hf__json_path(object, "spec.limited") != NULL,
             has_exempt = hf__json_path(object, "spec.exempt") != NULL;

        if (hf__json_has_text(object, "metadata.name", HFD_FLOW_EXEMPT) != is_exempt)
                hfd_cause_invalid_text(causes, "spec.type", type ? type : "",
                                       "must be 'Exempt' if and only if `name` is 'exempt'");
        if (is_exempt) {
                if (has_limited)
                        hfd_cause_forbidden(causes, "spec.limited",
                                            "must be nil if the type is not Limited");
                validate_shares(object, "exempt", causes);
                validate_lendable(object, "exempt", causes);
        } else if (type && strcmp(type, "Limited") == 0) {
                if (has_exempt)
                        hfd_cause_forbidden(causes, "spec.exempt",
                                            "must be nil if the type is Limited");
                if (has_limited)
                        validate_limited(object, causes);
                else
                        hfd_cause_required(causes, "spec.limited",
                                           "must not be empty when type is Limited");
        } else {
                hfd_cause_unsupported_text(causes, "spec.type", type ? type : "",
                                           "\"Exempt\", \"Limited\"");
        }
}

/* The spec of a mandatory level cannot change, except spec.exempt of the level `exempt`. */
static void validate_mandatory(const struct hf__json *object, struct hfd_causes *causes) {
        const char *name = hf__json_string(object, "metadata.name");
        const struct hfd_flow_object *fixed =
                name ? hfd_flow_object_find(HFD_FLOW_LEVEL_KIND, name) : NULL;
        struct hf__json *wanted;
        char detail[140];
        int r = 0;

        if (!fixed || !fixed->mandatory)
                return;
        bool is_exempt = strcmp(name, HFD_FLOW_EXEMPT) == 0;
        const struct hf__json *kept = hf__json_path(object, "spec.exempt");
        wanted = hfd_flow_object_spec(fixed);
        if (wanted && is_exempt && kept)
                r = hf__json_put(wanted, "exempt", hf__json_dup(kept));
        else if (wanted && is_exempt)
                hf__json_drop(wanted, "exempt");
        (void)snprintf(detail, sizeof detail, "spec of '%.40s'%s must equal the fixed value", name,
                       is_exempt ? " except the 'spec.exempt' field" : "");
        hfd_flow_validate_fixed(object, r == 0 ? wanted : NULL, detail, causes);
        hf__json_free(wanted);
}

void hfd_priority_level_validate(const struct hf__json *object, const struct hf__json *old,
                                 struct hfd_causes *causes) {
        if (hf__json_get(hf__json_path(object, "metadata.annotations"), ZERO_SHARES))
                hfd_cause_forbidden(causes, "metadata.annotations",
                                    "annotation '" ZERO_SHARES "' is forbidden");
        validate_spec(object, causes);
        validate_mandatory(object, causes);
        hfd_flow_validate_status(object, old, causes);
}
