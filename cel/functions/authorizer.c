/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of `authorizer`: those that return a value with more details of a right (a selector
 * adds none); check(), which asks the host about the right; and those that show the decision.
 *
 * Invariants: a value does not change; adding a detail makes a copy, which shares the texts of the
 * other details. Only check() asks the host, and its cost is high, because an expression could
 * otherwise ask for thousands of decisions within its budget.
 */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/utf8.h"
#include "cel/functions/tables.h"
#include "cel/regex/unicode.h"
#include "cel/values/authorizer.h"
#include "cel/values/run.h"

#define AUTHORIZER     "kubernetes.authorization.Authorizer"
#define PATH_CHECK     "kubernetes.authorization.PathCheck"
#define GROUP_CHECK    "kubernetes.authorization.GroupCheck"
#define RESOURCE_CHECK "kubernetes.authorization.ResourceCheck"
#define DECISION       "kubernetes.authorization.Decision"

#define LABEL_MAX     63  /* bytes of the name of a namespace */
#define SUBDOMAIN_MAX 253 /* bytes of the name of a service account */

const struct hf__cel_type hf__cel_authorizer_type = {.kind = HF__CEL_OPAQUE,
                                                     .weight = 1,
                                                     .name = AUTHORIZER};
const struct hf__cel_type hf__cel_resource_check_type = {.kind = HF__CEL_OPAQUE,
                                                         .weight = 1,
                                                         .name = RESOURCE_CHECK};
static const struct hf__cel_type path_type = {.kind = HF__CEL_OPAQUE,
                                              .weight = 1,
                                              .name = PATH_CHECK};
static const struct hf__cel_type group_type = {.kind = HF__CEL_OPAQUE,
                                               .weight = 1,
                                               .name = GROUP_CHECK};
static const struct hf__cel_type decision_type = {.kind = HF__CEL_OPAQUE,
                                                  .weight = 1,
                                                  .name = DECISION};

/* An authorizer, or a check of a path, a group or a resource. */
struct check {
        struct hf__cel_opaque opaque;
        const struct hf__cel_authorizer *authorizer;
        struct hf__cel_right right;
};

/* A decision, with what allowed(), reason(), errored() and error() show of it. */
struct decided {
        struct hf__cel_opaque opaque;
        struct hf__cel_decision decision;
};

/* The types have no equality in Kubernetes, so a value is equal to itself only. */
static bool is_same(const struct hf__cel_opaque *a, const struct hf__cel_opaque *b) {
        return a == b;
}

static const struct check *check_of(struct hf__cel_value value) {
        assert(value.kind == HF__CEL_OPAQUE && value.as.opaque->type != &decision_type);
        return (const struct check *)(const void *)value.as.opaque;
}

static const struct decided *decided_of(struct hf__cel_value value) {
        assert(value.kind == HF__CEL_OPAQUE && value.as.opaque->type == &decision_type);
        return (const struct decided *)(const void *)value.as.opaque;
}

static void check_init(struct check *check, const struct hf__cel_type *type,
                       const struct hf__cel_authorizer *authorizer,
                       const struct hf__cel_right *right) {
        *check = (struct check){.opaque = {.type = type, .equal = is_same},
                                .authorizer = authorizer,
                                .right = *right};
}

static struct hf__cel_value keep_check(struct hf__arena *arena, const struct check *check) {
        struct check *kept = hf__arena_alloc(arena, sizeof *kept);

        if (!kept)
                return hf__cel_error_text("out of memory");
        *kept = *check;
        return hf__cel_opaque_value(&kept->opaque);
}

struct hf__cel_value hf__cel_authorizer_value(struct hf__arena *arena,
                                              const struct hf__cel_authorizer *authorizer) {
        static const struct hf__cel_right none = {"", NULL, "", "", "", "", "", NULL, NULL};
        struct check check;

        check_init(&check, &hf__cel_authorizer_type, authorizer, &none);
        return keep_check(arena, &check);
}

struct hf__cel_value hf__cel_resource_check_value(struct hf__arena *arena,
                                                  const struct hf__cel_authorizer *authorizer,
                                                  const struct hf__cel_right *right) {
        struct check check;

        check_init(&check, &hf__cel_resource_check_type, authorizer, right);
        return keep_check(arena, &check);
}

/* A copy of the check as a value of this type. *ret_text is a copy of the argument's text, which
 * the caller stores in the member that it is for. NULL: the run has failed. */
static struct check *extend_check(struct hf__cel_run *run, struct hf__cel_value value,
                                  const struct hf__cel_type *type, struct hf__cel_value argument,
                                  const char **ret_text) {
        struct check *check = hf__cel_alloc(run, sizeof *check);
        struct hf__cel_value text = hf__cel_copy_string(run, argument.as.text, argument.n);

        if (!check || hf__cel_is_error(text))
                return NULL;
        /* A copy, because the expression may go on from the same value twice:
         * authorizer.group('apps') can be the beginning of several checks. */
        *check = *check_of(value);
        check->opaque.type = type;
        *ret_text = text.as.text;
        return check;
}

static struct hf__cel_value check_value(struct hf__cel_run *run, const struct check *check) {
        return check ? hf__cel_opaque_value(&check->opaque) : hf__cel_failure(run);
}

/* Kubernetes trims the text before it asks whether it is empty. */
static bool is_blank(struct hf__cel_value text) {
        for (size_t i = 0, length; i < text.n; i += length) {
                uint32_t c = 0;

                length = hf__utf8_decode(text.as.text + i, text.n - i, &c);
                if (length == 0 || !hf__cel_unicode_is_space(c))
                        return false;
        }
        return true;
}

static struct hf__cel_value call_path(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        const char *text = NULL;
        struct check *check;

        if (is_blank(args[1]))
                return hf__cel_error_text("path must not be empty");
        check = extend_check(run, args[0], &path_type, args[1], &text);
        if (check)
                check->right.path = text;
        return check_value(run, check);
}

/* The text may be empty: that is the core group. */
static struct hf__cel_value call_group(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        const char *text = NULL;
        struct check *check = extend_check(run, args[0], &group_type, args[1], &text);

        if (check)
                check->right.group = text;
        return check_value(run, check);
}

/* Whether the text is a label of lower case letters, digits and inner dashes; or, if dots are
 * allowed, several such labels divided by dots. */
static bool is_dns_name(struct hf__cel_value text, size_t max, bool dots) {
        bool inner = false; /* the last character is a letter or digit, so it may end a label */

        if (text.n == 0 || text.n > max)
                return false;
        for (size_t i = 0; i < text.n; i++) {
                char c = text.as.text[i];

                if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
                        inner = true;
                else if (c == '-' && i > 0 && text.as.text[i - 1] != '.')
                        inner = false;
                else if (c == '.' && dots && inner)
                        inner = false;
                else
                        return false;
        }
        return inner;
}

static struct hf__cel_value service_account(struct hf__cel_run *run,
                                            const struct hf__cel_value *args, unsigned n) {
        const char *text = NULL;
        struct hf__cel_value name;
        struct check *check;

        /* Namespace and name become part of a user name, "system:serviceaccount:NAMESPACE:NAME". A
         * colon in one of them could name another account. */
        if (!is_dns_name(args[2], SUBDOMAIN_MAX, true))
                return hf__cel_error_text("Invalid service account name");
        if (!is_dns_name(args[1], LABEL_MAX, false))
                return hf__cel_error_text("Invalid service account namespace");
        check = extend_check(run, args[0], &hf__cel_authorizer_type, args[1], &text);
        name = hf__cel_copy_string(run, args[2].as.text, args[2].n);
        if (!check || hf__cel_is_error(name))
                return hf__cel_failure(run);
        check->right.account_ns = text;
        check->right.account_name = name.as.text;
        return check_value(run, check);
}

static struct hf__cel_value call_resource(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        const char *text = NULL;
        struct check *check;

        if (is_blank(args[1]))
                return hf__cel_error_text("resource must not be empty");
        check = extend_check(run, args[0], &hf__cel_resource_check_type, args[1], &text);
        if (check)
                check->right.resource = text;
        return check_value(run, check);
}

static struct hf__cel_value call_subresource(struct hf__cel_run *run,
                                             const struct hf__cel_value *args, unsigned n) {
        const char *text = NULL;
        struct check *check =
                extend_check(run, args[0], &hf__cel_resource_check_type, args[1], &text);

        if (check)
                check->right.subresource = text;
        return check_value(run, check);
}

/* Without a namespace the check is about the cluster scope. */
static struct hf__cel_value call_ns(struct hf__cel_run *run, const struct hf__cel_value *args,
                                    unsigned n) {
        const char *text = NULL;
        struct check *check =
                extend_check(run, args[0], &hf__cel_resource_check_type, args[1], &text);

        if (check)
                check->right.ns = text;
        return check_value(run, check);
}

static struct hf__cel_value call_name(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        const char *text = NULL;
        struct check *check =
                extend_check(run, args[0], &hf__cel_resource_check_type, args[1], &text);

        if (check)
                check->right.name = text;
        return check_value(run, check);
}

/* A selector narrows the set of objects that the check is about. The server's authorizers ignore
 * selectors, as Kubernetes' RBAC does. The call is charged all the same, so that an expression
 * costs what it costs in Kubernetes. */
static struct hf__cel_value call_selector(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        return args[0];
}

static struct hf__cel_value call_check(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        struct hf__cel_value verb = hf__cel_copy_string(run, args[1].as.text, args[1].n);
        struct decided *decided = hf__cel_alloc(run, sizeof *decided);
        const struct check *asked = check_of(args[0]);
        struct hf__cel_right right = asked->right;

        if (hf__cel_is_error(verb) || !decided)
                return hf__cel_failure(run);
        /* The host is asked only now, because each detail before may still change the right. */
        right.verb = verb.as.text;
        decided->opaque = (struct hf__cel_opaque){.type = &decision_type, .equal = is_same};
        assert(asked->authorizer);
        decided->decision = asked->authorizer->decide(run, asked->authorizer->data, &right);
        return hf__cel_opaque_value(&decided->opaque);
}

static struct hf__cel_value call_allowed(struct hf__cel_run *run, const struct hf__cel_value *args,
                                         unsigned n) {
        return hf__cel_bool(decided_of(args[0])->decision.allowed);
}

static struct hf__cel_value call_reason(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        const char *text = decided_of(args[0])->decision.reason;

        return hf__cel_string(text, strlen(text));
}

/* A decision with an error is one that the authorizer could not make; then it does not allow. */
static struct hf__cel_value call_errored(struct hf__cel_run *run, const struct hf__cel_value *args,
                                         unsigned n) {
        return hf__cel_bool(decided_of(args[0])->decision.error != NULL);
}

static struct hf__cel_value call_error(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        const char *text = decided_of(args[0])->decision.error;

        return hf__cel_string(text ? text : "", text ? strlen(text) : 0);
}

#define ONE HF__CEL_COST_ONE

const struct hf__cel_row hf__cel_authorizers[] = {
        {"path", "." AUTHORIZER "(string) -> " PATH_CHECK, call_path, ONE},
        {"group", "." AUTHORIZER "(string) -> " GROUP_CHECK, call_group, ONE},
        {"serviceAccount", "." AUTHORIZER "(string, string) -> " AUTHORIZER, service_account, ONE},
        {"resource", "." GROUP_CHECK "(string) -> " RESOURCE_CHECK, call_resource, ONE},
        {"subresource", "." RESOURCE_CHECK "(string) -> " RESOURCE_CHECK, call_subresource, ONE},
        {"namespace", "." RESOURCE_CHECK "(string) -> " RESOURCE_CHECK, call_ns, ONE},
        {"name", "." RESOURCE_CHECK "(string) -> " RESOURCE_CHECK, call_name, ONE},
        {"fieldSelector", "." RESOURCE_CHECK "(string) -> " RESOURCE_CHECK, call_selector,
         HF__CEL_COST_SELECTOR},
        {"labelSelector", "." RESOURCE_CHECK "(string) -> " RESOURCE_CHECK, call_selector,
         HF__CEL_COST_SELECTOR},
        {"check", "." PATH_CHECK "(string) -> " DECISION, call_check, HF__CEL_COST_AUTHORIZATION},
        {"check", "." RESOURCE_CHECK "(string) -> " DECISION, call_check,
         HF__CEL_COST_AUTHORIZATION},
        {"allowed", "." DECISION "() -> bool", call_allowed, ONE},
        {"reason", "." DECISION "() -> string", call_reason, ONE},
        {"errored", "." DECISION "() -> bool", call_errored, ONE},
        {"error", "." DECISION "() -> string", call_error, ONE},
        {NULL, NULL, NULL, ONE},
};
