/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rule at the end of a file of a time zone, for the years that the file does not list:
 * "CET-1CEST,M3.5.0,M10.5.0/3", in the syntax of POSIX. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hfd_zone_day {
        /* 'M': a weekday of a month. 'J': a day of the year from 1, which never counts February 29.
         * 0: a day of the year from 0. */
        char form;
        int month;
        int week; /* 5: the last one */
        int day;
        int time; /* seconds; may be negative, or beyond the day */
};

/* Offsets are in seconds east of UTC. */
struct hfd_zone_rule {
        int standard;
        int summer;
        bool has_summer;
        struct hfd_zone_day begin; /* of summer time, in standard time */
        struct hfd_zone_day end;   /* in summer time */
};

/* false: malformed. */
bool hfd_zone_rule_parse(const char *text, size_t n, struct hfd_zone_rule *ret_rule);
/* The offset at a moment, in seconds since 1970; within the years 1 to 9999. */
int hfd_zone_rule_offset(const struct hfd_zone_rule *rule, int64_t seconds);
