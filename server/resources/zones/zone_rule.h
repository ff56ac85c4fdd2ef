/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rule at the end of a file of a time zone, for the years that the file does not list:
 * "CET-1CEST,M3.5.0,M10.5.0/3", in the syntax of POSIX. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The day and the time of a change, in each year. */
struct hfd_zone_day {
        /* 'M': a weekday of a month. 'J': a day of the year from 1, which never counts February 29.
         * 0: a day of the year from 0. */
        char form;
        int month; /* of 'M': 1 to 12 */
        int week;  /* of 'M': 1 to 5, where 5 is the last one of the month */
        int day;   /* of 'M': the weekday, 0 = Sunday; otherwise the day of the year */
        int time;  /* seconds; may be negative, or beyond the day */
};

/* Offsets are in seconds east of UTC. */
struct hfd_zone_rule {
        int standard;
        int summer;      /* meaningless without has_summer */
        bool has_summer; /* the time changes twice a year; otherwise begin and end are zero */
        struct hfd_zone_day begin; /* of summer time, in standard time */
        struct hfd_zone_day end;   /* in summer time */
};

/* Parses text of n bytes, which is borrowed. False: malformed. */
bool hfd_zone_rule_parse(const char *text, size_t n, struct hfd_zone_rule *ret_rule);
/* The offset at a moment, in seconds since 1970; within the years 1 to 9999. */
int hfd_zone_rule_offset(const struct hfd_zone_rule *rule, int64_t seconds);
