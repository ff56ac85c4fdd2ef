/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognizes reserved words, and chains of names that can be the name of a type.
 *
 * Invariant: the recursion is bounded by the depth of the tree.
 */
#include "cel/syntax/expression_names.h"

#include <string.h>

bool hf__cel_name_is_reserved(const char *name) {
        /* The grammar uses false, in, null and true. The language definition reserves the others,
         * so that CEL may grow without a change of the meaning of existing expressions. */
        static const char *const words[] = {
                "as",        "break", "const",  "continue", "else", "false", "for",
                "function",  "if",    "import", "in",       "let",  "loop",  "package",
                "namespace", "null",  "return", "true",     "var",  "void",  "while",
        };

        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
                if (strcmp(words[i], name) == 0)
                        return true;
        return false;
}

size_t hf__cel_type_name_of(const struct hf__cel_node *node, char *out, size_t max) {
        size_t n;

        /* The grammar wants a plain chain of names before the brace of an object. */
        if (node->in_parentheses || node->optional || node->quoted)
                return 0;
        if (node->kind == HF__CEL_NODE_NAME) {
                if (node->as.name.name.n > max)
                        return 0;
                memcpy(out, node->as.name.name.text, node->as.name.name.n);
                return node->as.name.name.n;
        }
        if (node->kind != HF__CEL_NODE_SELECT)
                return 0;
        n = hf__cel_type_name_of(node->as.select.operand, out, max);
        if (n == 0 || n + 1 + node->as.select.field.n > max)
                return 0;
        out[n] = '.';
        memcpy(out + n + 1, node->as.select.field.text, node->as.select.field.n);
        return n + 1 + node->as.select.field.n;
}
