/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the messages of a check that name types.
 *
 * Invariant: a type variable is shown as what it stands for, or as dyn.
 */
#include "cel/type_issues.h"

#include <assert.h>
#include <string.h>

#include "base/strbuf.h"

void hf__cel_type_issue(struct hf__cel_issues *issues, struct hf__cel_inference *in, uint32_t at,
                        const char *format, const struct hf__cel_type *a,
                        const struct hf__cel_type *b) {
        /* Two types of this length still fit into the message of an issue. A type may have 2,000
         * parts. */
        struct hf__strbuf text_a = {.max = 400};
        struct hf__strbuf text_b = {.max = 400};
        const char *sign = strstr(format, "%s");
        const char *next = sign ? strstr(sign + 2, "%s") : NULL;

        assert(sign && (next != NULL) == (b != NULL));
        hf__cel_type_print(&text_a, hf__cel_substitute(in, a, true));
        if (b)
                hf__cel_type_print(&text_b, hf__cel_substitute(in, b, true));
        /* The format is not passed on, because hf__cel_issues_add takes a literal: the compiler can
         * check its arguments then. */
        hf__cel_issues_add(issues, at, "%.*s%s%.*s%s%s", (int)(sign - format), format,
                           text_a.data ? text_a.data : "",
                           next ? (int)(next - sign - 2) : (int)strlen(sign + 2), sign + 2,
                           text_b.data ? text_b.data : "", next ? next + 2 : "");
        hf__strbuf_done(&text_a);
        hf__strbuf_done(&text_b);
}

void hf__cel_no_overload(struct hf__cel_issues *issues, struct hf__cel_inference *in, uint32_t at,
                         const char *function, bool member, const struct hf__cel_type *const *types,
                         uint32_t n) {
        struct hf__strbuf text = {.max = 800};
        uint32_t i = 0;

        if (member) {
                hf__cel_type_print(&text, hf__cel_substitute(in, types[i++], true));
                hf__strbuf_putc(&text, '.');
        }
        hf__strbuf_putc(&text, '(');
        for (uint32_t first = i; i < n; i++) {
                if (i > first)
                        hf__strbuf_puts(&text, ", ");
                hf__cel_type_print(&text, hf__cel_substitute(in, types[i], true));
        }
        hf__strbuf_putc(&text, ')');
        hf__cel_issues_add(issues, at, "found no matching overload for '%s' applied to '%s'",
                           function, text.data ? text.data : "");
        hf__strbuf_done(&text);
}
