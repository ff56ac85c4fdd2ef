/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conditions of a CustomResourceDefinition.
 *
 * Invariants. Reasons and messages are those of kube-apiserver, which clients read. A name that was
 * accepted stays accepted until the definition asks for another one that is free. A definition that
 * is Established stays so, with the names that it has, even if a later change of its names is
 * refused: its stored objects must stay reachable.
 */
#include "server/controllers/kinds/definition_core.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/controllers/base/string_list.h"
#include "server/controllers/kinds/api_approval.h"

/* ---- conditions ---- */

struct condition {
        const char *status, *reason, *message;
};

static const struct hf__json *find_condition(const struct hf__json *definition, const char *type) {
        return hf__json_element_with(hf__json_path(definition, "status.conditions"), "type", type);
}

bool hfd_definition_is(const struct hf__json *definition, const char *condition) {
        return hf__json_has_text(find_condition(definition, condition), "status", "True");
}

static bool has_condition(const struct hf__json *condition, const struct condition *wanted) {
        return hf__json_has_text(condition, "status", wanted->status) &&
               hf__json_has_text(condition, "reason", wanted->reason) &&
               hf__json_has_text(condition, "message", wanted->message);
}

/* Sets *changed if the condition was different; otherwise *changed keeps its value. */
static int set_condition(struct hf__json *definition, const char *type,
                         const struct condition *wanted, const char *now, bool *changed) {
        struct hf__json *condition;

        if (has_condition(find_condition(definition, type), wanted))
                return 0;
        *changed = true;
        int r = hf__json_find_or_append(definition, "status.conditions", "type", type, &condition);
        if (r != 0)
                return r;
        /* lastTransitionTime changes only when the status does. */
        bool new_status = !hf__json_has_text(condition, "status", wanted->status) ||
                          !hf__json_string(condition, "lastTransitionTime");
        r = hf__json_put_string(condition, "type", type);
        if (r == 0)
                r = hf__json_put_string(condition, "status", wanted->status);
        if (r == 0 && new_status)
                r = hf__json_put_string(condition, "lastTransitionTime", now);
        if (r == 0)
                r = hf__json_put_string(condition, "reason", wanted->reason);
        return r == 0 ? hf__json_put_string(condition, "message", wanted->message) : r;
}

static void remove_condition(struct hf__json *definition, const char *type, bool *changed) {
        struct hf__json *list = hf__json_path(definition, "status.conditions"),
                        *next = hf__json_first(list);

        while (next) {
                struct hf__json *m = next;
                next = hf__json_next(m);
                if (!hf__json_has_text(m, "type", type))
                        continue;
                hf__json_free(hf__json_detach(list, m));
                *changed = true;
        }
}

/* ---- names ---- */

/* The state of one decision about names. */
struct naming {
        const struct hfd_definition_uses *uses;
        const char *group;
        const struct hf__json *wanted, *accepted; /* spec.names and status.acceptedNames */
        struct hf__json *names;                   /* owned; accepted from now on */
        const char *reason;                       /* of the last conflict; NULL = none */
        struct hf__strbuf message;                /* of that conflict; the owner frees it */
};

static const char *get_name(const struct hf__json *names, const char *key) {
        const char *name = hf__json_text(hf__json_get(names, key));

        return name ? name : "";
}

/* Whether the lists have the same elements in the same order. A missing list equals an empty one.
 */
static bool has_same_list(const struct hf__json *a, const struct hf__json *b, const char *key) {
        const struct hf__json *m = hf__json_first(hf__json_get(a, key)),
                              *n = hf__json_first(hf__json_get(b, key));

        while (m && n && hf__json_equal(m, n)) {
                m = hf__json_next(m);
                n = hf__json_next(n);
        }
        return !m && !n;
}

static bool has_same_names(const struct hf__json *a, const struct hf__json *b) {
        static const char *const keys[] = {"plural", "singular", "kind", "listKind"};

        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
                if (strcmp(get_name(a, keys[i]), get_name(b, keys[i])) != 0)
                        return false;
        return has_same_list(a, b, "shortNames") && has_same_list(a, b, "categories");
}

static void say_in_use(struct hf__strbuf *out, const char *name) {
        hf__strbuf_json(out, name, strlen(name));
        hf__strbuf_puts(out, " is already in use");
}

/* A later conflict replaces an earlier one, as in Kubernetes. */
static void begin_conflict(struct naming *naming, const char *reason) {
        hf__strbuf_reset(&naming->message);
        naming->reason = reason;
}

/* Accepts the wanted name of that key, or keeps the accepted one if the wanted one is in use. */
static int accept_name(struct naming *naming, const char *key, bool is_kind, const char *reason) {
        const struct hfd_definition_uses *uses = naming->uses;
        const char *wanted = get_name(naming->wanted, key),
                   *accepted = get_name(naming->accepted, key);
        bool in_use = strcmp(wanted, accepted) != 0 &&
                      (is_kind ? uses->kind : uses->resource)(uses->ctx, naming->group, wanted);

        if (in_use) {
                begin_conflict(naming, reason);
                say_in_use(&naming->message, wanted);
        }
        /* Write plural and kind even if they are empty, because Kubernetes' clients expect them. */
        const char *name = in_use ? accepted : wanted;
        if (!*name && strcmp(key, "plural") != 0 && strcmp(key, "kind") != 0)
                return 0;
        return hf__json_put_string(naming->names, key, name);
}

/* Appends one message for each wanted short name that is in use, separated by commas. A short name
 * that this definition was given before causes no message, and a repeated one causes one message.
 * Returns the number of messages. */
static size_t say_short_conflicts(struct naming *naming, struct hf__strbuf *out) {
        const struct hf__json *wanted = hf__json_get(naming->wanted, "shortNames"),
                              *accepted = hf__json_get(naming->accepted, "shortNames");
        const struct hfd_definition_uses *uses = naming->uses;
        struct hf__json_index all, kept;
        size_t n = 0, i = 0;

        int r = hf__json_index_init(&all, wanted, NULL),
            r_kept = hf__json_index_init(&kept, accepted, NULL);
        if (r != 0 || r_kept != 0)
                out->error = -ENOMEM;
        for (const struct hf__json *m = hf__json_first(wanted); m && out->error == 0;
             m = hf__json_next(m), i++) {
                const char *name = hf__json_text(m);
                if (!name || hf__json_index_find(&all, name)->position < i ||
                    hf__json_index_find(&kept, name) ||
                    !uses->resource(uses->ctx, naming->group, name))
                        continue;
                if (n++ > 0)
                        hf__strbuf_puts(out, ", ");
                say_in_use(out, name);
        }
        hf__json_index_done(&all);
        hf__json_index_done(&kept);
        return n;
}

static int copy_list(struct naming *naming, const struct hf__json *from, const char *key) {
        const struct hf__json *list = hf__json_get(from, key);

        if (!hf__json_first(list))
                return 0;
        return hf__json_put(naming->names, key, hf__json_dup(list));
}

/* The short names are accepted together or not at all. */
static int accept_short_names(struct naming *naming) {
        struct hf__strbuf conflicts = {0};
        size_t n = has_same_list(naming->wanted, naming->accepted, "shortNames")
                           ? 0
                           : say_short_conflicts(naming, &conflicts);

        if (n > 0) {
                begin_conflict(naming, "ShortNamesConflict");
                hf__strbuf_puts(&naming->message, n > 1 ? "[" : "");
                hf__strbuf_add(&naming->message, conflicts.data, conflicts.n);
                hf__strbuf_puts(&naming->message, n > 1 ? "]" : "");
        }
        int r = conflicts.error != 0 ? -ENOMEM : 0;
        hf__strbuf_done(&conflicts);
        if (r != 0)
                return r;
        return copy_list(naming, n > 0 ? naming->accepted : naming->wanted, "shortNames");
}

static int accept_names(struct naming *naming) {
        int r = naming->names ? 0 : -ENOMEM;

        if (r == 0)
                r = accept_name(naming, "plural", false, "PluralConflict");
        if (r == 0)
                r = accept_name(naming, "singular", false, "SingularConflict");
        if (r == 0)
                r = accept_short_names(naming);
        if (r == 0)
                r = accept_name(naming, "kind", true, "KindConflict");
        if (r == 0)
                r = accept_name(naming, "listKind", true, "ListKindConflict");
        if (r == 0)
                r = copy_list(naming, naming->wanted, "categories");
        return r == 0 && naming->message.error != 0 ? -ENOMEM : r;
}

/* Sets status.acceptedNames and the condition NamesAccepted. */
static int set_names(struct hf__json *definition, const struct hfd_definition_uses *uses,
                     const char *now, bool *changed) {
        const char *group = hf__json_string(definition, "spec.group");
        struct naming naming = {.uses = uses,
                                .group = group ? group : "",
                                .wanted = hf__json_path(definition, "spec.names"),
                                .accepted = hf__json_path(definition, "status.acceptedNames"),
                                .names = hf__json_object()};
        struct condition condition = {"True", "NoConflicts", "no conflicts found"};
        int r = accept_names(&naming);

        if (r == 0 && naming.reason)
                condition = (struct condition){"False", naming.reason,
                                               naming.message.data ? naming.message.data : ""};
        if (r == 0 && !has_same_names(naming.names, naming.accepted)) {
                *changed = true;
                r = hf__json_set(definition, "status.acceptedNames", naming.names);
                naming.names = NULL;
        }
        if (r == 0)
                r = set_condition(definition, "NamesAccepted", &condition, now, changed);
        hf__json_free(naming.names);
        hf__strbuf_done(&naming.message);
        return r;
}

/* ---- the other conditions ---- */

/*
 * Sets the condition Established. Kubernetes sets it some time after NamesAccepted, so that all
 * instances know the names by then. Here each instance begins to serve the objects when it has seen
 * Established, so both conditions are written together.
 */
static int set_established(struct hf__json *definition, const char *now, bool *changed) {
        static const struct condition established = {"True", "InitialNamesAccepted",
                                                     "the initial names have been accepted"},
                                      refused = {"False", "NotAccepted",
                                                 "not all names are accepted"};

        if (hfd_definition_is(definition, "Established"))
                return 0;
        if (!hfd_definition_is(definition, "NamesAccepted"))
                return find_condition(definition, "Established")
                               ? 0
                               : set_condition(definition, "Established", &refused, now, changed);
        /* A definition that is being deleted must not begin to serve objects: nothing would delete
         * them. */
        if (hf__json_string(definition, "metadata.deletionTimestamp"))
                return 0;
        return set_condition(definition, "Established", &established, now, changed);
}

static int set_approval(struct hf__json *definition, const char *now, bool *changed) {
        struct hfd_api_approval approval = {0};
        const struct hf__json *annotations = hf__json_path(definition, "metadata.annotations");
        int r = hfd_api_approval(hf__json_string(definition, "spec.group"),
                                 hf__json_text(hf__json_get(annotations, HFD_API_APPROVED)),
                                 &approval);

        if (r == 0 && approval.status) {
                const struct condition condition = {approval.status, approval.reason,
                                                    approval.message.data};
                r = set_condition(definition, "KubernetesAPIApprovalPolicyConformant", &condition,
                                  now, changed);
        }
        hf__strbuf_done(&approval.message);
        return r;
}

/* The server refuses definitions of v1 that break the structural rules. Only a definition that an
 * older API version has stored can break them. */
static int set_structure(struct hf__json *definition, const char *now, bool *changed) {
        static const struct condition violations =
                {"True", "Violations",
                 "spec.preserveUnknownFields: Invalid value: true: must be false"};

        if (hf__json_bool(definition, "spec.preserveUnknownFields", false))
                return set_condition(definition, "NonStructuralSchema", &violations, now, changed);
        remove_condition(definition, "NonStructuralSchema", changed);
        return 0;
}

int hfd_definition_set_conditions(struct hf__json *definition,
                                  const struct hfd_definition_uses *uses, const char *now,
                                  bool *ret_changed) {
        int r = 0;

        *ret_changed = false;
        if (!has_same_names(hf__json_path(definition, "spec.names"),
                            hf__json_path(definition, "status.acceptedNames")) ||
            !find_condition(definition, "NamesAccepted"))
                r = set_names(definition, uses, now, ret_changed);
        if (r == 0)
                r = set_established(definition, now, ret_changed);
        if (r == 0)
                r = set_approval(definition, now, ret_changed);
        return r == 0 ? set_structure(definition, now, ret_changed) : r;
}

/* ---- deletion ---- */

bool hfd_definition_is_due(const struct hf__json *definition) {
        return hf__json_string(definition, "metadata.deletionTimestamp") &&
               hfd_string_list_has(definition, "metadata.finalizers", HFD_DEFINITION_FINALIZER);
}

int hfd_definition_set_terminating(struct hf__json *definition, enum hfd_definition_ending ending,
                                   const char *why, const char *now, bool *ret_changed) {
        static const struct condition conditions[] = {
                [HFD_DEFINITION_DELETES] = {"True", "InstanceDeletionInProgress",
                                            "CustomResource deletion is in progress"},
                [HFD_DEFINITION_DELETE_FAILED] = {"True", "InstanceDeletionFailed",
                                                  "could not issue all deletes: "},
                [HFD_DEFINITION_LIST_FAILED] = {"True", "InstanceDeletionFailed",
                                                "could not list instances: "},
                [HFD_DEFINITION_WAITS] = {"True", "InstanceDeletionCheck",
                                          "could not confirm zero CustomResources remaining: "},
                [HFD_DEFINITION_DELETED] = {"False", "InstanceDeletionCompleted",
                                            "removed all instances"},
                [HFD_DEFINITION_NEVER_ESTABLISHED] = {"False", "NeverEstablished",
                                                      "resource was never established"},
                [HFD_DEFINITION_OVERLAPS] =
                        {"False", "OverlappingBuiltInResource",
                         "instances overlap with built-in resources in storage"},
        };
        struct condition condition = conditions[ending];
        char message[600]; /* the longest text above, and 500 bytes of why */

        (void)snprintf(message, sizeof message, "%s%.500s", condition.message, why ? why : "");
        condition.message = message;
        *ret_changed = false;
        return set_condition(definition, "Terminating", &condition, now, ret_changed);
}
