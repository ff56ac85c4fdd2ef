/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and applies the rule of a time zone, which is written like the variable TZ in POSIX:
 *
 *      CET-1CEST,M3.5.0,M10.5.0/3
 *
 * Standard time is called CET and is an hour east of UTC: POSIX counts to the west, so it writes
 * -1. Summer time is called CEST; without an offset of its own it is an hour more. It begins on the
 * last Sunday of March (month 3, week 5, day 0) at 2:00, as no other time is given, and ends on the
 * last Sunday of October at 3:00 in summer time.
 *
 * Invariant: every number has a limit when it is read, so that no sum overflows.
 */
#include "server/resources/zones/zone_rule.h"

#include <assert.h>

#define DAY 86400 /* seconds */

struct reader {
        const char *at;
        const char *end;
};

static bool take_char(struct reader *r, char c) {
        if (r->at == r->end || *r->at != c)
                return false;
        r->at++;
        return true;
}

/* Reads digits. False: there are none, or the number is not from min to max. */
static bool take_number(struct reader *r, int min, int max, int *ret_number) {
        const char *start = r->at;

        *ret_number = 0;
        for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
                *ret_number = *ret_number * 10 + (*r->at - '0');
                if (*ret_number > max)
                        return false;
        }
        return r->at > start && *ret_number >= min;
}

/* Skips the name of an offset: "CET" or "<+0330>". */
static bool skip_name(struct reader *r) {
        const char *start = r->at;

        if (take_char(r, '<')) {
                while (r->at < r->end && *r->at != '>')
                        r->at++;
                return take_char(r, '>');
        }
        while (r->at < r->end &&
               ((*r->at >= 'A' && *r->at <= 'Z') || (*r->at >= 'a' && *r->at <= 'z')))
                r->at++;
        return r->at - start >= 3;
}

/* Reads hours, or hours with minutes, or with minutes and seconds: "-1", "+2:30:15". *ret_seconds:
 * all of it in seconds. False: malformed, or the hours are more than max_hours. */
static bool take_time(struct reader *r, int max_hours, int *ret_seconds) {
        bool negative = take_char(r, '-');
        int hours;
        int minutes = 0;
        int seconds = 0;

        if (!negative)
                take_char(r, '+');
        if (!take_number(r, 0, max_hours, &hours))
                return false;
        if (take_char(r, ':')) {
                if (!take_number(r, 0, 59, &minutes))
                        return false;
                if (take_char(r, ':') && !take_number(r, 0, 59, &seconds))
                        return false;
        }
        *ret_seconds = (hours * 3600 + minutes * 60 + seconds) * (negative ? -1 : 1);
        return true;
}

/* Reads one of the days on which the time changes, with its comma: ",M3.5.0/2", ",J60" or ",59". */
static bool take_day(struct reader *r, struct hfd_zone_day *day) {
        *day = (struct hfd_zone_day){.time = 2 * 3600};
        if (!take_char(r, ','))
                return false;
        if (take_char(r, 'M')) {
                day->form = 'M';
                if (!take_number(r, 1, 12, &day->month) || !take_char(r, '.') ||
                    !take_number(r, 1, 5, &day->week) || !take_char(r, '.') ||
                    !take_number(r, 0, 6, &day->day))
                        return false;
        } else {
                day->form = take_char(r, 'J') ? 'J' : 0;
                if (!take_number(r, day->form == 'J' ? 1 : 0, 365, &day->day))
                        return false;
        }
        /* RFC 8536 allows a week: 167 hours, before or after the day. */
        return !take_char(r, '/') || take_time(r, 167, &day->time);
}

bool hfd_zone_rule_parse(const char *text, size_t n, struct hfd_zone_rule *ret_rule) {
        struct reader r = {.at = text, .end = text + n};
        int west;

        assert(text || n == 0);
        *ret_rule = (struct hfd_zone_rule){0};
        if (!skip_name(&r) || !take_time(&r, 24, &west))
                return false;
        ret_rule->standard = -west;
        ret_rule->summer = -west + 3600;
        if (r.at == r.end)
                return true;
        ret_rule->has_summer = true;
        if (!skip_name(&r))
                return false;
        if (r.at < r.end && *r.at != ',') {
                if (!take_time(&r, 24, &west))
                        return false;
                ret_rule->summer = -west;
        }
        return take_day(&r, &ret_rule->begin) && take_day(&r, &ret_rule->end) && r.at == r.end;
}

static bool is_leap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

/* Days from 1970 to January 1 of the year. From year 1 to 1970 there are 719,162. The local time of
 * a moment in the year 1 may be in the year 0, for which the result is a day late. That is good
 * enough for the last hours of its December 31. */
static int64_t days_before(int64_t year) {
        int64_t y = year - 1;

        return y * 365 + y / 4 - y / 100 + y / 400 - 719162;
}

/* The year of a day, given as days since 1970. The first guess takes all years as leap years, which
 * is wrong by about one year in 500, so the loops take few steps. */
static int64_t year_of(int64_t days) {
        int64_t year = 1970 + days / 366;

        while (days_before(year + 1) <= days)
                year++;
        while (days_before(year) > days)
                year--;
        return year;
}

/* The day of a year on which the change happens, counted from 0. January 1, 1970 was a Thursday,
 * which is weekday 4. */
static int day_of(const struct hfd_zone_day *day, int64_t year) {
        static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
        bool leap = is_leap(year);
        int first;
        int length;
        int weekday;
        int result;

        if (day->form == 0)
                return day->day;
        if (day->form == 'J')
                return day->day - 1 + (leap && day->day > 59 ? 1 : 0);
        first = before[day->month - 1] + (leap && day->month > 2 ? 1 : 0);
        length = before[day->month] - before[day->month - 1] + (leap && day->month == 2 ? 1 : 0);
        weekday = (int)((((days_before(year) + first + 4) % 7) + 7) % 7);
        result = (day->day - weekday + 7) % 7 + (day->week - 1) * 7;
        if (result >= length)
                result -= 7;
        return first + result;
}

/* When the change happens in a year, in seconds since 1970. offset: that of the time in which
 * day->time is given. */
static int64_t moment(const struct hfd_zone_day *day, int64_t year, int offset) {
        return (days_before(year) + day_of(day, year)) * DAY + day->time - offset;
}

/* In the southern hemisphere summer time begins late in a year and ends early in the next one. So
 * there begin is after end, and the time between the two changes of a year is the winter. */
int hfd_zone_rule_offset(const struct hfd_zone_rule *rule, int64_t seconds) {
        int64_t local = seconds + rule->standard;
        int64_t days = local / DAY - (local % DAY < 0 ? 1 : 0);
        int64_t year = year_of(days);
        int64_t begin;
        int64_t end;
        bool summer;

        if (!rule->has_summer)
                return rule->standard;
        begin = moment(&rule->begin, year, rule->standard);
        end = moment(&rule->end, year, rule->summer);
        if (begin < end)
                summer = seconds >= begin && seconds < end;
        else
                summer = seconds >= begin || seconds < end;
        return summer ? rule->summer : rule->standard;
}
