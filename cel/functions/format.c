/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "%s has %d".format([...]): the clauses %s, %d, %f, %e, %b, %o, %x and %X, as Kubernetes 1.36
 * writes them: %f groups digits by thousands, and %e has a power of ten in superscripts.
 *
 * Invariants: under %s each value counts as work (hf__cel_work, which has a limit), also those in
 * lists and maps, because lists can share their parts, so that a few small ones may stand for a
 * huge tree. Texts under %x count, too; the other clauses print one number. The result is no longer
 * than what the evaluation may allocate.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/strbuf.h"
#include "base/utf8.h"
#include "cel/functions/format_clause.h"
#include "cel/functions/tables.h"
#include "cel/regex/unicode.h"
#include "cel/values/number_text.h"
#include "cel/values/timestamp.h"

#define PRECISION_DEFAULT 6
/* Bytes: the digits of the largest double before the point, those after it, the sign, the point or
 * exponent, and the NUL. */
#define NUMBER_MAX (HF__CEL_PRECISION_MAX + 350)
#define DEPTH_MAX  100 /* of lists and maps in each other; the functions below recurse */

/* A call of format() that is under way. */
struct format {
        struct hf__cel_run *run;
        struct hf__strbuf out;
        struct hf__cel_value error; /* null = no error so far */
};

/* Sets the error of the call. The first error is the one that cel-go reports, so it stays. */
static void fail_format(struct format *f, const char *message, const char *detail) {
        if (!hf__cel_is_error(f->error))
                f->error = hf__cel_errorf(f->run, "%s%.200s", message, detail);
}

static const char *type_name(struct hf__cel_value value) {
        return hf__cel_type_name(hf__cel_value_type(value));
}

/* Reports that the clause does not take this value. */
static void refuse_value(struct format *f, char clause, struct hf__cel_value value) {
        if (!hf__cel_is_error(f->error))
                f->error = hf__cel_errorf(f->run, "error during formatting: %s, was given %.200s",
                                          hf__cel_format_refusal(clause), type_name(value));
}

/* A text as Go's %q writes it. */
static void append_quoted(struct format *f, const char *text, size_t n) {
        static const char from[] = "\a\b\f\n\r\t\v\\\"";
        static const char to[] = "abfnrtv\\\"";

        hf__strbuf_putc(&f->out, '"');
        for (size_t i = 0; i < n;) {
                uint32_t c = (unsigned char)text[i];
                size_t length = hf__utf8_decode(text + i, n - i, &c);
                const char *escape = c > 0 && c < 0x80 ? strchr(from, (int)c) : NULL;

                if (escape)
                        hf__strbuf_printf(&f->out, "\\%c", to[escape - from]);
                else if (length == 0 || c < ' ' || c == 0x7f)
                        hf__strbuf_printf(&f->out, "\\x%02x", c);
                else if (hf__cel_unicode_is_printed(c))
                        hf__strbuf_add(&f->out, text + i, length);
                else
                        hf__strbuf_printf(&f->out, c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
                i += length > 0 ? length : 1;
        }
        hf__strbuf_putc(&f->out, '"');
}

static void put_value(struct format *f, struct hf__cel_value value, unsigned depth, bool nested);

static void put_list(struct format *f, const struct hf__cel_list *list, unsigned depth) {
        hf__strbuf_putc(&f->out, '[');
        for (size_t i = 0; i < list->n && !hf__cel_is_error(f->error); i++) {
                if (i > 0)
                        hf__strbuf_puts(&f->out, ", ");
                put_value(f, hf__cel_list_at(list, i), depth + 1, true);
        }
        hf__strbuf_putc(&f->out, ']');
}

/* The text of one entry of a map, within the buffer that holds all entries. */
struct pair {
        size_t start;
        size_t n_key;
        size_t end;
        const char *text; /* the buffer, because qsort passes nothing else to compare_pairs */
};

static int compare_pairs(const void *a, const void *b) {
        const struct pair *x = a;
        const struct pair *y = b;
        size_t n = x->n_key < y->n_key ? x->n_key : y->n_key;
        int r = memcmp(x->text + x->start, y->text + y->start, n);

        return r != 0 ? r : (x->n_key > y->n_key) - (x->n_key < y->n_key);
}

/* Writes the entries of a map in the order of the texts of their keys. Go's maps have no order, so
 * Kubernetes sorts, and its results are the same each time. */
static void put_map(struct format *f, const struct hf__cel_map *map, unsigned depth) {
        struct hf__strbuf outer = f->out;
        struct pair *pairs = hf__cel_alloc(f->run, map->n * sizeof *pairs);

        if (!pairs)
                return;
        /* The texts of the keys decide about the order, so all entries are written to a buffer of
         * their own first. */
        f->out = (struct hf__strbuf){.max = outer.max};
        for (size_t i = 0; i < map->n; i++) {
                struct hf__cel_entry entry = hf__cel_map_at(map, i);

                pairs[i].start = f->out.n;
                put_value(f, entry.key, depth + 1, true);
                pairs[i].n_key = f->out.n - pairs[i].start;
                hf__strbuf_putc(&f->out, ':');
                put_value(f, entry.value, depth + 1, true);
                pairs[i].end = f->out.n;
        }
        for (size_t i = 0; i < map->n; i++)
                pairs[i].text = f->out.data;
        if (f->out.error == 0)
                qsort(pairs, map->n, sizeof *pairs, compare_pairs);
        hf__strbuf_putc(&outer, '{');
        for (size_t i = 0; f->out.error == 0 && i < map->n; i++) {
                hf__strbuf_puts(&outer, i > 0 ? ", " : "");
                hf__strbuf_add(&outer, f->out.data + pairs[i].start, pairs[i].end - pairs[i].start);
        }
        hf__strbuf_putc(&outer, '}');
        /* An entry that did not fit, or could not be allocated, makes the whole text fail. */
        if (outer.error == 0)
                outer.error = f->out.error;
        hf__strbuf_done(&f->out);
        f->out = outer;
}

/* Writes a time or a duration; nested: as the call that would make it. */
static void put_time(struct format *f, struct hf__cel_value value, bool nested) {
        bool duration = value.kind == HF__CEL_DURATION;

        if (nested)
                hf__strbuf_puts(&f->out, duration ? "duration(\"" : "timestamp(\"");
        if (duration)
                hf__cel_duration_print(&f->out, value.as.i);
        else
                hf__cel_timestamp_print(&f->out, value);
        if (nested)
                hf__strbuf_puts(&f->out, "\")");
}

/* In a list or a map a value is written like a literal. Infinities and NaN have none, so they are
 * quoted. */
static void put_double(struct format *f, double value, bool nested) {
        bool quoted = nested && !isfinite(value);

        if (quoted)
                hf__strbuf_putc(&f->out, '"');
        if (nested && isfinite(value))
                hf__strbuf_printf(&f->out, "%.6f", value);
        else
                hf__cel_double_print(&f->out, value);
        if (quoted)
                hf__strbuf_putc(&f->out, '"');
}

/* Bytes are shown as the text that they encode. If they are not valid UTF-8, there is none, and the
 * call fails with cel-go's message. */
static void put_text(struct format *f, struct hf__cel_value value, bool nested) {
        static const char message[] =
                "error during formatting: could not convert argument \"invalid UTF-8 in bytes, "
                "cannot convert to string\" to string";

        if (!hf__utf8_valid(value.as.text, value.n)) {
                fail_format(f, message, "");
                return;
        }
        if (nested && value.kind == HF__CEL_BYTES)
                hf__strbuf_putc(&f->out, 'b');
        if (nested)
                append_quoted(f, value.as.text, value.n);
        else
                hf__strbuf_add(&f->out, value.as.text, value.n);
}

/* A value as %s shows it; nested: within a list or a map, where it looks like a literal. */
static void put_value(struct format *f, struct hf__cel_value value, unsigned depth, bool nested) {
        bool text = value.kind == HF__CEL_STRING || value.kind == HF__CEL_BYTES;

        if (depth > DEPTH_MAX)
                f->run->work = f->run->work_limit; /* the next line then fails the run */
        if (!hf__cel_work(f->run, 1 + (text ? value.n / 16 : 0)) || hf__cel_is_error(f->error))
                return;
        switch (value.kind) {
        case HF__CEL_NULL: hf__strbuf_puts(&f->out, "null"); break;
        case HF__CEL_BOOL: hf__strbuf_puts(&f->out, value.as.boolean ? "true" : "false"); break;
        case HF__CEL_INT: hf__strbuf_printf(&f->out, "%lld", (long long)value.as.i); break;
        case HF__CEL_UINT: hf__strbuf_u64(&f->out, value.as.u); break;
        case HF__CEL_DOUBLE: put_double(f, value.as.d, nested); break;
        case HF__CEL_STRING:
        case HF__CEL_BYTES: put_text(f, value, nested); break;
        case HF__CEL_TIMESTAMP:
        case HF__CEL_DURATION: put_time(f, value, nested); break;
        case HF__CEL_LIST: put_list(f, value.as.list, depth); break;
        case HF__CEL_MAP: put_map(f, value.as.map, depth); break;
        case HF__CEL_TYPE: hf__strbuf_puts(&f->out, hf__cel_type_name(value.as.type)); break;
        case HF__CEL_ERROR: f->error = value; break;
        default:
                if (nested)
                        fail_format(f, "error during formatting: no formatting function for ",
                                    type_name(value));
                else
                        refuse_value(f, 's', value);
        }
}

/* Writes a decimal number with a comma between each three digits before the point. */
static void put_grouped(struct format *f, const char *text) {
        size_t whole = strcspn(text, ".");
        size_t sign = text[0] == '-' ? 1 : 0;

        for (size_t i = 0; i < whole; i++) {
                if (i > sign && (whole - i) % 3 == 0)
                        hf__strbuf_putc(&f->out, ',');
                hf__strbuf_putc(&f->out, text[i]);
        }
        hf__strbuf_puts(&f->out, text + whole);
}

/* Writes the text "1.052000e+03" as 1.052000, a multiplication sign, 10, and 03 in superscripts.
 * Changes the text. */
static void put_scientific(struct format *f, char *text) {
        static const char *const digits[] = {"\xe2\x81\xb0", "\xc2\xb9",     "\xc2\xb2",
                                             "\xc2\xb3",     "\xe2\x81\xb4", "\xe2\x81\xb5",
                                             "\xe2\x81\xb6", "\xe2\x81\xb7", "\xe2\x81\xb8",
                                             "\xe2\x81\xb9"};
        char *exponent = strchr(text, 'e');

        *exponent++ = 0;
        hf__strbuf_printf(&f->out, "%s\u00d710", text);
        if (*exponent++ == '-')
                hf__strbuf_puts(&f->out, "\xe2\x81\xbb");
        for (; *exponent; exponent++)
                hf__strbuf_puts(&f->out, digits[*exponent - '0']);
}

/* Reads the argument of %f or %e: a double, or the text of NaN or an infinity. The texts are
 * accepted because CEL has no literals for these numbers. */
static bool take_double(struct hf__cel_value value, double *ret_value) {
        static const struct {
                const char *text;
                double value;
        } names[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};

        *ret_value = value.as.d;
        for (size_t i = 0; value.kind == HF__CEL_STRING && i < 3; i++)
                if (value.n == strlen(names[i].text) &&
                    memcmp(value.as.text, names[i].text, value.n) == 0) {
                        *ret_value = names[i].value;
                        return true;
                }
        return value.kind == HF__CEL_DOUBLE;
}

/* Writes %f or %e. In Kubernetes the number in %.3e is the width, so %e always has six digits after
 * the point. precision -1: none is given. */
static void put_number(struct format *f, struct hf__cel_value value, char clause, int precision) {
        char text[NUMBER_MAX];
        size_t n = f->out.n;
        size_t width = 0;
        double number;

        if (!take_double(value, &number)) {
                refuse_value(f, clause, value);
                return;
        }
        if (precision < 0)
                precision = PRECISION_DEFAULT;
        /* As in Kubernetes zero has no sign, but a number that is rounded to zero keeps its own. */
        if (number == 0)
                number = 0;
        if (isnan(number)) {
                hf__strbuf_puts(&f->out, "NaN");
        } else if (isinf(number)) {
                hf__strbuf_puts(&f->out, number > 0 ? "\xe2\x88\x9e" : "-\xe2\x88\x9e");
        } else {
                snprintf(text, sizeof text, clause == 'f' ? "%.*f" : "%.*e",
                         clause == 'f' ? precision : PRECISION_DEFAULT, number);
                if (clause == 'f')
                        put_grouped(f, text);
                else
                        put_scientific(f, text);
        }
        if (clause == 'f' || f->out.error != 0)
                return;
        width = hf__utf8_count(f->out.data + n, f->out.n - n);
        if ((size_t)precision > width) {
                size_t pad = (size_t)precision - width;
                size_t length = f->out.n - n;

                for (size_t i = 0; i < pad; i++)
                        hf__strbuf_putc(&f->out, ' ');
                if (f->out.error == 0) {
                        memmove(f->out.data + n + pad, f->out.data + n, length);
                        memset(f->out.data + n, ' ', pad);
                }
        }
}

/* Writes %d, %b, %o, %x or %X of an integer: its digits in this base, without a prefix. */
static void put_integer(struct format *f, struct hf__cel_value value, unsigned base, bool upper) {
        bool negative = value.kind == HF__CEL_INT && value.as.i < 0;
        /* The subtraction is unsigned, because -INT64_MIN would overflow. */
        uint64_t left = negative ? 0 - value.as.u : value.as.u;
        char text[65]; /* 64 binary digits and a sign */
        size_t at = sizeof text;

        do {
                text[--at] = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[left % base];
                left /= base;
        } while (left > 0);
        if (negative)
                text[--at] = '-';
        hf__strbuf_add(&f->out, text + at, sizeof text - at);
}

static bool is_integer(struct hf__cel_value value) {
        return value.kind == HF__CEL_INT || value.kind == HF__CEL_UINT;
}

/* Of a text the bytes are shown, and not the code points of its characters. */
static void put_hex(struct format *f, struct hf__cel_value value, bool upper) {
        if (is_integer(value)) {
                put_integer(f, value, 16, upper);
        } else if (value.kind == HF__CEL_STRING || value.kind == HF__CEL_BYTES) {
                if (!hf__cel_work(f->run, value.n / 8))
                        return;
                for (size_t i = 0; i < value.n; i++)
                        hf__strbuf_printf(&f->out, upper ? "%02X" : "%02x",
                                          (unsigned char)value.as.text[i]);
        } else {
                refuse_value(f, 'x', value);
        }
}

static void put_clause(struct format *f, struct hf__cel_value value, char clause, int precision) {
        switch (clause) {
        case 's': put_value(f, value, 0, false); break;
        case 'f':
        case 'e': put_number(f, value, clause, precision); break;
        case 'x':
        case 'X': put_hex(f, value, clause == 'X'); break;
        case 'b':
                if (value.kind == HF__CEL_BOOL)
                        hf__strbuf_putc(&f->out, value.as.boolean ? '1' : '0');
                else if (is_integer(value))
                        put_integer(f, value, 2, false);
                else
                        refuse_value(f, clause, value);
                break;
        default:
                if (is_integer(value))
                        put_integer(f, value, clause == 'd' ? 10 : 8, false);
                else
                        refuse_value(f, clause, value);
        }
}

/* Reads the clause after a '%'. Returns its length; 0: it is malformed or its precision is too
 * large, and f->error says why. */
static size_t take_clause(struct format *f, const char *text, size_t n, int *ret_precision) {
        char message[400];
        size_t end = hf__cel_format_clause(text, n, ret_precision, message, sizeof message);

        if (end > 0 && *ret_precision > HF__CEL_PRECISION_MAX) {
                end = 0;
                snprintf(message, sizeof message,
                         "could not parse formatting clause: error while parsing precision: it is "
                         "too large");
        }
        if (end == 0)
                f->error = hf__cel_errorf(f->run, "%s", message);
        return end;
}

/* Writes the format with its clauses replaced. Arguments beyond the last clause are ignored here;
 * validate.c refuses them in literals. */
static void put_clauses(struct format *f, struct hf__cel_value format,
                        const struct hf__cel_list *args) {
        size_t n_used = 0;

        for (size_t i = 0; i < format.n && !hf__cel_is_error(f->error);) {
                const char *text = format.as.text + i;
                const char *clause = memchr(text, '%', format.n - i);
                size_t n = clause ? (size_t)(clause - text) : format.n - i;
                int precision;

                hf__strbuf_add(&f->out, text, n);
                i += n + 1;
                if (!clause)
                        break;
                /* %% is a percent sign, and takes no argument. */
                if (i < format.n && clause[1] == '%') {
                        hf__strbuf_putc(&f->out, '%');
                        i++;
                        continue;
                }
                if (n_used == args->n)
                        f->error = hf__cel_errorf(f->run, "index %zu out of range", n_used);
                else if (i == format.n)
                        f->error = hf__cel_error_text("unexpected end of string");
                if (hf__cel_is_error(f->error))
                        break;
                n = take_clause(f, clause + 1, format.n - i, &precision);
                if (n > 0)
                        put_clause(f, hf__cel_list_at(args, n_used++), clause[n], precision);
                i += n;
        }
}

static struct hf__cel_value call_format(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        struct format f = {.run = run, .error = hf__cel_null()};
        struct hf__cel_value result;

        /* The text is built outside of the arena, and its length is not known before. So it may
         * become as long as what the limit of the run leaves; n_bytes never exceeds that limit. The
         * limit that evaluations share is only checked for the finished text. The length of a value
         * has 32 bits. A max of 0 would mean that there is no limit. */
        f.out.max = run->bytes_limit - run->n_bytes < UINT32_MAX ? run->bytes_limit - run->n_bytes
                                                                 : UINT32_MAX;
        if (f.out.max == 0) {
                (void)hf__cel_reserve(run, 1); /* fails the run */
                return hf__cel_failure(run);
        }
        put_clauses(&f, args[0], args[1].as.list);
        if (f.out.error == -ENOMEM)
                run->failed = -ENOMEM;
        else if (f.out.error != 0)
                (void)hf__cel_reserve(run, SIZE_MAX / 4); /* more than any limit: fails the run */
        if (run->failed != 0)
                result = hf__cel_failure(run);
        else if (hf__cel_is_error(f.error))
                result = f.error;
        else
                result = hf__cel_copy_string(run, f.out.data, f.out.n);
        hf__strbuf_done(&f.out);
        return result;
}

const struct hf__cel_row hf__cel_formats[] = {
        {"format", ".string(list(dyn)) -> string", call_format, HF__CEL_COST_FIRST},
        {NULL, NULL, NULL, HF__CEL_COST_ONE},
};
