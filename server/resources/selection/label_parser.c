/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a label selector as labels.Parse of Kubernetes does: token by token, so that a mistake has
 * the same message. The grammar is at the top of selector.c.
 *
 * Invariant: a NUL is written behind a key or a value only when the token after it has been read.
 * So the NUL may replace the first byte of that token: the text of a symbol is not read again.
 */
#include "server/resources/selection/label_parser.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/quote.h"
#include "server/resources/causes.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"

#define SYMBOLS    "=!(),<>"
#define SHOWN_MAX  200 /* bytes of a client's text that are shown */
#define QUOTED_MAX 400 /* bytes of such a text in quotes, with the NUL */

enum token {
        END,
        WORD, /* a key, a value, or an operator that is a word */
        COMMA,
        OPEN,
        CLOSE,
        NOT,
        EQUALS,
        DOUBLE_EQUALS,
        NOT_EQUALS,
        GREATER,
        LESS
};

static const char *const symbols[] =
        {[END] = "",          [WORD] = NULL,   [COMMA] = ",",  [OPEN] = "(",
         [CLOSE] = ")",       [NOT] = "!",     [EQUALS] = "=", [DOUBLE_EQUALS] = "==",
         [NOT_EQUALS] = "!=", [GREATER] = ">", [LESS] = "<"};

struct parser {
        struct hfd_requirement *requirements;
        size_t space, n;  /* requirements that fit, and those that were begun */
        char *end;        /* of the whole text: an empty value */
        char *at;         /* the first byte behind the token */
        enum token token; /* the next one, which is not consumed yet */
        char *word;       /* of a WORD */
        size_t n_word;
        char *reason;
        size_t max_reason;
};

/* ---- tokens ---- */

static void read_token(struct parser *p) {
        p->at += strspn(p->at, HFD_SELECTOR_SPACES);
        p->token = END;
        if (!*p->at)
                return;
        if (!strchr(SYMBOLS, *p->at)) {
                p->token = WORD;
                p->word = p->at;
                p->n_word = strcspn(p->at, SYMBOLS HFD_SELECTOR_SPACES);
                p->at += p->n_word;
                return;
        }
        for (enum token t = COMMA; t <= LESS; t++)
                if (*symbols[t] == *p->at)
                        if (!symbols[t][1] || symbols[t][1] == p->at[1])
                                p->token = t; /* the longer symbols come after the shorter ones */
        p->at += strlen(symbols[p->token]);
}

/* Consumes a word, and returns it with a NUL behind it. */
static char *take_word(struct parser *p) {
        char *word = p->word, *end = p->word + p->n_word;

        assert(p->token == WORD);
        read_token(p);
        *end = '\0';
        return word;
}

static bool is_word(const struct parser *p, const char *word) {
        return p->token == WORD && p->n_word == strlen(word) &&
               memcmp(p->word, word, p->n_word) == 0;
}

/* Writes the message for a token that does not fit. before: what comes before "found"; expected:
 * all that comes after the token. HF_E_INVALID. */
static int refuse_token(struct parser *p, const char *before, const char *expected) {
        int n = p->n_word < SHOWN_MAX ? (int)p->n_word : SHOWN_MAX;

        if (p->token == WORD)
                (void)snprintf(p->reason, p->max_reason, "%sfound '%.*s'%s", before, n, p->word,
                               expected);
        else
                (void)snprintf(p->reason, p->max_reason, "%sfound '%s'%s", before,
                               symbols[p->token], expected);
        return HF_E_INVALID;
}

#define REQUIREMENT "unable to parse requirement: "

/* ---- what keys and values may be ---- */

/* Whether the key is valid. If not, writes the message: all faults, after the key in quotes. */
static bool check_key(struct parser *p, const char *key) {
        struct hfd_causes causes;
        size_t n;

        if (hfd_is_qualified_name(key))
                return true;
        hfd_causes_init(&causes);
        hfd_qualified_name_validate(key, "", &causes);
        assert(causes.n > 0);
        n = (size_t)snprintf(p->reason, p->max_reason, REQUIREMENT "<nil>: %s",
                             causes.items[0].text);
        for (size_t i = 1; i < causes.n && n < p->max_reason; i++) {
                /* A key has no white space, so this is the end of the key in the text. */
                const char *fault = strstr(causes.items[i].text, "\": ");
                if (fault)
                        n += (size_t)snprintf(p->reason + n, p->max_reason - n, "; %s",
                                              fault + strlen("\": "));
        }
        return false;
}

/* The faults of the values of one requirement, as Kubernetes shows a list of errors. */
struct faults {
        char text[1200];
        size_t n_text;
        unsigned n;
};

static void add_fault(struct faults *faults, const char *field, const char *value,
                      const char *detail) {
        char quoted[QUOTED_MAX];

        hf__quote_bytes(value, strnlen(value, SHOWN_MAX), quoted, sizeof quoted);
        if (faults->n_text < sizeof faults->text)
                faults->n_text +=
                        (size_t)snprintf(faults->text + faults->n_text,
                                         sizeof faults->text - faults->n_text,
                                         "%s%s: Invalid value: %s: %s", faults->n > 0 ? ", " : "",
                                         field, quoted, detail);
        faults->n++;
}

static void check_value(struct faults *faults, const char *key, size_t index, const char *value) {
        bool is_long = strlen(value) > HFD_LABEL_VALUE_MAX,
             has_form = !*value || hfd_is_name_text(value);
        char field[HFD_DNS_SUBDOMAIN_MAX + HFD_LABEL_VALUE_MAX + 64], detail[500];

        if (!is_long && has_form)
                return;
        (void)snprintf(field, sizeof field, "values[%zu][%s]", index, key);
        (void)snprintf(detail, sizeof detail, "%s%s%s",
                       is_long ? "must be no more than 63 bytes" : "",
                       is_long && !has_form ? "; " : "", has_form ? "" : hfd_label_value_rule);
        add_fault(faults, field, value, detail);
}

/* Checks the values of a requirement. 0, or HF_E_INVALID with the reason. */
static int check_values(struct parser *p, const struct hfd_requirement *requirement) {
        bool is_bound = requirement->op == HFD_GREATER || requirement->op == HFD_LESS;
        struct faults faults = {.n = 0};

        for (size_t i = 0; is_bound && i < requirement->n_values; i++)
                if (!hfd_is_bound(requirement->values[i]))
                        add_fault(&faults, "values[0]", requirement->values[i],
                                  "for 'Gt', 'Lt' operators, the value must be an integer");
        for (size_t i = 0; i < requirement->n_values; i++)
                check_value(&faults, requirement->key, i, requirement->values[i]);
        if (faults.n == 0)
                return 0;
        (void)snprintf(p->reason, p->max_reason, REQUIREMENT "%s%s%s", faults.n > 1 ? "[" : "",
                       faults.text, faults.n > 1 ? "]" : "");
        return HF_E_INVALID;
}

/* ---- values ---- */

/* A list has at most one value more than commas, and one for a comma before its end. */
static size_t count_values(const struct parser *p) {
        size_t n = 2;

        for (const char *c = p->at; *c && *c != ')'; c++)
                n += *c == ',';
        return n + (p->token == COMMA);
}

/* Parses the values between parentheses, and stops at the closing one. An empty one counts. */
static int parse_list(struct parser *p, struct hfd_requirement *requirement) {
        for (;;) {
                if (p->token == WORD) {
                        requirement->values[requirement->n_values++] = take_word(p);
                        if (p->token == CLOSE)
                                return 0;
                        if (p->token != COMMA)
                                return refuse_token(p, REQUIREMENT, ", expected: ',' or ')'");
                } else if (p->token == COMMA) {
                        if (requirement->n_values == 0)
                                requirement->values[requirement->n_values++] = p->end;
                        read_token(p);
                        if (p->token == CLOSE || p->token == COMMA)
                                requirement->values[requirement->n_values++] = p->end;
                        if (p->token == CLOSE)
                                return 0;
                } else {
                        return refuse_token(p, REQUIREMENT, ", expected: ',', or identifier");
                }
        }
}

/* Like Kubernetes, sorts the values, and drops those that occur twice. */
static void sort_values(struct hfd_requirement *requirement) {
        size_t n = 0;

        hfd_sort_texts(requirement->values, requirement->n_values);
        for (size_t i = 0; i < requirement->n_values; i++)
                if (n == 0 || strcmp(requirement->values[n - 1], requirement->values[i]) != 0)
                        requirement->values[n++] = requirement->values[i];
        requirement->n_values = n;
}

/* Parses the values of `in` and `notin`, with their parentheses. */
static int parse_set(struct parser *p, struct hfd_requirement *requirement) {
        int r = 0;

        if (p->token != OPEN)
                return refuse_token(p, REQUIREMENT, " expected: '('");
        read_token(p);
        requirement->values = calloc(count_values(p), sizeof *requirement->values);
        if (!requirement->values)
                return -ENOMEM;
        if (p->token == WORD || p->token == COMMA)
                r = parse_list(p, requirement);
        else if (p->token == CLOSE)
                requirement->values[requirement->n_values++] = p->end;
        else
                r = refuse_token(p, REQUIREMENT, ", expected: ',', ')' or identifier");
        if (r != 0)
                return r;
        assert(p->token == CLOSE);
        read_token(p);
        sort_values(requirement);
        return 0;
}

/* Parses the value of an operator that is a symbol. */
static int parse_value(struct parser *p, struct hfd_requirement *requirement) {
        if (p->token != END && p->token != COMMA && p->token != WORD)
                return refuse_token(p, REQUIREMENT, ", expected: identifier");
        requirement->values = calloc(1, sizeof *requirement->values);
        if (!requirement->values)
                return -ENOMEM;
        requirement->values[requirement->n_values++] = p->token == WORD ? take_word(p) : p->end;
        return 0;
}

/* ---- requirements ---- */

/* Consumes the operator. 0, or HF_E_INVALID with the reason. */
static int parse_operator(struct parser *p, enum hfd_selector_op *ret_op) {
        static const enum hfd_selector_op ops[] = {[EQUALS] = HFD_EQUALS,
                                                   [DOUBLE_EQUALS] = HFD_EQUALS,
                                                   [NOT_EQUALS] = HFD_NOT_EQUALS,
                                                   [GREATER] = HFD_GREATER,
                                                   [LESS] = HFD_LESS};

        if (is_word(p, "in"))
                *ret_op = HFD_IN;
        else if (is_word(p, "notin"))
                *ret_op = HFD_NOT_IN;
        else if (p->token >= EQUALS)
                *ret_op = ops[p->token];
        else
                return refuse_token(p, REQUIREMENT, ", expected: in, notin, =, ==, !=, gt, lt");
        read_token(p);
        return 0;
}

static int parse_requirement(struct parser *p) {
        if (p->n == p->space) {
                (void)snprintf(p->reason, p->max_reason,
                               "more than %zu requirements in the label selector", p->space);
                return HF_E_INVALID;
        }
        struct hfd_requirement *requirement = &p->requirements[p->n++];
        bool is_negated = p->token == NOT;

        if (is_negated)
                read_token(p);
        if (p->token != WORD)
                return refuse_token(p, REQUIREMENT, ", expected: identifier");
        requirement->key = take_word(p);
        if (!check_key(p, requirement->key))
                return HF_E_INVALID;
        requirement->op = is_negated ? HFD_NOT_EXISTS : HFD_EXISTS;
        if (is_negated || p->token == END || p->token == COMMA)
                return 0;
        int r = parse_operator(p, &requirement->op);
        if (r != 0)
                return r;
        r = requirement->op == HFD_IN || requirement->op == HFD_NOT_IN
                    ? parse_set(p, requirement)
                    : parse_value(p, requirement);
        return r == 0 ? check_values(p, requirement) : r;
}

static int parse_requirements(struct parser *p) {
        read_token(p);
        if (p->token != END && p->token != WORD && p->token != NOT)
                return refuse_token(p, "", ", expected: !, identifier, or 'end of string'");
        while (p->token != END) {
                int r = parse_requirement(p);
                if (r != 0 || p->token == END)
                        return r;
                if (p->token != COMMA)
                        return refuse_token(p, "", ", expected: ',' or 'end of string'");
                read_token(p);
                if (p->token != WORD && p->token != NOT)
                        return refuse_token(p, "", ", expected: identifier after ','");
        }
        return 0;
}

int hfd_labels_parse(char *text, struct hfd_requirement *requirements, size_t space, size_t *n,
                     char *reason, size_t max_reason) {
        struct parser p = {.requirements = requirements,
                           .space = space,
                           .end = text + strlen(text),
                           .at = text,
                           .reason = reason,
                           .max_reason = max_reason};
        int r = parse_requirements(&p);

        *n = p.n;
        return r;
}
