/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of timestamps and durations: getFullYear, getHours and so on.
 *
 * Invariant: a time zone is UTC, an offset that the expression states, or one of the caller's
 * (struct hf__cel_zones).
 */
#include <string.h>

#include "base/quote.h"
#include "cel/functions/tables.h"
#include "cel/values/declarations.h"
#include "cel/values/timestamp.h"

#define MINUTE     INT64_C(60000000000) /* nanoseconds */
#define QUOTED_MAX 400                  /* bytes of a text that a message shows, in quotes */

static bool is_named(struct hf__cel_value text, const char *name) {
        return text.n == strlen(name) && memcmp(text.as.text, name, text.n) == 0;
}

/* Finds the offset that the zone of this name has at that time. A server's local zone is UTC. */
static struct hf__cel_value named_offset(struct hf__cel_run *run, struct hf__cel_value name,
                                         int64_t seconds, int64_t *ret_offset) {
        const char *text = name.as.text;

        *ret_offset = 0;
        if (name.n == 0 || is_named(name, "UTC") || is_named(name, "Local"))
                return hf__cel_null();
        /* A name is a path below the directory of zones. Go refuses names that lead out of it, and
         * so does this. */
        if (*text == '/' || *text == '\\' || memmem(text, name.n, "..", 2))
                return hf__cel_error_text("time: invalid location name");
        if (run->zones && run->zones->offset(run->zones->ctx, text, name.n, seconds, ret_offset))
                return hf__cel_null();
        return hf__cel_errorf(run, "unknown time zone %.*s", (int)(name.n > 100 ? 100 : name.n),
                              text);
}

/* Reads a whole number as Go's Atoi does, with its messages: a text that is malformed and too large
 * counts as malformed, unless the digits before the wrong character exceed 64 bits. */
static struct hf__cel_value take_whole(struct hf__cel_run *run, const char *text, size_t n) {
        bool negative = n > 0 && text[0] == '-';
        size_t at = negative || (n > 0 && text[0] == '+') ? 1 : 0;
        bool valid = at < n;
        bool fits = true;
        uint64_t number = 0; /* without the sign */
        char quoted[QUOTED_MAX];

        if (!hf__cel_work(run, n / 16))
                return hf__cel_failure(run);
        for (size_t i = at; valid && fits && i < n; i++) {
                valid = text[i] >= '0' && text[i] <= '9';
                fits = !valid ||
                       (!__builtin_mul_overflow(number, 10, &number) &&
                        !__builtin_add_overflow(number, (uint64_t)(text[i] - '0'), &number));
        }
        fits = fits && number <= (uint64_t)INT64_MAX + (negative ? 1 : 0);
        if (valid && fits)
                return hf__cel_int((int64_t)(negative ? 0 - number : number));
        hf__quote_bytes(text, n, quoted, sizeof quoted);
        return hf__cel_errorf(run, "strconv.Atoi: parsing %s: %s", quoted,
                              valid ? "value out of range" : "invalid syntax");
}

/* Reads the offset of a zone such as "+02:30". cel-go has no limit for it, so sums and products
 * wrap as in Go. The nanoseconds fit into 64 bits, so the offset is at most 293 years. */
static struct hf__cel_value fixed_offset(struct hf__cel_run *run, struct hf__cel_value zone,
                                         const char *colon, int64_t *ret_offset) {
        size_t n = (size_t)(colon - zone.as.text);
        struct hf__cel_value hours = take_whole(run, zone.as.text, n);
        struct hf__cel_value minutes = take_whole(run, colon + 1, zone.n - n - 1);
        uint64_t sum;
        int64_t nanoseconds;

        if (hf__cel_is_error(hours) || hf__cel_is_error(minutes))
                return hf__cel_is_error(hours) ? hours : minutes;
        /* The sign stands before the hours and counts for both. It is read from the text, because
         * the hours of "-00:30" are 0. */
        sum = (uint64_t)hours.as.i * 60;
        sum += zone.as.text[0] == '-' ? 0 - (uint64_t)minutes.as.i : (uint64_t)minutes.as.i;
        nanoseconds = (int64_t)(sum * (uint64_t)MINUTE);
        *ret_offset = nanoseconds / 1000000000;
        return hf__cel_null();
}

/* The calendar of a timestamp in the zone of the second argument, or in UTC if there is none.
 * Returns null, or an error: the zone is unknown or malformed, or the run has failed. */
static struct hf__cel_value calendar(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n, struct hf__cel_calendar *ret_calendar) {
        struct hf__cel_value error = hf__cel_null();
        const char *colon = NULL;
        int64_t offset = 0;

        if (n > 1)
                colon = memchr(args[1].as.text, ':', args[1].n);
        if (colon)
                error = fixed_offset(run, args[1], colon, &offset);
        else if (n > 1)
                error = named_offset(run, args[1], args[0].as.i, &offset);
        *ret_calendar = hf__cel_calendar_of(args[0], offset);
        return error;
}

#define ACCESSOR(name, expression)                                                                 \
        static struct hf__cel_value name(struct hf__cel_run *run,                                  \
                                         const struct hf__cel_value *args, unsigned n) {           \
                struct hf__cel_calendar c;                                                         \
                struct hf__cel_value error = calendar(run, args, n, &c);                           \
                                                                                                   \
                return hf__cel_is_error(error) ? error : hf__cel_int(expression);                  \
        }

/* By the language definition getMonth, getDayOfMonth, getDayOfYear and getDayOfWeek count from 0,
 * and getDate counts from 1. */
ACCESSOR(full_year, c.year)
ACCESSOR(month, c.month)
ACCESSOR(day_of_year, c.day_of_year)
ACCESSOR(day_of_month, c.day)
ACCESSOR(date, c.day + 1)
ACCESSOR(day_of_week, c.day_of_week)
ACCESSOR(hours, c.hour)
ACCESSOR(minutes, c.minute)
ACCESSOR(seconds, c.second)
ACCESSOR(milliseconds, args[0].n / 1000000)

#define PART(name, expression)                                                                     \
        static struct hf__cel_value name(struct hf__cel_run *run,                                  \
                                         const struct hf__cel_value *args, unsigned n) {           \
                return hf__cel_int(expression);                                                    \
        }

/* Each function returns the whole duration in its unit, as in cel-go. The language definition
 * differs for getMilliseconds: there it is only what is left of the last second. */
PART(duration_hours, args[0].as.i / 3600000000000)
PART(duration_minutes, args[0].as.i / 60000000000)
PART(duration_seconds, args[0].as.i / 1000000000)
PART(duration_milliseconds, args[0].as.i / 1000000)

#define OF_TIMESTAMP(name, function)                                                               \
        {name, ".timestamp() -> int", function, HF__CEL_COST_ONE}, {                               \
                name, ".timestamp(string) -> int", function, HF__CEL_COST_ONE                      \
        }

const struct hf__cel_row hf__cel_times[] = {
        OF_TIMESTAMP("getFullYear", full_year),
        OF_TIMESTAMP("getMonth", month),
        OF_TIMESTAMP("getDayOfYear", day_of_year),
        OF_TIMESTAMP("getDayOfMonth", day_of_month),
        OF_TIMESTAMP("getDate", date),
        OF_TIMESTAMP("getDayOfWeek", day_of_week),
        OF_TIMESTAMP("getHours", hours),
        OF_TIMESTAMP("getMinutes", minutes),
        OF_TIMESTAMP("getSeconds", seconds),
        OF_TIMESTAMP("getMilliseconds", milliseconds),
        {"getHours", ".duration() -> int", duration_hours, HF__CEL_COST_ONE},
        {"getMinutes", ".duration() -> int", duration_minutes, HF__CEL_COST_ONE},
        {"getSeconds", ".duration() -> int", duration_seconds, HF__CEL_COST_ONE},
        {"getMilliseconds", ".duration() -> int", duration_milliseconds, HF__CEL_COST_ONE},
        {NULL, NULL, NULL, HF__CEL_COST_ONE},
};
