/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions of the controller flow-control. Reasons and texts are those of kube-apiserver,
 * which clients read.
 *
 * Invariants: a function finds nothing to change in an object that it has just changed; otherwise
 * the controller would write for ever. A spec that a user has changed stays, unless the object is
 * mandatory or its annotation asks for updates.
 */
#include "server/controllers/flow/flow_core.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

#define AUTO_UPDATE "apf.kubernetes.io/autoupdate-spec"
#define DANGLING    "Dangling"

/* Reads the texts that Go's ParseBool accepts. False: the text is not one of them. */
static bool read_boolean(const char *text, bool *ret_value) {
        static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"},
                                 *const no[] = {"0", "f", "F", "false", "FALSE", "False"};

        for (size_t i = 0; text && i < sizeof yes / sizeof yes[0]; i++) {
                *ret_value = strcmp(text, yes[i]) == 0;
                if (*ret_value || strcmp(text, no[i]) == 0)
                        return true;
        }
        return false;
}

static const char *annotation_of(const struct hf__json *object) {
        return hf__json_text(
                hf__json_get(hf__json_path(object, "metadata.annotations"), AUTO_UPDATE));
}

/* Whether the server maintains the spec of an object that is not mandatory (hfd_flow_revise). */
static bool should_update(const struct hf__json *object) {
        bool value = false;
        int64_t generation = 0;

        if (read_boolean(annotation_of(object), &value))
                return value;
        /* In generation 1 no user has changed the spec yet. */
        return hf__json_i64(object, "metadata.generation", &generation) && generation == 1;
}

static int annotate_object(struct hf__json *object, const char *value) {
        struct hf__json *annotations = hf__json_path(object, "metadata.annotations");
        int r = 0;

        if (!hf__json_is_object(annotations)) {
                r = hf__json_set(object, "metadata.annotations", hf__json_object());
                annotations = hf__json_path(object, "metadata.annotations");
        }
        return r == 0 ? hf__json_put_string(annotations, AUTO_UPDATE, value) : r;
}

/* Compares the specs, apart from `exempt`, which a user may change. *ret_spec: the wanted spec with
 * the user's `exempt`. */
static int compare_specs(const struct hf__json *object, const struct hf__json *wanted,
                         struct hf__json **ret_spec, bool *ret_equal) {
        struct hf__json *spec = hf__json_dup(hf__json_get(wanted, "spec"));
        const struct hf__json *now = hf__json_get(object, "spec"),
                              *kept = hf__json_get(now, "exempt");
        int r = 0;

        if (!spec)
                return -ENOMEM;
        if (kept && hf__json_get(spec, "exempt"))
                r = hf__json_put(spec, "exempt", hf__json_dup(kept));
        if (r != 0) {
                hf__json_free(spec);
                return r;
        }
        *ret_equal = hf__json_equal(now, spec);
        *ret_spec = spec;
        return 0;
}

int hfd_flow_revise(struct hf__json *object, const struct hf__json *wanted, bool mandatory,
                    bool *ret_changed) {
        bool updates = mandatory || should_update(object), marked = false, equal = true;
        struct hf__json *spec = NULL;
        int r = 0;

        if (read_boolean(annotation_of(object), &marked) && marked == updates) {
                *ret_changed = false;
        } else {
                r = annotate_object(object, updates ? "true" : "false");
                *ret_changed = true;
        }
        if (r != 0 || !updates)
                return r;
        r = compare_specs(object, wanted, &spec, &equal);
        if (r != 0 || equal) {
                hf__json_free(spec);
                return r;
        }
        *ret_changed = true;
        return hf__json_put(object, "spec", spec);
}

bool hfd_flow_is_leftover(const struct hf__json *object) {
        bool value = false;

        return read_boolean(annotation_of(object), &value) && value;
}

/* ---- the condition ---- */

int hfd_flow_set_dangling(struct hf__json *schema, bool level_exists, const char *now,
                          bool *ret_changed) {
        const char *level = hf__json_string(schema, "spec.priorityLevelConfiguration.name"),
                   *status = level_exists ? "False" : "True",
                   *reason = level_exists ? "Found" : "NotFound";
        struct hf__json *condition;
        char message[400];

        (void)snprintf(message, sizeof message,
                       "This FlowSchema references the PriorityLevelConfiguration object named "
                       "\"%.253s\" %s",
                       level ? level : "",
                       level_exists ? "and it exists" : "but there is no such object");
        *ret_changed = false;
        int r = hf__json_find_or_append(schema, "status.conditions", "type", DANGLING, &condition);
        if (r != 0 || (hf__json_has_text(condition, "status", status) &&
                       hf__json_has_text(condition, "reason", reason) &&
                       hf__json_has_text(condition, "message", message)))
                return r;
        *ret_changed = true;
        /* As in kube-apiserver, lastTransitionTime changes with the message too. */
        r = hf__json_put_string(condition, "type", DANGLING);
        if (r == 0)
                r = hf__json_put_string(condition, "status", status);
        if (r == 0)
                r = hf__json_put_string(condition, "lastTransitionTime", now);
        if (r == 0)
                r = hf__json_put_string(condition, "reason", reason);
        return r == 0 ? hf__json_put_string(condition, "message", message) : r;
}
