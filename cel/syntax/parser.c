/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the tokens of an expression by recursive descent, and its operators by precedence.
 *
 * Invariants: at most max_depth calls of parse_expr are nested, each with up to twelve frames
 * on the stack. The tree is not deeper either, so that later passes may recurse. After the first
 * issue of the grammar the parser only unwinds: `failed` is set, and every function returns NULL.
 */
#include "cel/syntax/parser.h"

#include <assert.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/utf8.h"
#include "cel/syntax/expression_names.h"
#include "cel/syntax/lexer.h"
#include "cel/syntax/literal.h"
#include "cel/syntax/macro.h"
#include "cel/values/issues.h"

/* Messages list the tokens that could follow, in the order and words of the parser that cel-go
 * generates with ANTLR. People compare them with those of kube-apiserver, and tests of policies
 * contain them. */
#define OPERAND                                                                                    \
        "'.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, "    \
        "IDENTIFIER}"
#define EXPECTED_OPERAND "{'[', '{', '(', " OPERAND

struct parser {
        struct hf__arena *arena;
        struct hf__cel_issues *issues;
        const char *text;
        const struct hf__cel_token *token; /* the next one */
        unsigned depth;
        unsigned max_depth; /* at most HF__CEL_DEPTH_MAX */
        bool failed;
};

/* Children of a node while their number is not known. */
struct nodes {
        struct hf__cel_node **items;
        uint32_t n;
        uint32_t space;
};

static struct hf__cel_node *parse_expr(struct parser *p);
static struct hf__cel_node *parse_unary(struct parser *p);

static bool is_sign(const struct parser *p, const char *sign) {
        const struct hf__cel_token *t = p->token;

        return (t->kind == HF__CEL_TOKEN_SIGN || t->kind == HF__CEL_TOKEN_WORD) &&
               strlen(sign) == t->n && memcmp(p->text + t->at, sign, t->n) == 0;
}

/* Signs are compared with whole tokens, so '<' never takes the beginning of '<='. */
static bool accept_sign(struct parser *p, const char *sign) {
        if (!is_sign(p, sign))
                return false;
        p->token++;
        return true;
}

/* Reports that the next token does not fit. Returns NULL, which is false in a function that returns
 * a bool. Shows at most 200 bytes of the token; 5 is the length of "<EOF>". */
static void *refuse_token(struct parser *p, const char *what, const char *expected) {
        const struct hf__cel_token *t = p->token;
        int n = t->n > 200 ? 200 : (int)t->n;

        if (!p->failed)
                hf__cel_issues_add(p->issues, t->at, "Syntax error: %s input '%.*s' expecting %s",
                                   what, n > 0 ? n : 5, n > 0 ? p->text + t->at : "<EOF>",
                                   expected);
        p->failed = true;
        return NULL;
}

static void *too_deep(struct parser *p) {
        if (!p->failed)
                hf__cel_issues_add(p->issues, HF__CEL_NO_PLACE,
                                   "expression recursion limit exceeded: %u", p->max_depth);
        p->failed = true;
        return NULL;
}

static void *out_of_memory(struct parser *p) {
        p->failed = true;
        return NULL;
}

/* Consumes a sign that must come next: a closing bracket or a colon. False: the parser has failed.
 */
static bool expect_sign(struct parser *p, const char *sign, const char *expected) {
        struct hf__cel_token next = p->token->n > 0 ? p->token[1] : p->token[0];

        if (p->failed)
                return false;
        if (accept_sign(p, sign))
                return true;
        /* As ANTLR decides: if the expected sign follows the next token, that token is
         * superfluous. */
        if (next.n == strlen(sign) && memcmp(p->text + next.at, sign, next.n) == 0) {
                refuse_token(p, "extraneous", expected);
        } else if (p->token->n == 0 && strcmp(sign, ")") == 0) {
                hf__cel_issues_add(p->issues, p->token->at, "Syntax error: missing ')' at '<EOF>'");
                p->failed = true;
        } else {
                refuse_token(p, "mismatched", expected);
        }
        return false;
}

static struct hf__cel_node *new_node(struct parser *p, enum hf__cel_node_kind kind, uint32_t at) {
        struct hf__cel_node *node = hf__arena_alloc(p->arena, sizeof *node);

        if (!node)
                return out_of_memory(p);
        memset(node, 0, sizeof *node);
        node->kind = (uint8_t)kind;
        node->at = at;
        /* Depths count from the leaves, because a chain such as a.b.c grows at its root. */
        node->depth = 1;
        return node;
}

/* Makes the node deeper than this child. */
static void adopt_child(struct parser *p, struct hf__cel_node *node,
                        const struct hf__cel_node *child) {
        if (child && child->depth >= node->depth)
                node->depth = (uint16_t)(child->depth + 1);
        /* A chain such as a.b.c makes a deep tree without nested calls, so p->depth alone would
         * not limit it. */
        if (node->depth > p->max_depth)
                too_deep(p);
}

/* Doubles an array in the arena if it is full. NULL: out of memory. */
static void *grow_array(struct parser *p, void *items, uint32_t n, uint32_t *space, size_t size) {
        /* The smaller arrays stay in the arena. Doubling limits them to the size of the last one.
         */
        uint32_t more = *space > 0 ? *space * 2 : 4;
        void *moved;

        if (n < *space)
                return items;
        moved = hf__arena_alloc(p->arena, more * size);
        if (!moved)
                return out_of_memory(p);
        if (n > 0)
                memcpy(moved, items, n * size);
        *space = more;
        return moved;
}

static bool push_node(struct parser *p, struct nodes *nodes, struct hf__cel_node *node) {
        struct hf__cel_node **items;

        if (!node)
                return false;
        items = grow_array(p, (void *)nodes->items, nodes->n, &nodes->space, sizeof *nodes->items);
        if (!items)
                return false;
        nodes->items = items;
        nodes->items[nodes->n++] = node;
        return true;
}

static struct hf__cel_node *new_call(struct parser *p, const char *function, uint32_t at,
                                     bool member, struct nodes args) {
        struct hf__cel_node *node = new_node(p, HF__CEL_NODE_CALL, at);

        if (!node)
                return NULL;
        node->as.call.function = function;
        node->as.call.member = member;
        node->as.call.args = args.items;
        node->as.call.n_args = args.n;
        for (uint32_t i = 0; i < args.n; i++)
                adopt_child(p, node, args.items[i]);
        return p->failed ? NULL : node;
}

static struct hf__cel_name token_name(struct parser *p, const struct hf__cel_token *t) {
        /* The quotes only let a name contain characters such as '-'; they are no part of it. */
        uint32_t quote = t->kind == HF__CEL_TOKEN_QUOTED_NAME ? 1 : 0;
        uint32_t n = t->n - 2 * quote;
        const char *text = hf__arena_text(p->arena, p->text + t->at + quote, n);

        if (!text)
                out_of_memory(p);
        return (struct hf__cel_name){.text = text, .n = n, .at = t->at};
}

/* Parses the arguments of a call, up to and including the closing parenthesis. */
static bool parse_args(struct parser *p, struct nodes *args) {
        if (accept_sign(p, ")"))
                return true;
        if (p->token->n == 0)
                return refuse_token(p, "mismatched", "{'[', '{', '(', ')', " OPERAND);
        do {
                if (!push_node(p, args, parse_expr(p)))
                        return false;
        } while (accept_sign(p, ","));
        return expect_sign(p, ")", "{')', ','}");
}

/* Parses a list after its opening bracket. */
static struct hf__cel_node *parse_list(struct parser *p, uint32_t at) {
        /* The array `optional` says which elements have a question mark in front. The node gets it
         * only if one has: without it a list of constants can become a value (prepare.c). */
        struct hf__cel_node *node = new_node(p, HF__CEL_NODE_LIST, at);
        struct nodes items = {0};
        bool *optional = NULL;
        uint32_t space = 0;
        bool any = false;

        if (!node)
                return NULL;
        for (bool more = !is_sign(p, "]") && !is_sign(p, ","); more;) {
                optional = grow_array(p, optional, items.n, &space, sizeof *optional);
                if (!optional)
                        return NULL;
                optional[items.n] = accept_sign(p, "?");
                any = any || optional[items.n];
                if (!push_node(p, &items, parse_expr(p)))
                        return NULL;
                adopt_child(p, node, items.items[items.n - 1]);
                more = accept_sign(p, ",") && !is_sign(p, "]") && !is_sign(p, ",");
                if (!more && is_sign(p, ","))
                        return refuse_token(p, "mismatched", "']'");
        }
        /* The grammar of CEL allows one comma in an empty list: [,]. */
        if (items.n == 0)
                accept_sign(p, ",");
        if (!expect_sign(p, "]", "{']', ','}"))
                return NULL;
        node->as.list.items = items.items;
        node->as.list.optional = any ? optional : NULL;
        node->as.list.n = items.n;
        return node;
}

/* Parses the key of an entry and its colon. The key of a map is any expression, the key of an
 * object is the name of a field. */
static bool parse_key(struct parser *p, struct hf__cel_node *node, struct hf__cel_pair *pair) {
        pair->optional = accept_sign(p, "?");
        if (node->kind == HF__CEL_NODE_MAP) {
                pair->key = parse_expr(p);
                if (!pair->key)
                        return false;
                adopt_child(p, node, pair->key);
        } else {
                if (p->token->kind != HF__CEL_TOKEN_NAME &&
                    p->token->kind != HF__CEL_TOKEN_QUOTED_NAME)
                        return refuse_token(p, "mismatched",
                                            "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}");
                pair->name = token_name(p, p->token++);
        }
        pair->at = p->token->at;
        return expect_sign(p, ":", "':'");
}

/* Parses the entries of a map or object after its opening brace. */
static struct hf__cel_node *parse_pairs(struct parser *p, struct hf__cel_node *node) {
        struct hf__cel_pair *pairs = NULL;
        uint32_t n = 0;
        uint32_t space = 0;

        if (!node)
                return NULL;
        while (!is_sign(p, "}") && !(n == 0 && is_sign(p, ","))) {
                pairs = grow_array(p, pairs, n, &space, sizeof *pairs);
                if (!pairs)
                        return NULL;
                memset(&pairs[n], 0, sizeof pairs[n]);
                if (!parse_key(p, node, &pairs[n]))
                        return NULL;
                pairs[n].value = parse_expr(p);
                if (!pairs[n].value)
                        return NULL;
                adopt_child(p, node, pairs[n++].value);
                if (!accept_sign(p, ","))
                        break;
        }
        if (n == 0)
                accept_sign(p, ",");
        if (!expect_sign(p, "}", "{'}', ','}"))
                return NULL;
        node->as.map.pairs = pairs;
        node->as.map.n = n;
        return p->failed ? NULL : node;
}

/* Parses a literal token. negative: a minus is in front of it, at `at`. */
static struct hf__cel_node *parse_literal(struct parser *p, uint32_t at, bool negative) {
        struct hf__cel_node *node = new_node(p, HF__CEL_NODE_CONST, at);
        struct hf__cel_token token = *p->token;
        const char *message = NULL;
        int r;

        if (!node)
                return NULL;
        r = hf__cel_literal(p->arena, p->text, token, negative, &node->as.constant, &message);
        if (r < 0)
                return out_of_memory(p);
        /* A number out of range, or an escape that is not allowed, is no error of the grammar: the
         * parser goes on, and may report more. */
        if (r > 0)
                hf__cel_issues_add(p->issues, at, "%s", message);
        if (r > 0)
                node->as.constant = hf__cel_null();
        p->token++;
        return node;
}

/* Reports that no name follows a dot. As ANTLR decides, the message shows the text from the dot to
 * the end of the next token; but only the word, if true, false or null stands directly behind. */
static void *refuse_after_dot(struct parser *p, uint32_t dot) {
        const struct hf__cel_token *t = p->token;
        uint32_t n = t->at + t->n - dot;

        if (t->kind == HF__CEL_TOKEN_WORD && t->at == dot + 1 && !is_sign(p, "in"))
                return refuse_token(p, "mismatched", "IDENTIFIER");
        if (!p->failed)
                hf__cel_issues_add(p->issues, t->at,
                                   "Syntax error: no viable alternative at input '%.*s'",
                                   n > 200 ? 200 : (int)n, p->text + dot);
        p->failed = true;
        return NULL;
}

/* Parses a name, and the arguments of the call if they follow it. dot: the token of a dot in front
 * of the name, or NULL. */
static struct hf__cel_node *parse_name(struct parser *p, const struct hf__cel_token *dot) {
        const struct hf__cel_token *t = p->token;
        struct hf__cel_name name;
        struct hf__cel_node *node;
        uint32_t open;

        if (t->kind != HF__CEL_TOKEN_NAME)
                return refuse_after_dot(p, dot->at);
        name = token_name(p, t);
        if (!name.text)
                return NULL;
        /* The grammar allows a reserved word such as package as a field (a.package), but not as a
         * name. Parsing goes on, so that further mistakes are reported at once. */
        if (hf__cel_name_is_reserved(name.text))
                hf__cel_issues_add(p->issues, dot ? dot->at : t->at, "reserved identifier: %s",
                                   name.text);
        if (dot) {
                /* White space may stand between the dot and the name. */
                char *text = hf__arena_alloc(p->arena, name.n + 2);

                if (!text)
                        return out_of_memory(p);
                text[0] = '.';
                memcpy(text + 1, name.text, name.n + 1);
                name.text = text;
                name.n++;
        }
        p->token++;
        open = p->token->at;
        if (accept_sign(p, "(")) {
                struct nodes args = {0};

                if (!parse_args(p, &args))
                        return NULL;
                node = new_call(p, name.text, open, false, args);
                /* A name with a leading dot is no macro: no macro has a name with a dot. */
                if (node && !dot)
                        hf__cel_macro_expand(node, p->issues);
                return node;
        }
        node = new_node(p, HF__CEL_NODE_NAME, t->at);
        if (node)
                node->as.name.name = name;
        return node;
}

static struct hf__cel_node *parse_word(struct parser *p) {
        struct hf__cel_node *node = new_node(p, HF__CEL_NODE_CONST, p->token->at);

        if (!node)
                return NULL;
        if (is_sign(p, "null"))
                node->as.constant = hf__cel_null();
        else
                node->as.constant = hf__cel_bool(is_sign(p, "true"));
        p->token++;
        return node;
}

static struct hf__cel_node *parse_primary(struct parser *p) {
        uint32_t at = p->token->at;
        struct hf__cel_node *node;

        switch (p->token->kind) {
        case HF__CEL_TOKEN_INT:
        case HF__CEL_TOKEN_UINT:
        case HF__CEL_TOKEN_FLOAT:
        case HF__CEL_TOKEN_STRING:
        case HF__CEL_TOKEN_BYTES: return parse_literal(p, at, false);
        case HF__CEL_TOKEN_NAME: return parse_name(p, NULL);
        default: break;
        }
        if (is_sign(p, "true") || is_sign(p, "false") || is_sign(p, "null"))
                return parse_word(p);
        if (accept_sign(p, "."))
                return parse_name(p, p->token - 1);
        if (accept_sign(p, "["))
                return parse_list(p, at);
        if (accept_sign(p, "{"))
                return parse_pairs(p, new_node(p, HF__CEL_NODE_MAP, at));
        if (!accept_sign(p, "("))
                return refuse_token(p, "mismatched", EXPECTED_OPERAND);
        node = parse_expr(p);
        if (!node || !expect_sign(p, ")", "')'"))
                return NULL;
        /* (a.b){} must not become an object of the type a.b. */
        node->in_parentheses = true;
        return node;
}

/* Parses a member after its dot: a field, or a call with target as its receiver. */
static struct hf__cel_node *parse_member(struct parser *p, struct hf__cel_node *target,
                                         uint32_t dot) {
        bool optional = accept_sign(p, "?");
        const struct hf__cel_token *t = p->token;
        struct hf__cel_node *node;
        struct nodes args = {0};
        struct hf__cel_name name;
        uint32_t open = t[0].n > 0 ? t[1].at : 0; /* after the END token there is none */

        if (t->kind != HF__CEL_TOKEN_NAME && t->kind != HF__CEL_TOKEN_QUOTED_NAME)
                return optional ? refuse_token(p, "mismatched", "{IDENTIFIER, ESC_IDENTIFIER}")
                                : refuse_after_dot(p, dot);
        name = token_name(p, p->token++);
        if (!name.text)
                return NULL;
        /* The grammar has no call behind a question mark or with a quoted name. */
        if (!optional && t->kind == HF__CEL_TOKEN_NAME && accept_sign(p, "(")) {
                if (!push_node(p, &args, target) || !parse_args(p, &args))
                        return NULL;
                node = new_call(p, name.text, open, true, args);
                if (node)
                        hf__cel_macro_expand(node, p->issues);
                return node;
        }
        node = new_node(p, HF__CEL_NODE_SELECT, dot);
        if (!node)
                return NULL;
        node->optional = optional;
        node->quoted = t->kind == HF__CEL_TOKEN_QUOTED_NAME;
        node->as.select.operand = target;
        node->as.select.field = name;
        adopt_child(p, node, target);
        return p->failed ? NULL : node;
}

static struct hf__cel_node *parse_index(struct parser *p, struct hf__cel_node *target,
                                        uint32_t at) {
        bool optional = accept_sign(p, "?");
        struct nodes args = {0};
        struct hf__cel_node *index;

        if (!optional && (p->token->n == 0 || is_sign(p, "]")))
                return refuse_token(p, "mismatched",
                                    "{'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', "
                                    "NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}");
        index = parse_expr(p);
        if (!push_node(p, &args, target) || !push_node(p, &args, index) ||
            !expect_sign(p, "]", "']'"))
                return NULL;
        return new_call(p, optional ? "_[?_]" : "_[_]", at, false, args);
}

/* Parses an object after its opening brace. type: the name of its type, which was read before. */
static struct hf__cel_node *parse_object(struct parser *p, const struct hf__cel_node *type,
                                         uint32_t at) {
        char name[256];
        size_t n = hf__cel_type_name_of(type, name, sizeof name);
        struct hf__cel_node *node = new_node(p, HF__CEL_NODE_OBJECT, at);

        if (!node)
                return NULL;
        node->as.map.name = (struct hf__cel_name){.text = hf__arena_text(p->arena, name, n),
                                                  .n = (uint32_t)n,
                                                  .at = type->at};
        if (!node->as.map.name.text)
                return out_of_memory(p);
        return parse_pairs(p, node);
}

/* Parses what follows an operand: fields, calls, indexes. A brace belongs to the operand only if
 * the operand reads as the name of a type. */
static struct hf__cel_node *parse_postfix(struct parser *p, struct hf__cel_node *node) {
        char name[256];

        while (node && !p->failed) {
                uint32_t at = p->token->at;

                if (accept_sign(p, ".")) {
                        node = parse_member(p, node, at);
                } else if (accept_sign(p, "[")) {
                        node = parse_index(p, node, at);
                } else if (is_sign(p, "{") && hf__cel_type_name_of(node, name, sizeof name) > 0) {
                        p->token++;
                        node = parse_object(p, node, at);
                } else {
                        return node;
                }
        }
        return NULL;
}

/* Parses an operand with the operators in front of it. Two equal ones cancel each other out. A
 * minus directly before an INT or FLOAT belongs to the number: -9223372036854775808 has no positive
 * counterpart that could be negated. */
static struct hf__cel_node *parse_unary(struct parser *p) {
        const char *sign = is_sign(p, "-") ? "-" : "!";
        uint32_t at = p->token->at;
        struct nodes args = {0};
        struct hf__cel_node *node;
        unsigned n = 0;
        uint32_t last = at;

        while (is_sign(p, sign)) {
                last = p->token->at;
                p->token++;
                n++;
        }
        if (n > 0 && *sign == '-' &&
            (p->token->kind == HF__CEL_TOKEN_INT || p->token->kind == HF__CEL_TOKEN_FLOAT)) {
                node = parse_literal(p, last, true);
                n--;
        } else if (n > 0 && *sign == '!' && is_sign(p, "-") &&
                   (p->token[1].kind == HF__CEL_TOKEN_INT ||
                    p->token[1].kind == HF__CEL_TOKEN_FLOAT)) {
                last = p->token->at;
                p->token++;
                node = parse_literal(p, last, true);
        } else {
                node = parse_primary(p);
        }
        node = parse_postfix(p, node);
        if (!node || n % 2 == 0)
                return node;
        if (!push_node(p, &args, node))
                return NULL;
        return new_call(p, *sign == '-' ? "-_" : "!_", at, false, args);
}

/* The levels of precedence are those of the grammar in the language definition. All relations have
 * the same level, so a < b == c is (a < b) == c. The names of the functions are those of cel-go,
 * because messages show them. */
static const struct binary {
        const char *sign;
        const char *function;
        int level;
        enum hf__cel_operator op;
} binaries[] = {
        {"||", "_||_", 1, HF__CEL_OP_OR},    {"&&", "_&&_", 2, HF__CEL_OP_AND},
        {"<", "_<_", 3, HF__CEL_OP_NONE},    {"<=", "_<=_", 3, HF__CEL_OP_NONE},
        {">=", "_>=_", 3, HF__CEL_OP_NONE},  {">", "_>_", 3, HF__CEL_OP_NONE},
        {"==", "_==_", 3, HF__CEL_OP_EQUAL}, {"!=", "_!=_", 3, HF__CEL_OP_NOT_EQUAL},
        {"in", "@in", 3, HF__CEL_OP_NONE},   {"+", "_+_", 4, HF__CEL_OP_NONE},
        {"-", "_-_", 4, HF__CEL_OP_NONE},    {"*", "_*_", 5, HF__CEL_OP_NONE},
        {"/", "_/_", 5, HF__CEL_OP_NONE},    {"%", "_%_", 5, HF__CEL_OP_NONE},
};

static const struct binary *next_binary(const struct parser *p) {
        for (size_t i = 0; i < sizeof binaries / sizeof binaries[0]; i++)
                if (is_sign(p, binaries[i].sign))
                        return &binaries[i];
        return NULL;
}

/* Parses operands and operators of at least this level. A chain of && or || becomes one node, so
 * that the tree does not get deep. */
static struct hf__cel_node *parse_binary(struct parser *p, int level) {
        struct hf__cel_node *left = parse_unary(p);
        const struct binary *op;

        while (left && (op = next_binary(p)) != NULL && op->level >= level) {
                struct nodes args = {0};
                uint32_t at = p->token->at;
                bool chain = op->op == HF__CEL_OP_AND || op->op == HF__CEL_OP_OR;

                if (!push_node(p, &args, left))
                        return NULL;
                do {
                        p->token++;
                        /* One level more, because all these operators associate to the left. */
                        if (!push_node(p, &args, parse_binary(p, op->level + 1)))
                                return NULL;
                } while (chain && next_binary(p) == op);
                left = new_call(p, op->function, at, false, args);
                if (left)
                        left->op = (uint8_t)op->op;
        }
        return left;
}

static struct hf__cel_node *parse_condition(struct parser *p) {
        struct hf__cel_node *node = parse_binary(p, 1);
        struct nodes args = {0};
        uint32_t at = p->token->at;

        if (!node || !accept_sign(p, "?"))
                return node;
        /* By the grammar the second operand of ?: is a condition itself only in parentheses. The
         * third operand needs no parentheses, so a chain of conditions associates to the right. */
        if (!push_node(p, &args, node) || !push_node(p, &args, parse_binary(p, 1)) ||
            !expect_sign(p, ":", "':'") || !push_node(p, &args, parse_expr(p)))
                return NULL;
        node = new_call(p, "_?_:_", at, false, args);
        if (node)
                node->op = HF__CEL_OP_CONDITION;
        return node;
}

static struct hf__cel_node *parse_expr(struct parser *p) {
        struct hf__cel_node *node;

        if (p->failed)
                return NULL;
        if (p->depth >= p->max_depth)
                return too_deep(p);
        p->depth++;
        node = parse_condition(p);
        assert(p->depth > 0);
        p->depth--;
        return p->failed ? NULL : node;
}

struct hf__cel_node *hf__cel_parse(struct hf__cel_issues *issues, unsigned max_depth) {
        struct parser p = {.arena = issues->arena,
                           .issues = issues,
                           .text = issues->text,
                           .max_depth = max_depth};
        size_t n_characters = hf__utf8_count(issues->text, issues->n_text);
        struct hf__cel_node *node;

        /* Kubernetes counts characters, and refuses the text before it looks at a token. */
        if (n_characters > HF__CEL_TEXT_MAX) {
                hf__cel_issues_add(issues, HF__CEL_NO_PLACE,
                                   "expression code point size exceeds limit: size: %zu, limit %d",
                                   n_characters, HF__CEL_TEXT_MAX);
                return NULL;
        }
        p.token = hf__cel_lex(p.arena, issues);
        if (!p.token)
                return NULL;
        node = parse_expr(&p);
        /* As ANTLR decides: a single token too many is extraneous. */
        if (node && p.token->n > 0)
                refuse_token(&p, p.token[1].n == 0 ? "extraneous" : "mismatched", "<EOF>");
        return issues->n == 0 && !p.arena->failed ? node : NULL;
}
