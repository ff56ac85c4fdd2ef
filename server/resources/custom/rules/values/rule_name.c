/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Escapes the names of properties, because CEL has only letters, digits and underscores in names.
 * The escapes are those of Kubernetes.
 *
 * Invariant: different names have different escapes, so that a field is found by its escaped name.
 * Two underscores are escaped themselves for this reason.
 */
#include "server/resources/custom/rules/values/rule_name.h"

#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "cel/syntax/expression_names.h"

/* Kubernetes escapes the words that are reserved in an expression, and no others. */
bool hfd_rule_name_is_reserved(const char *name) { return hf__cel_name_is_reserved(name); }

/* Whether the character needs no escape. */
static bool is_letter(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
}

/* Returns the text that replaces the first *ret_n characters of name. NULL: the first character has
 * no replacement; it stays (is_letter), or the name cannot be escaped. */
static const char *replacement(const char *name, size_t *ret_n) {
        *ret_n = 1;
        if (name[0] == '_' && name[1] == '_') {
                *ret_n = 2;
                return "__underscores__";
        }
        switch (*name) {
        case '.': return "__dot__";
        case '-': return "__dash__";
        case '/': return "__slash__";
        default: return NULL;
        }
}

const char *hfd_rule_name(struct hf__arena *arena, const char *name) {
        size_t n = strlen(name);
        char *escaped = NULL;
        char *at;

        if (n == 0 || (*name >= '0' && *name <= '9'))
                return NULL;
        /* The longest replacement of one character is "__slash__", 9 bytes; 5 bytes are for a NUL
         * and the underscores around a reserved word. */
        escaped = hf__arena_alloc(arena, 9 * n + 5);
        if (!escaped)
                return NULL;
        at = escaped;
        if (hfd_rule_name_is_reserved(name)) {
                at = stpcpy(at, "__");
                at = stpcpy(at, name);
                stpcpy(at, "__");
                return escaped;
        }
        while (*name) {
                size_t length;
                const char *other = replacement(name, &length);

                if (other)
                        at = stpcpy(at, other);
                else if (is_letter(*name))
                        *at++ = *name;
                else
                        return NULL;
                name += length;
        }
        *at = 0;
        return escaped;
}
