/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints JSON values as Go does.
 *
 * Invariant: a text is printed as it is, without quotes, so the output cannot be parsed again.
 */
#include "server/resources/go_value.h"

#include "base/json.h"

void hfd_go_value_print(struct hf__strbuf *s, const struct hf__json *value) {
        const char *separator = "";
        bool is_object = hf__json_is_object(value);

        if (hf__json_is_string(value)) {
                hf__strbuf_puts(s, hf__json_text(value));
        } else if (is_object || hf__json_is_array(value)) {
                hf__strbuf_puts(s, is_object ? "map[" : "[");
                for (const struct hf__json *m = hf__json_first(value); m; m = hf__json_next(m)) {
                        hf__strbuf_puts(s, separator);
                        if (is_object)
                                hf__strbuf_printf(s, "%s:", hf__json_key(m));
                        hfd_go_value_print(s, m);
                        separator = " ";
                }
                hf__strbuf_putc(s, ']');
        } else if (hf__json_is_null(value)) {
                hf__strbuf_puts(s, "<nil>");
        } else {
                hf__json_print(value, s);
        }
}
