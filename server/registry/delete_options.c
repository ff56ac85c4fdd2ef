/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads DeleteOptions from a body.
 *
 * Invariant: an option that cannot be read is refused and never ignored, because a delete must not
 * delete more than the client intended.
 */
#include "server/registry/delete_options.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"

static bool is_given(const struct hf__json *value) { return value && !hf__json_is_null(value); }

/* Returns the first member whose type does not match DeleteOptions; NULL = none. */
static const char *mistyped_member(const struct hf__json *sent) {
        static const char *const strings[] = {"kind", "apiVersion", "preconditions.uid",
                                              "preconditions.resourceVersion", "propagationPolicy"};
        const struct hf__json *dry_run = hf__json_get(sent, "dryRun");
        const struct hf__json *preconditions = hf__json_get(sent, "preconditions");
        const struct hf__json *orphan = hf__json_get(sent, "orphanDependents");
        int64_t seconds;

        if (is_given(dry_run) && !hf__json_is_array(dry_run))
                return "dryRun";
        for (const struct hf__json *m = hf__json_first(dry_run); m; m = hf__json_next(m))
                if (!hf__json_is_string(m))
                        return "dryRun";
        if (is_given(preconditions) && !hf__json_is_object(preconditions))
                return "preconditions";
        for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
                const struct hf__json *value = hf__json_path(sent, strings[i]);
                if (is_given(value) && !hf__json_is_string(value))
                        return strings[i];
        }
        if (is_given(orphan) && !hf__json_is_bool(orphan))
                return "orphanDependents";
        if (is_given(hf__json_get(sent, "gracePeriodSeconds")) &&
            !hf__json_i64(sent, "gracePeriodSeconds", &seconds))
                return "gracePeriodSeconds";
        return NULL;
}

/* Whether sent can be read as DeleteOptions at all. False: response is filled. */
static bool check_types(const struct hf__json *sent, struct hfd_response *response) {
        const char *mistyped = mistyped_member(sent);
        const char *kind;

        if (mistyped) {
                hfd_response_bad_request(response,
                                         "DeleteOptions in version \"v1\" cannot be handled: the "
                                         "field %s cannot be read",
                                         mistyped);
                return false;
        }
        /* A body of another kind was meant for another request. */
        kind = hf__json_string(sent, "kind");
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
                hfd_quote_list(dry_run, value, sizeof value);
                hfd_cause_unsupported(causes, "dryRun", value, "\"All\"");
                return;
        }
}

static void read_propagation(struct hfd_options *options, const struct hf__json *sent,
                             struct hfd_causes *causes) {
        const char *policy = hf__json_string(sent, "propagationPolicy");
        char value[300];

        options->has_orphan = hf__json_is_bool(hf__json_get(sent, "orphanDependents"));
        options->orphan = hf__json_bool(sent, "orphanDependents", false);
        options->propagation = HFD_PROPAGATE_UNSET;
        if (policy && !hfd_propagation_parse(policy, &options->propagation)) {
                hfd_quote(policy, value, sizeof value);
                hfd_cause_unsupported(causes, "propagationPolicy", value,
                                      "\"Foreground\", \"Background\", \"Orphan\", \"nil\"");
        }
}

static void check_propagation(const struct hfd_options *options, struct hfd_causes *causes) {
        static const char *const quoted[] = {[HFD_PROPAGATE_UNSET] = "",
                                             [HFD_PROPAGATE_ORPHAN] = "\"Orphan\"",
                                             [HFD_PROPAGATE_BACKGROUND] = "\"Background\"",
                                             [HFD_PROPAGATE_FOREGROUND] = "\"Foreground\""};

        if (options->has_orphan && options->propagation != HFD_PROPAGATE_UNSET)
                hfd_cause_invalid(causes, "propagationPolicy", quoted[options->propagation],
                                  "orphanDependents and deletionPropagation cannot be both set");
}

bool hfd_delete_options_read(struct hfd_options *options, const struct hf__json *sent,
                             struct hfd_response *response) {
        static const struct hfd_resource delete_options = {.group = "meta.k8s.io",
                                                           .kind = "DeleteOptions"};
        struct hfd_causes causes;

        assert(!sent || hf__json_is_object(sent));
        if (!check_types(sent, response))
                return false;
        causes.n =
                0; /* the items stay uninitialized, because touching them costs 15 KiB of stack */
        if (sent) {
                read_propagation(options, sent, &causes);
                read_dry_run(options, hf__json_get(sent, "dryRun"), &causes);
        }
        check_propagation(options, &causes);
        if (causes.n)
                hfd_response_invalid(response, &delete_options, "", &causes);
        return !causes.n;
}
