/* SPDX-License-Identifier: Apache-2.0 */
/* Sets a condition in an object's status. */
#include <holdfast/condition.h>

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/sized_config.h"
#include "base/strbuf.h"
#include "base/time_format.h"

#define CONDITIONS "status.conditions"

static bool is_status(const char *text) {
        return strcmp(text, "True") == 0 || strcmp(text, "False") == 0 ||
               strcmp(text, "Unknown") == 0;
}

static bool is_text(const struct hf__json *object, const char *key, const char *text) {
        const char *found = hf__json_string(object, key);
        return found && strcmp(found, text) == 0;
}

/* The condition of this type; a new one is appended if there is none. NULL: out of memory. */
static struct hf__json *condition_for(struct hf__json *object, const char *type) {
        struct hf__json *list = hf__json_path(object, CONDITIONS), *m;

        if (!hf__json_is_array(list) && hf__json_set(object, CONDITIONS, hf__json_array()) != 0)
                return NULL;
        list = hf__json_path(object, CONDITIONS);
        for (m = hf__json_first(list); m; m = hf__json_next(m))
                if (is_text(m, "type", type))
                        return m;
        m = hf__json_object();
        return hf__json_append(list, m) == 0 ? m : NULL;
}

static int set(struct hf__json *object, const struct hf_condition *condition, const char *now) {
        struct hf__json *m = condition_for(object, condition->type);

        if (!m)
                return -ENOMEM;
        int r = 0;
        if (!is_text(m, "status", condition->status) || !hf__json_string(m, "lastTransitionTime"))
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

static int set_and_print(struct hf__json *object, const struct hf_condition *condition,
                         const char *now, struct hf__strbuf *text, bool *ret_changed) {
        struct hf__json *before = hf__json_dup(object);
        int r = before ? set(object, condition, now) : -ENOMEM;

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

        if (!host || !object || !given || !ret_object ||
            hf__sized_config_copy(&condition, sizeof condition,
                                  HF__SIZED_CONFIG_MIN(struct hf_condition, reason), given) != 0)
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
