/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads DeleteOptions from a body.
 *
 * Invariant: an option of DeleteOptions that cannot be read is refused and never ignored, because a
 * delete must not delete more than the client intended. (Two of them have no effect here:
 * gracePeriodSeconds, because no kind has a grace period, and
 * ignoreStoreReadErrorWithClusterBreakingPotential, without which less is deleted.)
 */
#include "server/registry/base/delete_options.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/schema/common.h"
#include "server/schema/decode.h"

static bool is_given(const struct hf__json *value) { return value && !hf__json_is_null(value); }

/*
 * Returns the first member whose type does not match DeleteOptions; NULL = none. Members that
 * DeleteOptions does not have are ignored.
 */
static const char *mistyped_member(const struct hf__json *body) {
        static const char *const strings[] = {"kind", "apiVersion", "preconditions.uid",
                                              "preconditions.resourceVersion", "propagationPolicy"};
        const struct hf__json *dry_run = hf__json_get(body, "dryRun");
        const struct hf__json *preconditions = hf__json_get(body, "preconditions");
        static const char *const booleans[] = {"orphanDependents",
                                               "ignoreStoreReadErrorWithClusterBreakingPotential"};
        int64_t seconds;

        if (is_given(dry_run) && !hf__json_is_array(dry_run))
                return "dryRun";
        for (const struct hf__json *m = hf__json_first(dry_run); m; m = hf__json_next(m))
                if (!hf__json_is_string(m))
                        return "dryRun";
        if (is_given(preconditions) && !hf__json_is_object(preconditions))
                return "preconditions";
        for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
                const struct hf__json *value = hf__json_path(body, strings[i]);
                if (is_given(value) && !hf__json_is_string(value))
                        return strings[i];
        }
        for (size_t i = 0; i < sizeof booleans / sizeof booleans[0]; i++) {
                const struct hf__json *value = hf__json_get(body, booleans[i]);
                if (is_given(value) && !hf__json_is_bool(value))
                        return booleans[i];
        }
        if (is_given(hf__json_get(body, "gracePeriodSeconds")) &&
            !hf__json_i64(body, "gracePeriodSeconds", &seconds))
                return "gracePeriodSeconds";
        return NULL;
}

/* Checks that body has the kind and the types of DeleteOptions. False: response is filled. */
static bool check_types(const struct hf__json *body, struct hfd_response *response) {
        const char *mistyped = mistyped_member(body);
        const char *kind;

        if (mistyped) {
                hfd_response_bad_request(response,
                                         "DeleteOptions in version \"v1\" cannot be handled: the "
                                         "field %s cannot be read",
                                         mistyped);
                return false;
        }
        /* A body of another kind was probably intended for another request. */
        kind = hf__json_string(body, "kind");
        if (kind && *kind && strcmp(kind, "DeleteOptions") != 0) {
                hfd_response_bad_request(response,
                                         "%s cannot be handled as a DeleteOptions: the kind in the "
                                         "data does not match",
                                         kind);
                return false;
        }
        return true;
}

static void read_dry_run(struct hfd_options *options, const struct hf__json *dry_run,
                         struct hfd_causes *causes) {
        char value[300];

        for (const struct hf__json *m = hf__json_first(dry_run); m; m = hf__json_next(m)) {
                options->dry_run = true;
                if (strcmp(hf__json_text(m), "All") == 0)
                        continue;
                /* One unsupported value is enough, because its message lists all values. */
                hfd_quote_list(dry_run, value, sizeof value);
                hfd_cause_unsupported(causes, "dryRun", value, "\"All\"");
                return;
        }
}

static void read_propagation(struct hfd_options *options, const struct hf__json *body,
                             struct hfd_causes *causes) {
        const char *policy = hf__json_string(body, "propagationPolicy");
        char value[300];

        options->has_orphan = hf__json_is_bool(hf__json_get(body, "orphanDependents"));
        options->orphan = hf__json_bool(body, "orphanDependents", false);
        options->propagation = HFD_PROPAGATE_UNSET;
        if (policy && !hfd_propagation_parse(policy, &options->propagation)) {
                hfd_quote(policy, value, sizeof value);
                hfd_cause_unsupported(causes, "propagationPolicy", value,
                                      "\"Foreground\", \"Background\", \"Orphan\", \"nil\"");
        }
}

/* orphanDependents is the older form of propagationPolicy, so a request must not have both. */
static void check_propagation(const struct hfd_options *options, struct hfd_causes *causes) {
        static const char *const quoted[] = {[HFD_PROPAGATE_UNSET] = "",
                                             [HFD_PROPAGATE_ORPHAN] = "\"Orphan\"",
                                             [HFD_PROPAGATE_BACKGROUND] = "\"Background\"",
                                             [HFD_PROPAGATE_FOREGROUND] = "\"Foreground\""};

        if (options->has_orphan && options->propagation != HFD_PROPAGATE_UNSET)
                hfd_cause_invalid(causes, "propagationPolicy", quoted[options->propagation],
                                  "orphanDependents and deletionPropagation cannot be both set");
}

bool hfd_delete_options_read(struct hfd_options *options, const struct hf__json *body,
                             struct hfd_response *response) {
        static const struct hfd_resource delete_options = {.group = "meta.k8s.io",
                                                           .kind = "DeleteOptions"};
        struct hfd_causes causes;

        assert(!body || hf__json_is_object(body));
        if (!check_types(body, response))
                return false;
        /* The items stay uninitialized, because touching them would cost 15 KiB of stack. */
        hfd_causes_init(&causes);
        if (body) {
                read_propagation(options, body, &causes);
                read_dry_run(options, hf__json_get(body, "dryRun"), &causes);
        }
        check_propagation(options, &causes);
        if (causes.n)
                hfd_response_invalid(response, &delete_options, "", &causes);
        return !causes.n;
}

int hfd_delete_options_print(struct hf__json *body, struct hf__strbuf *text, char *reason,
                             size_t max_reason) {
        int r = hfd_schema_decode(&hfd_schema_delete_options, body, NULL, reason, max_reason);

        if (r != 0)
                return r;
        hf__json_remove(body, "kind");
        hf__json_remove(body, "apiVersion");
        hf__json_remove(body, "dryRun"); /* a list, which may be long */
        if (hf__json_first(body))
                hf__json_print(body, text);
        return text->error;
}
