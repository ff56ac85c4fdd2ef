/* SPDX-License-Identifier: Apache-2.0 */
/* See cel_print.h. Each kind but MAP and OBJECT has a form of its own, so that a test sees which
 * kind a value has. */
#include "cel_print.h"

#include <stdlib.h>

#include "cel/values/number_text.h"
#include "cel/values/timestamp.h"

static void print_text(struct hf__strbuf *out, struct hf__cel_value value) {
        hf__strbuf_puts(out, value.kind == HF__CEL_BYTES ? "b'" : "'");
        for (uint32_t i = 0; i < value.n; i++) {
                unsigned char c = (unsigned char)value.as.text[i];

                if (c < 32 || c == 127 || c == '\'' || c == '\\' ||
                    (c > 127 && value.kind == HF__CEL_BYTES))
                        hf__strbuf_printf(out, "\\x%02x", c);
                else
                        hf__strbuf_putc(out, (char)c);
        }
        hf__strbuf_putc(out, '\'');
}

static void print_list(struct hf__strbuf *out, const struct hf__cel_list *list) {
        hf__strbuf_putc(out, '[');
        for (size_t i = 0; i < list->n; i++) {
                if (i > 0)
                        hf__strbuf_puts(out, ", ");
                hf__cel_print(out, hf__cel_list_at(list, i));
        }
        hf__strbuf_putc(out, ']');
}

static void print_map(struct hf__strbuf *out, const struct hf__cel_map *map) {
        struct hf__cel_entry *entries = calloc(map->n + 1, sizeof *entries);
        uint32_t *order = calloc(map->n + 1, sizeof *order);

        if (!entries || !order)
                abort();
        for (size_t i = 0; i < map->n; i++)
                entries[i] = hf__cel_map_at(map, i);
        hf__cel_map_index(entries, map->n, order);
        hf__strbuf_putc(out, '{');
        for (size_t i = 0; i < map->n; i++) {
                if (i > 0)
                        hf__strbuf_puts(out, ", ");
                hf__cel_print(out, entries[order[i]].key);
                hf__strbuf_puts(out, ": ");
                hf__cel_print(out, entries[order[i]].value);
        }
        hf__strbuf_putc(out, '}');
        free(entries);
        free(order);
}

void hf__cel_print(struct hf__strbuf *out, struct hf__cel_value value) {
        switch (value.kind) {
        case HF__CEL_NULL: hf__strbuf_puts(out, "null"); break;
        case HF__CEL_BOOL: hf__strbuf_puts(out, value.as.boolean ? "true" : "false"); break;
        case HF__CEL_INT: hf__strbuf_printf(out, "%lld", (long long)value.as.i); break;
        case HF__CEL_UINT: hf__strbuf_printf(out, "%lluu", (unsigned long long)value.as.u); break;
        case HF__CEL_DOUBLE:
                hf__strbuf_puts(out, "double ");
                hf__cel_double_print(out, value.as.d);
                break;
        case HF__CEL_STRING:
        case HF__CEL_BYTES: print_text(out, value); break;
        case HF__CEL_TIMESTAMP: hf__cel_timestamp_print(out, value); break;
        case HF__CEL_DURATION: hf__cel_duration_print(out, value.as.i); break;
        case HF__CEL_LIST: print_list(out, value.as.list); break;
        case HF__CEL_MAP:
        case HF__CEL_OBJECT: print_map(out, value.as.map); break;
        case HF__CEL_OPTIONAL:
                hf__strbuf_puts(out, value.as.optional ? "optional(" : "optional.none()");
                if (value.as.optional) {
                        hf__cel_print(out, *value.as.optional);
                        hf__strbuf_putc(out, ')');
                }
                break;
        case HF__CEL_TYPE:
                hf__strbuf_printf(out, "type(%s)", hf__cel_type_name(value.as.type));
                break;
        case HF__CEL_ERROR: hf__strbuf_printf(out, "error(%s)", value.as.text); break;
        default: hf__strbuf_puts(out, "opaque"); break;
        }
}
