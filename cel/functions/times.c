/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of timestamps and durations: getFullYear, getHours and so on.
 *
 * Invariant: a zone is UTC, or an offset that the expression states.
 */
#include "cel/functions/tables.h"
#include "cel/timestamp.h"

/* The calendar of a timestamp in the zone of the second argument, if there is one. An error value:
 * the zone is unknown. */
static struct hf__cel_value calendar(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n, struct hf__cel_calendar *ret_calendar) {
        int64_t offset = 0;

        if (n > 1 && !hf__cel_zone_parse(args[1].as.text, args[1].n, &offset))
                return hf__cel_errorf(run, "unknown time zone %.*s",
                                      (int)(args[1].n > 100 ? 100 : args[1].n), args[1].as.text);
        *ret_calendar = hf__cel_calendar_of(args[0], offset);
        return hf__cel_null();
}

#define ACCESSOR(name, expression)                                                                 \
        static struct hf__cel_value name(struct hf__cel_run *run,                                  \
                                         const struct hf__cel_value *args, unsigned n) {           \
                struct hf__cel_calendar c;                                                         \
                struct hf__cel_value error = calendar(run, args, n, &c);                           \
                                                                                                   \
                return hf__cel_is_error(error) ? error : hf__cel_int(expression);                  \
        }

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

PART(duration_hours, args[0].as.i / 3600000000000)
PART(duration_minutes, args[0].as.i / 60000000000)
PART(duration_seconds, args[0].as.i / 1000000000)
PART(duration_milliseconds, args[0].as.i / 1000000 % 1000)

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
