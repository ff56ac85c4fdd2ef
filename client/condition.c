/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets a condition in an object's status, as metav1.Condition and apimachinery's
 * meta.SetStatusCondition define it.
 *
 * Invariants: a lastTransitionTime that is there changes only with the condition's status. All
 * other members and conditions of the object stay, also those of later versions of Kubernetes.
 */
#include <holdfast/condition.h>

#include <errno.h>
#include <string.h>

#include "base/host.h"
#include "base/json.h"
#include "base/sized_struct.h"
#include "base/strbuf.h"
#include "base/time_format.h"

#define CONDITIONS "status.conditions"

static const struct hf__sized sized_condition = HF__SIZED(struct hf_condition, reason);

static bool is_status(const char *text) {
        return strcmp(text, "True") == 0 || strcmp(text, "False") == 0 ||
               strcmp(text, "Unknown") == 0;
}

/* The list is a map by type in Kubernetes' schemas, so a condition with the type is changed in its
 * place. lastTransitionTime depends on the old status, so it is set before the status. */
static int set_fields(struct hf__json *object, const struct hf_condition *condition,
                      const char *now) {
        struct hf__json *m;

        int r = hf__json_find_or_append(object, CONDITIONS, "type", condition->type, &m);
        if (r != 0)
                return r == -EINVAL ? HF_E_INVALID : r;
        if (!hf__json_has_text(m, "status", condition->status) ||
            !hf__json_string(m, "lastTransitionTime"))
                r = hf__json_put_string(m, "lastTransitionTime", now);
        if (r == 0)
                r = hf__json_put_string(m, "type", condition->type);
        if (r == 0)
                r = hf__json_put_string(m, "status", condition->status);
        if (r == 0)
                r = hf__json_put_string(m, "reason", condition->reason);
        if (r == 0)
                r = hf__json_put_string(m, "message", condition->message ? condition->message : "");
        if (r == 0 && condition->observed_generation != 0)
                r = hf__json_set_i64(m, "observedGeneration", condition->observed_generation);
        return r;
}

/* Compares the parsed object with a copy from before, not with the caller's text: white space and
 * the like are no change. */
static int set_and_print(struct hf__json *object, const struct hf_condition *condition,
                         const char *now, struct hf__strbuf *text, bool *ret_changed) {
        struct hf__json *before = hf__json_dup(object);
        int r = before ? set_fields(object, condition, now) : -ENOMEM;

        if (r == 0) {
                hf__json_print(object, text);
                *ret_changed = !hf__json_equal(before, object);
                r = text->error;
        }
        hf__json_free(before);
        return r;
}

int hf_condition_set(const struct hf_host *host, const char *object, size_t n,
                     const struct hf_condition *given, char **ret_object, bool *ret_changed) {
        struct hf_condition condition;
        struct hf__strbuf text = {0};
        struct hf__json *json;
        char now[HF__MICROTIME_MAX];
        bool changed = false;

        if (!object || !ret_object || hf__host_check(host, NULL) != 0 ||
            hf__sized_copy(&sized_condition, &condition, given, NULL) != 0)
                return -EINVAL;
        if (!condition.type || !condition.status || !is_status(condition.status) ||
            !condition.reason)
                return -EINVAL;
        int r = hf__json_parse(object, n, &json, NULL);
        if (r != 0)
                return r < 0 ? r : HF_E_INVALID;
        const struct hf_clock *clock = hf_host_clock(host);
        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, now);
        r = hf__json_is_object(json) ? set_and_print(json, &condition, now, &text, &changed)
                                     : HF_E_INVALID;
        hf__json_free(json);
        if (r != 0) {
                hf__strbuf_done(&text);
                return r;
        }
        *ret_object = text.data;
        if (ret_changed)
                *ret_changed = changed;
        return 0;
}
