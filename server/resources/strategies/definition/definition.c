/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The defaults of CustomResourceDefinitions, and what a delete of one does. definition_validation.c
 * has the rules.
 *
 * Invariants:
 *
 *  - status.storedVersions always has the version in which objects are stored now, so that no
 *    client drops a version while objects of it may exist.
 *  - A delete adds the finalizer of the controller that first deletes the definition's objects
 *    (server/controllers/definitions).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/strategies/strategies.h"

#define SERVICE_PORT 443
#define FINALIZER    "customresourcecleanup.apiextensions.k8s.io"

/* ---- spec ---- */

static bool has_text(const struct hf__json *object, const char *key) {
        const char *text = hf__json_string(object, key);

        return text && *text;
}

/* By default, the singular is the kind in lower case, and the kind of lists is the kind and "List".
 * 0 or -ENOMEM. */
static int default_names(struct hf__json *names) {
        const char *kind = hf__json_string(names, "kind");
        struct hf__strbuf text = {0};
        int r = 0;

        if (!kind || !*kind)
                return 0;
        if (!has_text(names, "singular")) {
                for (const char *c = kind; *c; c++)
                        hf__strbuf_putc(&text, (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c));
                r = text.error != 0 ? text.error
                                    : hf__json_put_string(names, "singular", text.data);
        }
        hf__strbuf_done(&text);
        if (r == 0 && !has_text(names, "listKind")) {
                hf__strbuf_printf(&text, "%sList", kind);
                r = text.error != 0 ? text.error
                                    : hf__json_put_string(names, "listKind", text.data);
        }
        hf__strbuf_done(&text);
        return r;
}

/* `served` and `storage` are always present, because Go's struct has no omitempty for them. Returns
 * what prepare returns (strategies.h). */
static int default_version(struct hf__json *version) {
        int r = 0;

        if (!hf__json_get(version, "served"))
                r = hf__json_set_bool(version, "served", false);
        if (r == 0 && !hf__json_get(version, "storage"))
                r = hf__json_set_bool(version, "storage", false);
        return r;
}

static int default_spec(struct hf__json *spec) {
        struct hf__json *service = hf__json_path(spec, "conversion.webhook.clientConfig.service");
        int r = 0;

        if (hf__json_is_object(hf__json_get(spec, "names")))
                r = default_names(hf__json_get(spec, "names"));
        if (r == 0 && !hf__json_get(spec, "conversion"))
                r = hf__json_set_string(spec, "conversion.strategy", "None");
        if (r == 0 && service && !hf__json_get(service, "port"))
                r = hf__json_set_i64(service, "port", SERVICE_PORT);
        for (struct hf__json *m = hf__json_first(hf__json_get(spec, "versions")); m && r == 0;
             m = hf__json_next(m))
                r = default_version(m);
        return r;
}

/* ---- status ---- */

/* The name of the version in which objects are stored; NULL = none. */
static const char *storage_version(const struct hf__json *object) {
        for (const struct hf__json *m = hf__json_first(hf__json_path(object, "spec.versions")); m;
             m = hf__json_next(m))
                if (hf__json_bool(m, "storage", false))
                        return hf__json_string(m, "name");
        return NULL;
}

/* Sets the status of a definition that no controller has processed yet. 0 or -ENOMEM. */
static int reset_status(struct hf__json *object) {
        static const char initial[] = "{\"conditions\":null,\"acceptedNames\":{\"plural\":\"\","
                                      "\"kind\":\"\"},\"storedVersions\":[]}";
        struct hf__json *status = NULL;

        if (hf__json_parse(initial, sizeof initial - 1, &status, NULL) != 0)
                return -ENOMEM;
        return hf__json_set(object, "status", status);
}

/* Adds the storage version to status.storedVersions, also if an update makes another version the
 * storage version. Nothing is removed: objects of older versions may exist. Returns what prepare
 * returns. */
static int add_stored_version(struct hf__json *object) {
        const char *name = storage_version(object);

        return name ? hf__json_add_element(object, "status.storedVersions", name) : 0;
}

int hfd_definition_prepare(struct hf__json *object, const struct hf__json *old) {
        int r = hf__json_get(object, "spec") ? 0 : hf__json_set(object, "spec", hf__json_object());

        if (r == 0)
                r = default_spec(hf__json_get(object, "spec"));
        if (r == 0 && !old)
                r = reset_status(object);
        return r == 0 ? add_stored_version(object) : r;
}

/* ---- the delete ---- */

static int add_finalizer(struct hf__json *object) {
        struct hf__json *list = hf__json_path(object, "metadata.finalizers");

        if (hf__json_has_element(list, FINALIZER))
                return 0;
        if (!hf__json_is_array(list)) {
                int r = hf__json_set(object, "metadata.finalizers", hf__json_array());
                if (r != 0)
                        return r;
                list = hf__json_path(object, "metadata.finalizers");
        }
        return hf__json_append_string(list, FINALIZER);
}

/* Sets the condition Terminating. now: RFC 3339. 0; -ENOMEM; or -EINVAL: the status has another
 * form. */
static int set_terminating(struct hf__json *object, const char *now) {
        static const char *const members[][2] =
                {{"status", "True"},
                 {"reason", "InstanceDeletionPending"},
                 {"message",
                  "CustomResourceDefinition marked for deletion; CustomResource deletion "
                  "will begin soon"},
                 {"type", "Terminating"}};
        struct hf__json *condition;
        int r = hf__json_find_or_append(object, "status.conditions", "type", "Terminating",
                                        &condition);

        if (r == 0 && !hf__json_has_text(condition, "status", "True"))
                r = hf__json_set_string(condition, "lastTransitionTime", now);
        for (size_t i = 0; r == 0 && i < sizeof members / sizeof members[0]; i++)
                r = hf__json_set_string(condition, members[i][0], members[i][1]);
        return r;
}

int hfd_definition_mark_deleted(struct hf__json *object, const char *now) {
        int r = hf__json_set_string(object, "metadata.deletionTimestamp", now);

        if (r == 0)
                r = add_finalizer(object);
        if (r == 0)
                r = set_terminating(object, now);
        /* A status of another form, which no client can write, has no room for the condition. */
        return r == -ENOMEM ? r : 0;
}
