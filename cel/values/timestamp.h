/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Points in time and durations. A timestamp lies in the years 1 to 9999 and has nanoseconds; a
 * duration is an int64_t of nanoseconds, which is about 292 years. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/values/value.h"

struct hf__strbuf;

struct hf__cel_calendar {
        int64_t year;
        int month;       /* 0 to 11 */
        int day;         /* 0 to 30 */
        int day_of_year; /* 0 to 365 */
        int day_of_week; /* 0 is Sunday */
        int hour;
        int minute;
        int second;
};

struct hf__cel_value hf__cel_duration(int64_t nanoseconds);
/* A timestamp in UTC, or an error value: it is outside the years 1 to 9999. nanoseconds < 10^9. */
struct hf__cel_value hf__cel_timestamp(int64_t seconds, uint32_t nanoseconds);
/* The sum, in the same zone; nanoseconds may be negative. Or the same error value. */
struct hf__cel_value hf__cel_timestamp_add(struct hf__cel_value timestamp, int64_t nanoseconds);
/* A duration, or an error: it is too long. */
struct hf__cel_value hf__cel_timestamp_difference(struct hf__cel_value a, struct hf__cel_value b);

/* Reads RFC 3339 as Go does; the result keeps the zone. false: the text is malformed, and
 * *ret_timestamp is unchanged; or the time is out of range, and *ret_timestamp is an error. */
bool hf__cel_timestamp_parse(const char *text, size_t n, struct hf__cel_value *ret_timestamp);
/* Prints RFC 3339, in the zone of the timestamp. */
void hf__cel_timestamp_print(struct hf__strbuf *out, struct hf__cel_value timestamp);
/* Reads a duration as Go does: "1h30m", "-1.5s", "0". false: malformed or out of range. */
bool hf__cel_duration_parse(const char *text, size_t n, int64_t *ret_nanoseconds);
/* Prints a duration in seconds: "5400s", "-1.5s". */
void hf__cel_duration_print(struct hf__strbuf *out, int64_t nanoseconds);

/* The date and time in a zone that is `offset` seconds ahead of UTC, at most 293 years either
 * way. */
struct hf__cel_calendar hf__cel_calendar_of(struct hf__cel_value timestamp, int64_t offset);
