/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints values as JSON. The functions are declared in json.h.
 *
 * Invariants: a finite double that is printed here reads back as an equal double, and a whole
 * number of at most 21 digits has no exponent. cJSON's own printer is not used, because it writes
 * large whole numbers as "1e+15", which Kubernetes' clients refuse for integer fields, and because
 * it needs an additional copy of the text.
 */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_item.h"
#include "base/strbuf.h"

/* Prints a number that has a fraction or is too large to be printed as a whole number. */
static void print_shortest(double value, struct hf__strbuf *out) {
        char text[40];

        /* The fewest digits, but at least 15, that read back as the same value. %g omits zeros at
         * the end. */
        for (int digits = 15; digits <= 17; digits++) {
                (void)snprintf(text, sizeof text, "%.*g", digits, value);
                if (strtod(text, NULL) == value)
                        break;
        }
        /* printf uses the decimal point of the process's locale, which may be a comma. */
        for (char *p = text; *p != '\0'; p++)
                if (*p == ',')
                        *p = '.';
        hf__strbuf_puts(out, text);
}

static void print_number(double value, struct hf__strbuf *out) {
        if (!isfinite(value)) /* JSON has no NaN and no infinity */
                hf__strbuf_puts(out, "null");
        else if (value >= 0 && value < 0x1p53 && value == (double)(uint64_t)value)
                hf__strbuf_u64(out, (uint64_t)value); /* the most frequent case */
        else if (value == floor(value) && fabs(value) < 1e21)
                hf__strbuf_printf(out, "%.0f", value);
        else
                print_shortest(value, out);
}

static void print_string(const char *text, struct hf__strbuf *out) {
        hf__strbuf_json(out, text, strlen(text));
}

static void print_new_line(struct hf__strbuf *out, int depth) {
        hf__strbuf_putc(out, '\n');
        for (int i = 0; i < depth; i++)
                hf__strbuf_puts(out, "  ");
}

static void print_item(const cJSON *c, struct hf__strbuf *out, int depth);

/* Prints an array or an object. */
static void print_container(const cJSON *c, struct hf__strbuf *out, int depth) {
        bool is_object = hf__json_item_is(c, cJSON_Object), pretty = depth >= 0;
        int inner = pretty ? depth + 1 : depth;

        hf__strbuf_putc(out, is_object ? '{' : '[');
        for (const cJSON *m = c->child; m && out->error == 0; m = m->next) {
                if (m != c->child)
                        hf__strbuf_putc(out, ',');
                if (pretty)
                        print_new_line(out, inner);
                if (is_object) {
                        print_string(m->string ? m->string : "", out);
                        hf__strbuf_add(out, ": ", pretty ? 2 : 1);
                }
                print_item(m, out, inner);
        }
        if (pretty && c->child)
                print_new_line(out, depth);
        hf__strbuf_putc(out, is_object ? '}' : ']');
}

/* depth: the current indentation; -1 = print on one line. The recursion is as deep as the value.
 * HF__JSON_LEVELS_MAX bounds parsed values, and values built by our own code are shallow. */
static void print_item(const cJSON *c, struct hf__strbuf *out, int depth) {
        switch (c->type & 0xff) {
        case cJSON_String: print_string(c->valuestring, out); break;
        case cJSON_Raw: hf__strbuf_puts(out, c->valuestring); break;
        case cJSON_Number:
                if (c->valuestring) /* digits (json_number.c) */
                        hf__strbuf_puts(out, c->valuestring);
                else
                        print_number(c->valuedouble, out);
                break;
        case cJSON_Array:
        case cJSON_Object: print_container(c, out, depth); break;
        case cJSON_True: hf__strbuf_puts(out, "true"); break;
        case cJSON_False: hf__strbuf_puts(out, "false"); break;
        default: hf__strbuf_puts(out, "null");
        }
}

void hf__json_print(const struct hf__json *json, struct hf__strbuf *out) {
        if (json)
                print_item(hf__json_item(json), out, -1);
}

void hf__json_print_pretty(const struct hf__json *json, struct hf__strbuf *out) {
        if (json)
                print_item(hf__json_item(json), out, 0);
}
