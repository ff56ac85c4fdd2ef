/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes with the timestamps and durations of CEL, parses and prints them, and converts a
 * timestamp to a calendar date.
 *
 * In the computation of dates a year begins in March, so that the leap day is its last day and the
 * number of days before a month is the same in all years. 400 such years are an era.
 *
 * Invariants: days are counted in the proleptic Gregorian calendar. A sum that a client's number
 * takes part in is checked, unless the limits of its parts exclude an overflow.
 */
#include "cel/values/timestamp.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

/* The language definition takes the range of google.protobuf.Timestamp: the years 1 to 9999. */
#define SECONDS_MIN  INT64_C(-62135596800) /* 0001-01-01T00:00:00Z */
#define SECONDS_MAX  INT64_C(253402300799) /* 9999-12-31T23:59:59Z */
#define NANOSECONDS  INT64_C(1000000000)
#define DAY_SECONDS  INT64_C(86400)
#define ERA_DAYS     INT64_C(146097) /* of 400 years */
#define DAYS_TO_1970 INT64_C(719468) /* from 0000-03-01 */

struct hf__cel_value hf__cel_duration(int64_t nanoseconds) {
        return (struct hf__cel_value){.kind = HF__CEL_DURATION, .as.i = nanoseconds};
}

struct hf__cel_value hf__cel_timestamp(int64_t seconds, uint32_t nanoseconds) {
        assert(nanoseconds < NANOSECONDS);
        if (seconds < SECONDS_MIN || seconds > SECONDS_MAX)
                return hf__cel_error_text("timestamp overflow");
        return (struct hf__cel_value){.kind = HF__CEL_TIMESTAMP, .n = nanoseconds, .as.i = seconds};
}

/* Divides, and rounds down. */
static int64_t floor_divide(int64_t a, int64_t b) {
        int64_t quotient = a / b;

        return a % b < 0 ? quotient - 1 : quotient;
}

/* Within the range of timestamps the seconds of any duration can be added without an overflow;
 * hf__cel_timestamp() then checks the result. */
struct hf__cel_value hf__cel_timestamp_add(struct hf__cel_value timestamp, int64_t nanoseconds) {
        int64_t seconds = floor_divide(nanoseconds, NANOSECONDS);
        int64_t rest = nanoseconds % NANOSECONDS;
        struct hf__cel_value sum;

        rest += (rest < 0 ? NANOSECONDS : 0) + timestamp.n;
        seconds += timestamp.as.i + rest / NANOSECONDS;
        sum = hf__cel_timestamp(seconds, (uint32_t)(rest % NANOSECONDS));
        sum.zone = timestamp.zone;
        return sum;
}

struct hf__cel_value hf__cel_timestamp_difference(struct hf__cel_value a, struct hf__cel_value b) {
        int64_t seconds = a.as.i - b.as.i;
        int64_t nanoseconds = (int64_t)a.n - (int64_t)b.n;

        /* If the two parts have different signs, the product may overflow although the sum would
         * not: that is an error in cel-go, too. */
        if (__builtin_mul_overflow(seconds, NANOSECONDS, &seconds) ||
            __builtin_add_overflow(seconds, nanoseconds, &seconds))
                return hf__cel_error_text("integer overflow");
        return hf__cel_duration(seconds);
}

/* Days from 1970-01-01 to a date; month 1 to 12. The year is taken to begin in March, so the leap
 * day is its last day, and the months before it have a fixed pattern of lengths: 153 days in five
 * months. */
static int64_t days_of(int64_t year, int64_t month, int64_t day) {
        int64_t shifted = month > 2 ? month - 3 : month + 9; /* March is the first */
        int64_t era;
        int64_t year_of_era;

        year -= month <= 2 ? 1 : 0;
        era = floor_divide(year, 400);
        year_of_era = year - era * 400;
        return era * ERA_DAYS + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
               (153 * shifted + 2) / 5 + day - 1 - DAYS_TO_1970;
}

/* The inverse of days_of. The leap days of the era before the day are subtracted: one for each 1460
 * days, but none at the end of a century (36,524 days) unless the era ends with it (146,096). The
 * rest is a number of years of 365 days. 1970 began on a Thursday, which is day 4 of the week. */
struct hf__cel_calendar hf__cel_calendar_of(struct hf__cel_value timestamp, int64_t offset) {
        int64_t seconds = timestamp.as.i + offset;
        int64_t days = floor_divide(seconds, DAY_SECONDS);
        int64_t rest = seconds - days * DAY_SECONDS;
        int64_t era = floor_divide(days + DAYS_TO_1970, ERA_DAYS);
        int64_t day = days + DAYS_TO_1970 - era * ERA_DAYS;
        int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
        int64_t in_year = day - (365 * year + year / 4 - year / 100);
        int64_t shifted = (5 * in_year + 2) / 153;
        int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
        int64_t civil_year = year + era * 400 + (month <= 2 ? 1 : 0);

        return (struct hf__cel_calendar){
                .year = civil_year,
                .month = (int)(month - 1),
                .day = (int)(in_year - (153 * shifted + 2) / 5),
                .day_of_year = (int)(days - days_of(civil_year, 1, 1)),
                .day_of_week = (int)(((days + 4) % 7 + 7) % 7),
                .hour = (int)(rest / 3600),
                .minute = (int)(rest / 60 % 60),
                .second = (int)(rest % 60),
        };
}

/* Exactly n digits at *text. -1: there are fewer. */
static int64_t take_digits(const char **text, const char *end, int n) {
        int64_t value = 0;

        for (; n > 0; n--) {
                if (*text == end || **text < '0' || **text > '9')
                        return -1;
                value = value * 10 + (*(*text)++ - '0');
        }
        return value;
}

static bool take_char(const char **text, const char *end, char c) {
        if (*text == end || **text != c)
                return false;
        (*text)++;
        return true;
}

/* A fraction after its dot or comma, as nanoseconds; further digits are dropped. Go reads
 * nanoseconds, too, and drops what is finer. */
static bool take_fraction(const char **text, const char *end, uint32_t *ret_nanoseconds) {
        uint32_t unit = NANOSECONDS / 10;
        const char *start = *text;

        *ret_nanoseconds = 0;
        for (; *text < end && **text >= '0' && **text <= '9'; (*text)++) {
                *ret_nanoseconds += (uint32_t)(**text - '0') * unit;
                unit /= 10;
        }
        return *text > start;
}

/* An offset from UTC, in minutes. Go's parser allows up to 24 hours and 60 minutes. */
static bool take_offset(const char **text, const char *end, int64_t *ret_minutes) {
        bool west;
        int64_t hours;
        int64_t minutes;

        *ret_minutes = 0;
        if (take_char(text, end, 'Z'))
                return true;
        west = take_char(text, end, '-');
        if (!west && !take_char(text, end, '+'))
                return false;
        hours = take_digits(text, end, 2);
        if (hours < 0 || hours > 24 || !take_char(text, end, ':'))
                return false;
        minutes = take_digits(text, end, 2);
        if (minutes < 0 || minutes > 60)
                return false;
        *ret_minutes = (hours * 60 + minutes) * (west ? -1 : 1);
        return true;
}

/* One digit or two: Go's parser does not insist on the zero. */
static int64_t take_hour(const char **text, const char *end) {
        const bool short_form = end - *text > 1 && (*text)[1] == ':';

        return take_digits(text, end, short_form ? 1 : 2);
}

static int days_in_month(int64_t year, int64_t month) {
        static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
        bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

        return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

bool hf__cel_timestamp_parse(const char *text, size_t n, struct hf__cel_value *ret_timestamp) {
        const char *end = text + n;
        int64_t year = take_digits(&text, end, 4);
        int64_t month = take_char(&text, end, '-') ? take_digits(&text, end, 2) : -1;
        int64_t day = take_char(&text, end, '-') ? take_digits(&text, end, 2) : -1;
        int64_t hour;
        int64_t minute;
        int64_t second;
        int64_t zone;
        uint32_t nanoseconds = 0;

        if (!take_char(&text, end, 'T'))
                return false;
        hour = take_hour(&text, end);
        minute = take_char(&text, end, ':') ? take_digits(&text, end, 2) : -1;
        second = take_char(&text, end, ':') ? take_digits(&text, end, 2) : -1;
        /* Go's parser has no leap seconds, so 60 is refused. */
        if (year < 0 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) ||
            hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59)
                return false;
        if ((take_char(&text, end, '.') || take_char(&text, end, ',')) &&
            !take_fraction(&text, end, &nanoseconds))
                return false;
        if (!take_offset(&text, end, &zone) || text != end)
                return false;
        *ret_timestamp = hf__cel_timestamp(days_of(year, month, day) * DAY_SECONDS + hour * 3600 +
                                                   (minute - zone) * 60 + second,
                                           nanoseconds);
        ret_timestamp->zone = (int16_t)zone;
        return !hf__cel_is_error(*ret_timestamp);
}

/* Prints a dot and the digits of the nanoseconds, without zeros at the end. Prints nothing for 0.
 */
static void print_fraction(struct hf__strbuf *out, uint32_t nanoseconds) {
        char digits[16];
        int n = 9;

        if (nanoseconds == 0)
                return;
        /* The remainder is the number itself, but shows the compiler that nine digits suffice. */
        snprintf(digits, sizeof digits, "%09u", nanoseconds % 1000000000U);
        while (digits[n - 1] == '0')
                n--;
        hf__strbuf_printf(out, ".%.*s", n, digits);
}

void hf__cel_timestamp_print(struct hf__strbuf *out, struct hf__cel_value timestamp) {
        struct hf__cel_calendar c = hf__cel_calendar_of(timestamp, timestamp.zone * INT64_C(60));
        int minutes = abs(timestamp.zone);

        hf__strbuf_printf(out, "%04d-%02d-%02dT%02d:%02d:%02d", (int)c.year, c.month + 1, c.day + 1,
                          c.hour, c.minute, c.second);
        print_fraction(out, timestamp.n);
        if (minutes == 0)
                hf__strbuf_putc(out, 'Z');
        else
                hf__strbuf_printf(out, "%c%02d:%02d", timestamp.zone < 0 ? '-' : '+', minutes / 60,
                                  minutes % 60);
}

/* Reads a unit. Returns its nanoseconds; 0: there is none. "ms" stands before "m", with which it
 * begins. */
static uint64_t take_unit(const char **text, const char *end) {
        static const struct {
                const char *name;
                uint64_t nanoseconds;
        } units[] = {
                {"ns", 1},       {"us", 1000},      {"\xc2\xb5s", 1000}, {"\xce\xbcs", 1000},
                {"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000},  {"h", 3600000000000},
        };

        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
                size_t n = strlen(units[i].name);

                if ((size_t)(end - *text) >= n && memcmp(*text, units[i].name, n) == 0) {
                        *text += n;
                        return units[i].nanoseconds;
                }
        }
        return 0;
}

/* A number with its unit, as nanoseconds. As in Go's time.ParseDuration the digits of the fraction
 * are a whole number, which becomes a double and is multiplied, so it is rounded as in Go. */
static bool take_part(const char **text, const char *end, uint64_t *ret_nanoseconds) {
        uint64_t whole = 0;
        uint64_t fraction = 0;
        double scale = 1;
        bool full = false;
        unsigned digits = 0;
        uint64_t unit;

        for (; *text < end && **text >= '0' && **text <= '9'; (*text)++, digits++)
                if (__builtin_mul_overflow(whole, 10, &whole) ||
                    __builtin_add_overflow(whole, (uint64_t)(**text - '0'), &whole))
                        return false;
        if (take_char(text, end, '.'))
                for (; *text < end && **text >= '0' && **text <= '9'; (*text)++, digits++) {
                        uint64_t digit = (uint64_t)(**text - '0');

                        /* Go drops the digits from the first one with which the number would exceed
                         * 2^63: of any unit they are far less than a nanosecond. */
                        full = full || fraction > INT64_MAX / 10 ||
                               fraction * 10 + digit > (uint64_t)INT64_MAX + 1;
                        fraction = full ? fraction : fraction * 10 + digit;
                        scale = full ? scale : scale * 10;
                }
        unit = digits > 0 ? take_unit(text, end) : 0;
        if (unit == 0 || __builtin_mul_overflow(whole, unit, ret_nanoseconds))
                return false;
        return !__builtin_add_overflow(*ret_nanoseconds,
                                       (uint64_t)((double)fraction * ((double)unit / scale)),
                                       ret_nanoseconds);
}

bool hf__cel_duration_parse(const char *text, size_t n, int64_t *ret_nanoseconds) {
        const char *end = text + n;
        bool negative = take_char(&text, end, '-');
        uint64_t sum = 0;

        if (!negative)
                take_char(&text, end, '+');
        *ret_nanoseconds = 0;
        /* 0 is the only number that needs no unit. */
        if (end - text == 1 && *text == '0')
                return true;
        if (text == end)
                return false;
        while (text < end) {
                uint64_t part;

                if (!take_part(&text, end, &part) || __builtin_add_overflow(sum, part, &sum) ||
                    sum > (uint64_t)INT64_MAX + 1)
                        return false;
        }
        /* The smallest duration has no positive counterpart, so its sum is one larger. */
        if (sum > INT64_MAX && !negative)
                return false;
        if (sum > INT64_MAX)
                *ret_nanoseconds = INT64_MIN;
        else
                *ret_nanoseconds = negative ? -(int64_t)sum : (int64_t)sum;
        return true;
}

void hf__cel_duration_print(struct hf__strbuf *out, int64_t nanoseconds) {
        uint64_t absolute = nanoseconds < 0 ? 0 - (uint64_t)nanoseconds : (uint64_t)nanoseconds;

        if (nanoseconds < 0)
                hf__strbuf_putc(out, '-');
        hf__strbuf_u64(out, absolute / (uint64_t)NANOSECONDS);
        print_fraction(out, (uint32_t)(absolute % (uint64_t)NANOSECONDS));
        hf__strbuf_putc(out, 's');
}
