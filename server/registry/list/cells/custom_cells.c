/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cells of custom resources in a Table.
 *
 * Invariant: a cell is what kube-apiserver shows. A column of type string shows every value, as Go
 * prints it. A column of another type shows null if the value has a different type, or is a number
 * that is too large for a column of integers.
 */
#include "server/registry/list/cells/custom_cells.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/resources/custom/json_path.h"
#include "server/resources/go_value.h"
#include "server/resources/resource.h"

/* Appends the value, as Go prints it, as a JSON string. If memory runs out, s has the error. */
static void put_string(struct hf__strbuf *s, const struct hf__json *value) {
        struct hf__strbuf text = {0};

        hfd_go_value_print(&text, value);
        if (text.error != 0)
                s->error = text.error;
        else
                hf__strbuf_json(s, text.data ? text.data : "", text.n);
        hf__strbuf_done(&text);
}

/* False: the value is not a number, or is too large. */
static bool put_integer(struct hf__strbuf *s, const struct hf__json *value) {
        int64_t integer;

        if (hf__json_integer(value, &integer)) {
                hf__strbuf_printf(s, "%" PRId64, integer);
                return true;
        }
        /* 9e18: a round number below 2^63, which a double has exactly. */
        if (!hf__json_is_number(value) || fabs(hf__json_number(value)) >= 9e18)
                return false;
        hf__strbuf_printf(s, "%" PRId64, (int64_t)hf__json_number(value));
        return true;
}

/* The time since the date. now_s: seconds since 1970. False: the value is no text. */
static bool put_date(struct hf__strbuf *s, const struct hf__json *value, int64_t now_s) {
        const char *text = hf__json_text(value);
        char age[HF__AGE_MAX] = "<invalid>";
        int64_t then;

        if (!text)
                return false;
        if (hf__time_parse(text, &then) == 0)
                hf__age_format(now_s - then, age);
        hf__strbuf_json(s, age, strlen(age));
        return true;
}

void hfd_custom_put_cell(struct hf__strbuf *s, const struct hfd_column *column,
                         const struct hf__json *object, int64_t now_s) {
        const struct hf__json *value = hfd_json_path_first(object, column->path);
        bool shown = value != NULL;

        if (!value) {
                /* null */
        } else if (strcmp(column->type, "string") == 0) {
                put_string(s, value);
        } else if (strcmp(column->type, "integer") == 0) {
                shown = put_integer(s, value);
        } else if (strcmp(column->type, "date") == 0) {
                shown = put_date(s, value, now_s);
        } else {
                shown = strcmp(column->type, "boolean") == 0 ? hf__json_is_bool(value)
                                                             : hf__json_is_number(value);
                if (shown)
                        hf__json_print(value, s);
        }
        if (!shown)
                hf__strbuf_puts(s, "null");
}
