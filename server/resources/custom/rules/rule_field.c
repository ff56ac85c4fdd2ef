/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the fieldPath of a rule.
 *
 * Invariants: a path is read as Kubernetes reads it, so that both accept the same paths. A property
 * is found through the index of its object, because a schema may have thousands of properties, and
 * thousands of rules that name the last one.
 */
#include "server/resources/custom/rules/rule_field.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/custom/schema/structure/structure.h"

/* The bytes of the next token: a sign (one of ".[]"), a text in quotes, or the text before the next
 * sign. */
static size_t token_length(const char *text) {
        size_t n = 1;

        if (!*text || strchr(".[]", *text))
                return *text ? 1 : 0;
        if (*text != '\'')
                return strcspn(text, ".[]");
        while (text[n] && (text[n] != '\'' || text[n - 1] == '\\'))
                n++;
        return text[n] ? n + 1 : n;
}

/* The text between the quotes without its escapes. false: an escape is unknown. */
static bool unquote_token(const char *token, size_t n, struct hf__strbuf *out) {
        static const char from[] = "abfnrtv'\\";
        static const char to[] = "\a\b\f\n\r\t\v'\\";

        for (size_t i = 1; i + 1 < n; i++) {
                const char *escape;

                if (token[i] != '\\' || i + 2 >= n) {
                        hf__strbuf_putc(out, token[i]);
                        continue;
                }
                escape = strchr(from, token[++i]);
                if (!escape)
                        return false;
                hf__strbuf_putc(out, to[escape - from]);
        }
        return true;
}

/* Goes to a named part, and appends its name to `out`. *props becomes NULL if there is none. */
static void enter_field(struct hfd_structure *members, const struct hf__json **props,
                        const char *name, struct hf__strbuf *out) {
        const struct hf__json *properties = hf__json_get(*props, "properties");

        if (properties) {
                *props = hfd_structure_member(members, properties, name);
                hf__strbuf_puts(out, out->n > 0 ? "." : "");
                hf__strbuf_puts(out, name);
        } else {
                *props = hf__json_get(*props, "additionalProperties");
                hf__strbuf_putc(out, '[');
                hf__strbuf_puts(out, name);
                hf__strbuf_putc(out, ']');
        }
}

/* One part of the path, from its dot or bracket on. Returns its length in bytes; 0: it is
 * malformed. If the schema has no such part, *props becomes NULL (enter_field). */
static size_t take_part(struct hfd_structure *members, const struct hf__json **props,
                        const char *path, struct hf__strbuf *name, struct hf__strbuf *out) {
        size_t n = token_length(path + 1);

        if (n == 0)
                return 0;
        hf__strbuf_reset(name);
        if (*path == '[') {
                if (n < 2 || path[1] != '\'' || path[n] != '\'' || path[1 + n] != ']' ||
                    !unquote_token(path + 1, n, name))
                        return 0;
                n++;
        } else if (*path == '.') {
                hf__strbuf_add(name, path + 1, n);
        } else {
                return 0;
        }
        enter_field(members, props, name->n > 0 ? name->data : "", out);
        return 1 + n;
}

int hfd_rule_field(struct hfd_structure *members, const struct hf__json *props, const char *path,
                   struct hf__strbuf *out) {
        struct hf__strbuf name = {0};
        int r = 0;

        while (r == 0 && *path) {
                size_t n = take_part(members, &props, path, &name, out);

                if (n == 0 || !hf__json_is_object(props))
                        r = HF_E_INVALID;
                path += n;
        }
        if (name.error != 0 && out->error == 0)
                out->error = name.error;
        hf__strbuf_done(&name);
        return r;
}
