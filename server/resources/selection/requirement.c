/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses, compares and evaluates one requirement.
 *
 * Invariant: parsing writes NULs into the text, and key and values point into it.
 */
#include "server/resources/selection/requirement.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "server/resources/validation/names.h"

#define SPACES HFD_SELECTOR_SPACES

/* Cuts white space off both ends, in place. */
static char *trim_spaces(char *text) {
        text += strspn(text, SPACES);
        char *end = text + strlen(text);
        while (end > text && strchr(SPACES, end[-1]))
                end--;
        *end = '\0';
        return text;
}

static bool is_number(const char *text) {
        char *end;

        errno = 0;
        (void)strtoll(text, &end, 10);
        return *text && errno == 0 && *end == '\0';
}

/* Whether every value is a valid label value, and the bounds of < and > are numbers. */
static bool values_are_valid(const struct hfd_requirement *requirement) {
        bool bound = requirement->op == HFD_GREATER || requirement->op == HFD_LESS;

        for (size_t i = 0; i < requirement->n_values; i++) {
                const char *value = requirement->values[i];
                if (!hfd_is_label_value(value) || (bound && !is_number(value)))
                        return false;
        }
        return true;
}

/* Splits list in place at each separator. separator '\0': list is a single value. 0 or -ENOMEM. */
static int split_values(struct hfd_requirement *requirement, char *list, char separator) {
        size_t n = 1;

        assert(!requirement->values);
        for (char *c = list; separator != '\0' && *c; c++)
                n += *c == separator;
        requirement->values = calloc(n, sizeof *requirement->values);
        if (!requirement->values)
                return -ENOMEM;
        for (char *next = list; next; list = next) {
                next = separator != '\0' ? strchr(list, separator) : NULL;
                if (next)
                        *next++ = '\0';
                requirement->values[requirement->n_values++] = trim_spaces(list);
        }
        assert(requirement->n_values == n);
        return 0;
}

/*
 * Completes a requirement whose key and operator are set: checks the key, then splits and checks
 * the values. 0, -ENOMEM or HF_E_INVALID.
 */
static int finish_requirement(struct hfd_requirement *requirement, char *list, char separator) {
        if (!hfd_is_qualified_name(requirement->key))
                return HF_E_INVALID;
        int r = split_values(requirement, list, separator);
        if (r == 0 && !values_are_valid(requirement))
                r = HF_E_INVALID;
        return r;
}

/* Cuts the word, and one white-space character before it, off the end of text. False: text does not
 * end with both, and is unchanged. */
static bool remove_last_word(char *text, const char *word) {
        size_t n = strlen(text), n_word = strlen(word);

        if (n <= n_word + 1 || !strchr(SPACES, text[n - n_word - 1]) ||
            strcmp(text + n - n_word, word) != 0)
                return false;
        text[n - n_word - 1] = '\0';
        return true;
}

/* Parses `key in (a,b)` or `key notin (a,b)`. */
static int parse_set(struct hfd_requirement *requirement, char *text) {
        char *open = strchr(text, '('), *close = strrchr(text, ')');

        if (!open || !close || close < open || *trim_spaces(close + 1))
                return HF_E_INVALID;
        *open = *close = '\0';
        char *head = trim_spaces(text);
        if (remove_last_word(head, "notin"))
                requirement->op = HFD_NOT_IN;
        else if (remove_last_word(head, "in"))
                requirement->op = HFD_IN;
        else
                return HF_E_INVALID;
        requirement->key = trim_spaces(head);
        return finish_requirement(requirement, open + 1, ',');
}

/* Parses `key` or `!key`. */
static int parse_existence(struct hfd_requirement *requirement, char *text) {
        requirement->op = *text == '!' ? HFD_NOT_EXISTS : HFD_EXISTS;
        requirement->key = *text == '!' ? trim_spaces(text + 1) : text;
        return hfd_is_qualified_name(requirement->key) ? 0 : HF_E_INVALID;
}

/* Parses the operator at *at, and advances *at past the operator. False: a '!' without '='. */
static bool parse_operator(char **at, enum hfd_selector_op *ret_op) {
        char first = *(*at)++;

        switch (first) {
        case '<': *ret_op = HFD_LESS; return true;
        case '>': *ret_op = HFD_GREATER; return true;
        case '!': *ret_op = HFD_NOT_EQUALS; return *(*at)++ == '=';
        default:
                assert(first == '=');
                *ret_op = HFD_EQUALS;
                if (**at == '=') /* "==" is the same as "=" */
                        (*at)++;
                return true;
        }
}

/* A valid key or value contains no parenthesis, so '(' identifies the forms with a set. */
int hfd_requirement_parse_label(struct hfd_requirement *requirement, char *text) {
        text = trim_spaces(text);
        if (strchr(text, '('))
                return parse_set(requirement, text);
        if (*text == '!' && !strchr(text, '='))
                return parse_existence(requirement, text);
        char *op = strpbrk(text, "=!<>"), *value = op;
        if (!op)
                return parse_existence(requirement, text);
        if (!parse_operator(&value, &requirement->op))
                return HF_E_INVALID;
        *op = '\0';
        requirement->key = trim_spaces(text);
        return finish_requirement(requirement, value, '\0');
}

/* Replaces the escape sequences of a value, in place. 0, or HF_E_INVALID with the reason. */
static int unescape_value(char *value, char *reason, size_t max_reason) {
        const char *in = value;
        char *out = value;

        for (; *in; *out++ = *in++) {
                if (*in == '=' || *in == ',') {
                        (void)snprintf(reason, max_reason,
                                       "invalid field selector: unescaped character in value: %d",
                                       *in);
                        return HF_E_INVALID;
                }
                if (*in != '\\')
                        continue;
                in++;
                if (*in == '\\' || *in == ',' || *in == '=')
                        continue;
                int n = *in != '\0';
                while (((unsigned char)in[n] & 0xc0) == 0x80)
                        n++; /* the whole character, which may have more bytes */
                (void)snprintf(reason, max_reason,
                               "invalid field selector: invalid escape sequence: \\%.*s", n, in);
                return HF_E_INVALID;
        }
        *out = '\0';
        return 0;
}

int hfd_requirement_parse_field(struct hfd_requirement *requirement, char *term, const char *text,
                                char *reason, size_t max_reason) {
        char *op = strpbrk(term, "=!");

        while (op && *op == '!' && op[1] != '=')
                op = strpbrk(op + 1, "=!");
        if (!op) {
                (void)snprintf(reason, max_reason,
                               "invalid selector: '%.120s'; can't understand '%.120s'", text, term);
                return HF_E_INVALID;
        }
        char *value = op;
        (void)parse_operator(&value, &requirement->op); /* cannot fail, because op is "=" or "!=" */
        *op = '\0';
        requirement->key = term;
        requirement->values = calloc(1, sizeof *requirement->values);
        if (!requirement->values)
                return -ENOMEM;
        requirement->values[requirement->n_values++] = value;
        return unescape_value(value, reason, max_reason);
}

/* ---- a parsed requirement ---- */

bool hfd_requirement_equal(const struct hfd_requirement *a, const struct hfd_requirement *b) {
        bool same = a->op == b->op && strcmp(a->key, b->key) == 0 && a->n_values == b->n_values;

        for (size_t i = 0; same && i < a->n_values; i++)
                same = strcmp(a->values[i], b->values[i]) == 0;
        return same;
}

static bool has_value(const struct hfd_requirement *requirement, const char *value) {
        for (size_t i = 0; i < requirement->n_values; i++)
                if (strcmp(requirement->values[i], value) == 0)
                        return true;
        return false;
}

/* As in Kubernetes, a label that is absent or not a number satisfies neither < nor >. */
static bool compares_true(const struct hfd_requirement *requirement, const char *value) {
        if (!value || !is_number(value))
                return false;
        long long number = strtoll(value, NULL, 10);
        long long bound = strtoll(requirement->values[0], NULL, 10);
        return requirement->op == HFD_GREATER ? number > bound : number < bound;
}

bool hfd_requirement_holds(const struct hfd_requirement *requirement, const char *value) {
        switch (requirement->op) {
        case HFD_EXISTS: return value != NULL;
        case HFD_NOT_EXISTS: return !value;
        case HFD_EQUALS:
        case HFD_IN: return value && has_value(requirement, value);
        case HFD_NOT_EQUALS:
        case HFD_NOT_IN: return !value || !has_value(requirement, value);
        case HFD_GREATER:
        case HFD_LESS: return compares_true(requirement, value);
        }
        return false;
}
