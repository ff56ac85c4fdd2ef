/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One rule of a schema: its expressions and its texts. Immutable once made. Thread: any. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "cel/values/declarations.h"

struct hf__arena;
struct hf__cel_program;
struct hf__json;
struct hfd_declared;
struct hfd_structure;

/* The most levels of an expression. They bound the stack that a compilation needs: see
 * custom_rules.h. */
#define HFD_RULE_DEPTH 60

/* The variables of the rules of one part of a schema: self and oldSelf. Never copied or moved: the
 * declarations point to the arrays. */
struct hfd_rule_scope {
        struct hf__cel_variable variables[2];
        struct hf__cel_variable optional[2]; /* the same, oldSelf being an optional */
        struct hf__cel_declarations declarations;
        struct hf__cel_declarations optional_declarations;
};

enum hfd_rule_reason {
        HFD_RULE_INVALID,
        HFD_RULE_FORBIDDEN,
        HFD_RULE_REQUIRED,
        HFD_RULE_DUPLICATE,
};

struct hfd_rule {
        struct hfd_rule *next; /* of all rules, for hfd_rule_done */
        /* NULL: it does not compile, `error` says why; or it is blank, then `error` is NULL. */
        struct hf__cel_program *program;
        const char *error;
        struct hf__cel_program *message_program; /* may be NULL */
        const char *message_expression;
        const char *shown;      /* in errors of the rule: its message, or the rule */
        const char *detail;     /* in the cause when an object breaks the rule */
        const char *field_path; /* below the part of the rule: "spec.a"; NULL = the part itself */
        enum hfd_rule_reason reason;
        bool uses_old;
        bool message_uses_old;
        bool optional_old; /* oldSelf is an optional */
};

/* The results of the compilation. Zero at first; the caller frees both texts. */
struct hfd_rule_findings {
        struct hf__strbuf error;
        struct hf__strbuf message_error;
        uint64_t cost; /* estimated, of one evaluation */
        uint64_t message_cost;
        uint64_t work; /* of compiling both expressions */
};

/* The scope of a part. 0 or -ENOMEM. */
int hfd_rule_scope_init(struct hfd_rule_scope *scope, struct hf__arena *arena,
                        const struct hf__cel_library *library, const struct hfd_declared *declared);
/* Compiles a rule. props: the schema of its part; members: finds its properties. The texts of the
 * rule are copied to the arena. The scope must live as long as the rule. 0 or -ENOMEM; in both
 * cases the caller ends with hfd_rule_done. */
int hfd_rule_init(struct hfd_rule *rule, struct hf__arena *arena,
                  const struct hfd_rule_scope *scope, struct hfd_structure *members,
                  const struct hf__json *props, const struct hf__json *json,
                  struct hfd_rule_findings *findings);
void hfd_rule_done(struct hfd_rule *rule);
