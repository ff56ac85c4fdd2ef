/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks writes of roles and bindings: whether the user holds the rights that the write grants.
 *
 * Invariants: a check that fails for lack of memory refuses the write. Without a complete index
 * only the fixed rules and the mode AlwaysAllow give rights: with RBAC alone, only system:masters
 * may grant anything.
 */
#include "server/authorization/escalation.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/strbuf_cut.h"
#include "server/rbac/coverage.h"
#include "server/rbac/decision.h"
#include "server/rbac/rule_list.h"
#include "server/resources/resource.h"

/* Bytes of a message that names of roles may take: enough for all 16 roles that
 * hfd_rbac_missing_roles describes, if their names are valid. A binding may also refer to a name
 * that is too long for a role: then the text is cut. */
#define NAMES_MAX 6144

bool hfd_escalation_concerns(const struct hfd_resource *resource) {
        return strcmp(resource->group, HFD_RBAC_API) == 0;
}

static bool is_binding(const struct hfd_resource *resource) {
        return strstr(resource->plural, "bindings") != NULL;
}

/* A copy without the members that the garbage collector and the registry change. NULL: out of
 * memory. */
static struct hf__json *strip_metadata(const struct hf__json *object) {
        static const char *const paths[] = {"metadata.ownerReferences", "metadata.finalizers",
                                            "metadata.managedFields", "metadata.resourceVersion"};
        struct hf__json *copy = hf__json_dup(object);

        for (size_t i = 0; copy && i < sizeof paths / sizeof paths[0]; i++)
                hf__json_remove(copy, paths[i]);
        return copy;
}

/* Whether the update changes only metadata that the garbage collector and the registry change. Such
 * an update grants nothing, so the garbage collector needs no rights of the role. */
static bool is_for_garbage_collection(const struct hfd_escalation *e) {
        if (!e->old)
                return false;
        struct hf__json *object = strip_metadata(e->object), *old = strip_metadata(e->old);
        bool equal = object && old && hf__json_equal(object, old);
        hf__json_free(object);
        hf__json_free(old);
        return equal;
}

static bool is_allowed(const struct hfd_escalation *e, const char *verb, const char *resource,
                       const char *name) {
        const struct hfd_attributes attributes = {.verb = verb,
                                                  .group = HFD_RBAC_API,
                                                  .resource = resource,
                                                  .subresource = "",
                                                  .ns = e->ns,
                                                  .name = name,
                                                  .path = "",
                                                  .is_resource = true};

        return hfd_authorizer_allows(e->authorizer, e->subject, &attributes, NULL);
}

static void put_quoted(struct hf__strbuf *out, const char *text) {
        hf__strbuf_json(out, text, strlen(text));
}

/* The beginning of the message; the missing rights follow. */
static void put_introduction(struct hf__strbuf *why, const struct hfd_subject *subject) {
        hf__strbuf_puts(why, "user ");
        put_quoted(why, subject->name);
        hf__strbuf_puts(why, " (groups=[");
        for (size_t i = 0; i < subject->n_groups; i++) {
                if (i > 0)
                        hf__strbuf_putc(why, ' ');
                put_quoted(why, subject->groups[i]);
        }
        hf__strbuf_puts(why, "]) is attempting to grant RBAC permissions not currently held:\n");
}

/* The end of the message: the roles that bindings of the user name, but that do not exist. They
 * may be why rights are missing. */
static void put_unresolved(struct hf__strbuf *out, const char *unresolved) {
        hf__strbuf_puts(out, "; resolution errors: [");
        hf__strbuf_add_cut(out, unresolved, strlen(unresolved), NAMES_MAX);
        hf__strbuf_putc(out, ']');
}

/* Appends the lines of the missing rights: whole lines, as many as leave room for n_end bytes. A
 * message that is cut says more than an error about its length. */
static void put_missing(struct hf__strbuf *why, const struct hf__strbuf *missing, size_t n_end) {
        static const char cut[] = "\n...";
        size_t n = missing->n, used = why->n + n_end + sizeof cut - 1;

        if (why->max > 0 && n + used > why->max) {
                n = why->max > used ? why->max - used : 0;
                while (n > 0 && missing->data[n] != '\n')
                        n--;
        }
        if (n > 0)
                hf__strbuf_add(why, missing->data, n);
        if (n < missing->n)
                hf__strbuf_puts(why, cut);
}

/* Checks that the user holds all rules. 0, -ENOMEM or HF_E_FORBIDDEN. */
static int check_rules(const struct hfd_escalation *e, const struct hfd_rbac_index *index,
                       const struct hf__json *rules, struct hf__strbuf *why) {
        struct hf__strbuf missing = {0}, end = {0};
        bool covered = false;
        int r = hfd_rbac_covers(index, e->subject, e->ns, rules, &covered, &missing);

        if (r == 0 && !covered) {
                char *unresolved = hfd_rbac_missing_roles(index, e->subject, e->ns);
                if (unresolved)
                        put_unresolved(&end, unresolved);
                free(unresolved);
                put_introduction(why, e->subject);
                put_missing(why, &missing, end.n);
                hf__strbuf_add(why, end.data ? end.data : "", end.n);
                r = end.error == 0 ? HF_E_FORBIDDEN : -ENOMEM;
        }
        hf__strbuf_done(&end);
        hf__strbuf_done(&missing);
        return r;
}

/* An aggregated role may get any rule later, so whoever writes one must hold every right. 0,
 * -ENOMEM or HF_E_FORBIDDEN. */
static int check_aggregation(const struct hfd_escalation *e, const struct hfd_rbac_index *index,
                             struct hf__strbuf *why) {
        static const char everything[] =
                "[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"]},"
                "{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]";
        struct hf__strbuf unused = {0};
        struct hf__json *rules = NULL;

        if (!hf__json_is_object(hf__json_get(e->object, "aggregationRule")) &&
            !hf__json_is_object(hf__json_get(e->old, "aggregationRule")))
                return 0;
        int r = hf__json_parse(everything, sizeof everything - 1, &rules, NULL);
        if (r == 0)
                r = check_rules(e, index, rules, &unused);
        if (r == HF_E_FORBIDDEN)
                hf__strbuf_puts(why,
                                "must have cluster-admin privileges to use the aggregationRule");
        hf__json_free(rules);
        hf__strbuf_done(&unused);
        return r;
}

/* All rules of the new role are checked, also those that the old one had: as in Kubernetes, whoever
 * writes a role must hold it as a whole. */
static int check_role(const struct hfd_escalation *e, const struct hfd_rbac_index *index,
                      struct hf__strbuf *why) {
        int r = check_rules(e, index, hf__json_get(e->object, "rules"), why);

        return r == 0 ? check_aggregation(e, index, why) : r;
}

/* The verb bind is checked for the role itself, so an administrator may let a user bind one role
 * without giving the user its rights. */
static int check_binding(const struct hfd_escalation *e, const struct hfd_rbac_index *index,
                         struct hf__strbuf *why) {
        const char *kind = hf__json_string_or_empty(e->object, "roleRef.kind"),
                   *name = hf__json_string_or_empty(e->object, "roleRef.name");
        const char *plural = strcmp(kind, "Role") == 0 ? "roles" : "clusterroles";
        struct hf__json *rules = NULL;

        if (is_allowed(e, "bind", plural, name))
                return 0;
        int r = hfd_rbac_index_role_rules(index, kind, e->ns, name, &rules);
        if (r == HF_E_NOT_FOUND) {
                hf__strbuf_printf(why, "%s.%s \"", plural, HFD_RBAC_API);
                hf__strbuf_add_cut(why, name, strlen(name), NAMES_MAX);
                hf__strbuf_putc(why, '"');
        }
        if (r == 0)
                r = check_rules(e, index, rules, why);
        hf__json_free(rules);
        return r;
}

int hfd_escalation_check(const struct hfd_escalation *e, struct hf__strbuf *why) {
        struct hfd_rbac_index *index;
        int r;

        assert(e->subject && e->resource && e->object);
        if (hfd_subject_in_group(e->subject, HFD_GROUP_MASTERS) || is_for_garbage_collection(e))
                return 0;
        if (!is_binding(e->resource) && is_allowed(e, "escalate", e->resource->plural, e->name))
                return 0;
        index = hfd_authorizer_index(e->authorizer);
        if (!index) { /* in an empty index nobody holds a right, and no role exists */
                struct hfd_rbac_builder *builder = hfd_rbac_builder_new();
                index = builder ? hfd_rbac_builder_finish(builder) : NULL;
        }
        if (!index)
                return -ENOMEM;
        r = is_binding(e->resource) ? check_binding(e, index, why) : check_role(e, index, why);
        hfd_rbac_index_unref(index);
        /* A refusal whose message is incomplete counts as out of memory. */
        if (r > 0 && why->error != 0)
                r = -ENOMEM;
        return r;
}
