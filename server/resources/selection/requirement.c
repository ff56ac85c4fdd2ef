/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the requirements of field selectors; compares and evaluates each requirement.
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

static int compare_texts(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

void hfd_sort_texts(char **texts, size_t n) { qsort(texts, n, sizeof *texts, compare_texts); }

bool hfd_is_bound(const char *text) {
        char *end;

        errno = 0;
        (void)strtoll(text, &end, 10);
        return *text && errno == 0 && *end == '\0';
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
        requirement->op = *op == '!' ? HFD_NOT_EQUALS : HFD_EQUALS;
        /* "==" is the same as "=". */
        char *value = op + (op[1] == '=' ? 2 : 1);
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
        if (!value || !hfd_is_bound(value))
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
