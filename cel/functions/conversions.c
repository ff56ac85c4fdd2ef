/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that convert a value to another type, such as int() and string().
 *
 * Invariant: a conversion never wraps. It returns the same value, the whole part of a double, the
 * whole seconds of a timestamp, the double nearest to an integer, or an error.
 */
#include <errno.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/utf8.h"
#include "cel/functions/tables.h"
#include "cel/values/number_text.h"
#include "cel/values/timestamp.h"

static struct hf__cel_value call_same(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        return args[0];
}

static struct hf__cel_value conversion_error(struct hf__cel_run *run, const char *to) {
        return hf__cel_errorf(run, "type conversion error from 'string' to '%s'", to);
}

/* -2^63 as a double is refused, although it would fit: cel-go excludes both ends of the range,
 * because doubles near them are rounded. */
static struct hf__cel_value to_int(struct hf__cel_run *run, const struct hf__cel_value *args,
                                   unsigned n) {
        int64_t value = args[0].as.i; /* of a timestamp the seconds, of a duration nanoseconds */

        switch (args[0].kind) {
        case HF__CEL_UINT:
                if (args[0].as.u > INT64_MAX)
                        return hf__cel_error_text("integer overflow");
                return hf__cel_int((int64_t)args[0].as.u);
        case HF__CEL_DOUBLE:
                /* Written so that NaN, for which every comparison is false, is refused as well. */
                if (!(args[0].as.d > -0x1p63 && args[0].as.d < 0x1p63))
                        return hf__cel_error_text("integer overflow");
                return hf__cel_int((int64_t)args[0].as.d);
        case HF__CEL_STRING:
                if (!hf__cel_int_parse(args[0].as.text, args[0].n, &value))
                        return conversion_error(run, "int");
                return hf__cel_int(value);
        default: return hf__cel_int(value);
        }
}

/* Like a negative int, a double below 0 is refused, even between -1 and 0, where its whole part
 * would be 0. */
static struct hf__cel_value to_uint(struct hf__cel_run *run, const struct hf__cel_value *args,
                                    unsigned n) {
        uint64_t value;

        switch (args[0].kind) {
        case HF__CEL_INT:
                if (args[0].as.i < 0)
                        return hf__cel_error_text("unsigned integer overflow");
                return hf__cel_uint((uint64_t)args[0].as.i);
        case HF__CEL_DOUBLE:
                if (!(args[0].as.d >= 0 && args[0].as.d < 0x1p64))
                        return hf__cel_error_text("unsigned integer overflow");
                return hf__cel_uint((uint64_t)args[0].as.d);
        case HF__CEL_STRING:
                if (!hf__cel_uint_parse(args[0].as.text, args[0].n, &value))
                        return conversion_error(run, "uint");
                return hf__cel_uint(value);
        default: return args[0];
        }
}

/* A large integer is rounded to the nearest double, which cel-go does as well. */
static struct hf__cel_value to_double(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        double value;

        switch (args[0].kind) {
        case HF__CEL_INT: return hf__cel_double((double)args[0].as.i);
        case HF__CEL_UINT: return hf__cel_double((double)args[0].as.u);
        case HF__CEL_STRING:
                if (!hf__cel_double_parse(args[0].as.text, args[0].n, &value))
                        return conversion_error(run, "double");
                return hf__cel_double(value);
        default: return args[0];
        }
}

/* The words of Go's strconv.ParseBool. "tRUE" is none of them. */
static struct hf__cel_value to_bool(struct hf__cel_run *run, const struct hf__cel_value *args,
                                    unsigned n) {
        static const char *const words[] = {"false", "False", "FALSE", "f", "F", "0",
                                            "true",  "True",  "TRUE",  "t", "T", "1"};

        for (size_t i = 0; i < 12; i++)
                if (strlen(words[i]) == args[0].n &&
                    memcmp(words[i], args[0].as.text, args[0].n) == 0)
                        return hf__cel_bool(i >= 6);
        return conversion_error(run, "bool");
}

static struct hf__cel_value to_bytes(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n) {
        return hf__cel_bytes(args[0].as.text, args[0].n);
}

/* Every string is valid UTF-8. Functions of strings rely on that, so it is checked where bytes
 * become one. The bytes are shared, not copied. */
static struct hf__cel_value bytes_to_string(struct hf__cel_run *run,
                                            const struct hf__cel_value *args, unsigned n) {
        if (!hf__cel_work(run, args[0].n / 16))
                return hf__cel_failure(run);
        if (!hf__utf8_valid(args[0].as.text, args[0].n))
                return hf__cel_error_text("invalid UTF-8 in bytes, cannot convert to string");
        return hf__cel_string(args[0].as.text, args[0].n);
}

static struct hf__cel_value to_string(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        /* No number and no time is that long, so the text is always complete. */
        struct hf__strbuf text = {.max = 400};
        struct hf__cel_value value;

        switch (args[0].kind) {
        case HF__CEL_BOOL: hf__strbuf_puts(&text, args[0].as.boolean ? "true" : "false"); break;
        case HF__CEL_INT: hf__strbuf_printf(&text, "%lld", (long long)args[0].as.i); break;
        case HF__CEL_UINT: hf__strbuf_u64(&text, args[0].as.u); break;
        case HF__CEL_DOUBLE: hf__cel_double_print(&text, args[0].as.d); break;
        case HF__CEL_TIMESTAMP: hf__cel_timestamp_print(&text, args[0]); break;
        default: hf__cel_duration_print(&text, args[0].as.i); break;
        }
        /* No operator may absorb a lack of memory, so it is no error of the expression. */
        if (text.error != 0)
                run->failed = -ENOMEM;
        value = text.error == 0 ? hf__cel_copy_string(run, text.data, text.n)
                                : hf__cel_failure(run);
        hf__strbuf_done(&text);
        return value;
}

/* Seconds since 1970. hf__cel_timestamp() refuses those beyond the years 1 to 9999. */
static struct hf__cel_value int_to_timestamp(struct hf__cel_run *run,
                                             const struct hf__cel_value *args, unsigned n) {
        return hf__cel_timestamp(args[0].as.i, 0);
}

static struct hf__cel_value string_to_timestamp(struct hf__cel_run *run,
                                                const struct hf__cel_value *args, unsigned n) {
        struct hf__cel_value value = hf__cel_null();

        if (hf__cel_timestamp_parse(args[0].as.text, args[0].n, &value))
                return value;
        /* A time of the right form, but beyond the range, has a message of its own. */
        return hf__cel_is_error(value) ? value : conversion_error(run, "google.protobuf.Timestamp");
}

static struct hf__cel_value string_to_duration(struct hf__cel_run *run,
                                               const struct hf__cel_value *args, unsigned n) {
        int64_t nanoseconds;

        if (!hf__cel_duration_parse(args[0].as.text, args[0].n, &nanoseconds))
                return conversion_error(run, "google.protobuf.Duration");
        return hf__cel_duration(nanoseconds);
}

#define ONE HF__CEL_COST_ONE

const struct hf__cel_row hf__cel_conversions[] = {
        {"bool", "(bool) -> bool", call_same, ONE},
        {"bool", "(string) -> bool", to_bool, ONE},
        {"bytes", "(bytes) -> bytes", call_same, ONE},
        {"bytes", "(string) -> bytes", to_bytes, HF__CEL_COST_FIRST},
        {"double", "(double) -> double", call_same, ONE},
        {"double", "(int) -> double", to_double, ONE},
        {"double", "(string) -> double", to_double, ONE},
        {"double", "(uint) -> double", to_double, ONE},
        {"duration", "(duration) -> duration", call_same, ONE},
        {"duration", "(string) -> duration", string_to_duration, ONE},
        {"int", "(int) -> int", call_same, ONE},
        {"int", "(double) -> int", to_int, ONE},
        {"int", "(duration) -> int", to_int, ONE},
        {"int", "(string) -> int", to_int, ONE},
        {"int", "(timestamp) -> int", to_int, ONE},
        {"int", "(uint) -> int", to_int, ONE},
        {"string", "(string) -> string", call_same, ONE},
        {"string", "(bool) -> string", to_string, ONE},
        {"string", "(bytes) -> string", bytes_to_string, HF__CEL_COST_FIRST},
        {"string", "(double) -> string", to_string, ONE},
        {"string", "(duration) -> string", to_string, ONE},
        {"string", "(int) -> string", to_string, ONE},
        {"string", "(timestamp) -> string", to_string, ONE},
        {"string", "(uint) -> string", to_string, ONE},
        {"timestamp", "(timestamp) -> timestamp", call_same, ONE},
        {"timestamp", "(int) -> timestamp", int_to_timestamp, ONE},
        {"timestamp", "(string) -> timestamp", string_to_timestamp, ONE},
        {"uint", "(uint) -> uint", call_same, ONE},
        {"uint", "(double) -> uint", to_uint, ONE},
        {"uint", "(int) -> uint", to_uint, ONE},
        {"uint", "(string) -> uint", to_uint, ONE},
        {NULL, NULL, NULL, ONE},
};
