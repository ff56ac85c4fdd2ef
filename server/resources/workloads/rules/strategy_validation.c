/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the update strategies of Deployments, DaemonSets and StatefulSets, and of the
 * numbers and shares of pods in them. A share is what Kubernetes calls an IntOrString: a number of
 * pods (3), or a percentage of all pods ("25%").
 *
 * Invariant: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. kube-apiserver prints a strategy as its internal Go type, whose
 * members begin with capital letters and are all shown, also the absent ones.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"

#define DIGITS "0123456789"

/* ---- shares ---- */

/* Whether the share is a text of digits and "%". */
static bool is_percent(const struct hf__json *share) {
        const char *text = hf__json_is_string(share) ? hf__json_text(share) : "";
        size_t n = strspn(text, DIGITS);

        return n > 0 && strcmp(text + n, "%") == 0;
}

/* "Invalid value" with the share as Kubernetes shows it: a text in quotes, a number without. An
 * absent share counts as 0. */
static void refuse_share(const struct hf__json *share, const char *field, const char *why,
                         struct hfd_causes *causes) {
        int64_t number = 0;
        char shown[24];

        (void)hf__json_integer(share, &number);
        (void)snprintf(shown, sizeof shown, "%" PRId64, number);
        if (hf__json_is_string(share))
                hfd_cause_invalid_text(causes, field, hf__json_text(share), why);
        else
                hfd_cause_invalid(causes, field, shown, why);
}

void hfd_share_validate(const struct hf__json *share, const char *field,
                        struct hfd_causes *causes) {
        int64_t number;

        if (hf__json_is_string(share) && !is_percent(share))
                refuse_share(share, field,
                             "a valid percent string must be a numeric string followed by an "
                             "ending '%' (e.g. '1%',  or '93%', regex used for validation is "
                             "'[0-9]+%')",
                             causes);
        else if (hf__json_integer(share, &number) && number < 0)
                refuse_share(share, field, "must be greater than or equal to 0", causes);
}

void hfd_share_validate_most(const struct hf__json *share, const char *field,
                             struct hfd_causes *causes) {
        if (is_percent(share) && strtol(hf__json_text(share), NULL, 10) > 100)
                refuse_share(share, field, "must not be greater than 100%", causes);
}

/* Whether the share is 0, as Kubernetes reads it in these rules: an absent share is 0, and so is a
 * text that is neither a percentage nor digits. Such a text has got a cause of its own already
 * (hfd_share_validate). */
static bool is_zero(const struct hf__json *share) {
        int64_t number = 0;

        if (!hf__json_is_string(share))
                return !hf__json_integer(share, &number) || number == 0;
        const char *text = hf__json_text(share);
        return (!is_percent(share) && text[strspn(text, DIGITS)] != '\0') ||
               strtol(text, NULL, 10) == 0;
}

/* ---- strategies ---- */

/* How a member of a rolling update is printed. */
struct shown_member {
        const char *internal; /* its name in Kubernetes' internal type */
        const char *name;     /* its name in the object */
        const char *absent;   /* the JSON that is printed if the object does not have it */
};

static void show_rolling_update(struct hf__strbuf *out, const struct hf__json *rolling,
                                const struct shown_member members[2]) {
        for (size_t i = 0; i < 2; i++) {
                const struct hf__json *value = hf__json_get(rolling, members[i].name);
                hf__strbuf_printf(out, "%s\"%s\":", i == 0 ? "{" : ",", members[i].internal);
                if (value)
                        hf__json_print(value, out);
                else
                        hf__strbuf_puts(out, members[i].absent);
        }
        hf__strbuf_putc(out, '}');
}

/* Appends the strategy as JSON of Kubernetes' internal type. An error stays in the buffer. */
static void show_strategy(struct hf__strbuf *out, const struct hf__json *strategy,
                          const struct shown_member members[2]) {
        const char *type = hfd_text_of(strategy, "type");
        const struct hf__json *rolling = hf__json_get(strategy, "rollingUpdate");

        hf__strbuf_puts(out, "{\"Type\":");
        hf__strbuf_json(out, type, strlen(type));
        hf__strbuf_puts(out, ",\"RollingUpdate\":");
        if (rolling)
                show_rolling_update(out, rolling, members);
        else
                hf__strbuf_puts(out, "null");
        hf__strbuf_putc(out, '}');
}

static const struct shown_member surge_members[] = {{"MaxUnavailable", "maxUnavailable", "0"},
                                                    {"MaxSurge", "maxSurge", "0"}};

/* "Unsupported value" for a strategy whose type is not one of `supported`. */
static void refuse_type(const struct hf__json *strategy, const char *field, const char *supported,
                        struct hfd_causes *causes) {
        struct hf__strbuf shown = {0};

        show_strategy(&shown, strategy, surge_members);
        hfd_cause_unsupported(causes, field,
                              hfd_causes_check(causes, shown.error) ? shown.data : "{}", supported);
        hf__strbuf_done(&shown);
}

void hfd_deployment_strategy_validate(const struct hf__json *strategy, struct hfd_causes *causes) {
        static const char most[] = "spec.strategy.rollingUpdate.maxUnavailable";
        const struct hf__json *rolling = hf__json_get(strategy, "rollingUpdate"),
                              *unavailable = hf__json_get(rolling, "maxUnavailable"),
                              *surge = hf__json_get(rolling, "maxSurge");
        const char *type = hfd_text_of(strategy, "type");

        if (strcmp(type, "Recreate") == 0) {
                if (rolling)
                        hfd_cause_forbidden(causes, "spec.strategy.rollingUpdate",
                                            "may not be specified when strategy `type` is "
                                            "'Recreate'");
        } else if (strcmp(type, "RollingUpdate") != 0) {
                refuse_type(strategy, "spec.strategy", "\"Recreate\", \"RollingUpdate\"", causes);
        } else {
                hfd_share_validate(unavailable, most, causes);
                hfd_share_validate(surge, "spec.strategy.rollingUpdate.maxSurge", causes);
                if (is_zero(unavailable) && is_zero(surge))
                        refuse_share(unavailable, most, "may not be 0 when `maxSurge` is 0",
                                     causes);
                hfd_share_validate_most(unavailable, most, causes);
        }
}

void hfd_daemon_set_strategy_validate(const struct hf__json *strategy, struct hfd_causes *causes) {
        static const char unavailable_path[] = "spec.updateStrategy.rollingUpdate.maxUnavailable",
                          surge_path[] = "spec.updateStrategy.rollingUpdate.maxSurge";
        const struct hf__json *rolling = hf__json_get(strategy, "rollingUpdate"),
                              *unavailable = hf__json_get(rolling, "maxUnavailable"),
                              *surge = hf__json_get(rolling, "maxSurge");
        const char *type = hfd_text_of(strategy, "type");

        if (strcmp(type, "OnDelete") == 0)
                return;
        if (strcmp(type, "RollingUpdate") != 0) {
                refuse_type(strategy, "spec.updateStrategy", "\"RollingUpdate\", \"OnDelete\"",
                            causes);
                return;
        }
        hfd_share_validate(unavailable, unavailable_path, causes);
        hfd_share_validate(surge, surge_path, causes);
        hfd_share_validate_most(unavailable, unavailable_path, causes);
        hfd_share_validate_most(surge, surge_path, causes);
        if (!is_zero(unavailable) && !is_zero(surge))
                refuse_share(surge, surge_path, "may not be set when maxUnavailable is non-zero",
                             causes);
        else if (is_zero(unavailable) && is_zero(surge))
                hfd_cause_required(causes, unavailable_path, "cannot be 0 when maxSurge is 0");
}

/* ---- StatefulSets ---- */

static const struct shown_member partition_members[] = {{"Partition", "partition", "0"},
                                                        {"MaxUnavailable", "maxUnavailable",
                                                         "null"}};

/* The rolling update of a StatefulSet, which updates the pods from `partition` on. */
static void validate_partition(const struct hf__json *rolling, struct hfd_causes *causes) {
        static const char most[] = "spec.updateStrategy.rollingUpdate.maxUnavailable";
        const struct hf__json *unavailable = hf__json_get(rolling, "maxUnavailable");

        hfd_require_range(rolling, "spec.updateStrategy.rollingUpdate", "partition", 0, INT32_MAX,
                          "must be greater than or equal to 0", causes);
        if (!unavailable)
                return;
        hfd_share_validate(unavailable, most, causes);
        if (is_zero(unavailable))
                refuse_share(unavailable, most, "cannot be 0", causes);
        hfd_share_validate_most(unavailable, most, causes);
}

void hfd_stateful_set_strategy_validate(const struct hf__json *strategy,
                                        struct hfd_causes *causes) {
        const struct hf__json *rolling = hf__json_get(strategy, "rollingUpdate");
        const char *type = hfd_text_of(strategy, "type"), *field = "spec.updateStrategy",
                   *why = "must be 'RollingUpdate' or 'OnDelete'";
        struct hf__strbuf shown = {0};

        if (strcmp(type, "RollingUpdate") == 0) {
                validate_partition(rolling, causes);
                return;
        }
        if (strcmp(type, "OnDelete") == 0) {
                if (!rolling)
                        return;
                field = "spec.updateStrategy.rollingUpdate";
                why = "only allowed for updateStrategy 'RollingUpdate'";
                show_rolling_update(&shown, rolling, partition_members);
        } else {
                show_strategy(&shown, strategy, partition_members);
        }
        hfd_cause_invalid(causes, field, hfd_causes_check(causes, shown.error) ? shown.data : "{}",
                          why);
        hf__strbuf_done(&shown);
}
