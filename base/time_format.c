/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats and parses times and durations.
 *
 * Times must have exactly the layouts of Kubernetes' Time and MicroTime, because Go's clients do
 * not parse a MicroTime with more or fewer decimals. Durations look like Go's, except that a
 * negative one is "0s". Nothing may depend on the process's locale or time zone, so neither
 * strftime nor strtod is used.
 */
#include "base/time_format.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/*
 * Days since 1970-01-01 in the proleptic Gregorian calendar. Years are counted from March, so that
 * the leap day is the last day of its year. An era is the 400 years, or 146097 days, after which
 * the calendar repeats. From March on, every five months have 153 days. 719468 is the number of
 * days from 0000-03-01 to 1970-01-01.
 */
static int64_t days_from_date(int64_t year, int month, int day) {
        year -= month <= 2;
        int64_t era = (year >= 0 ? year : year - 399) / 400;
        int64_t year_of_era = year - era * 400;
        int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
        return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
               day_of_year - 719468;
}

/* The inverse of days_from_date. For the year of the era, the quotients take out the leap days: one
 * in four years (1460 days), but none in the last year of a century (36524), except in the last
 * year of the era (146096). */
static void date_from_days(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day) {
        days += 719468;
        int64_t era = (days >= 0 ? days : days - 146096) / 146097;
        int64_t day_of_era = days - era * 146097;
        int64_t year_of_era =
                (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
        int64_t day_of_year =
                day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        int64_t month = (5 * day_of_year + 2) / 153;
        *ret_day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
        *ret_month = (int)(month < 10 ? month + 3 : month - 9);
        *ret_year = year_of_era + era * 400 + (*ret_month <= 2);
}

/* Writes value as exactly n digits, then the character `after`; returns the end. */
static char *put_digits(char *at, uint64_t value, int n, char after) {
        for (int i = n; i-- > 0; value /= 10)
                at[i] = (char)('0' + value % 10);
        at[n] = after;
        return at + n + 1;
}

/* Writes a MicroTime, or a Time without decimals if usec is negative. The format allows only
 * four-digit years, so sec is clamped. */
static void format_time(int64_t sec, int usec, char *text) {
        static const int64_t first = INT64_C(-62135596800); /* 0001-01-01T00:00:00Z */
        static const int64_t last = INT64_C(253402300799);  /* 9999-12-31T23:59:59Z */
        int64_t year;
        int month, day;

        assert(usec < 1000000);
        if (sec < first)
                sec = first;
        else if (sec > last)
                sec = last;
        int64_t days = sec / 86400 - (sec % 86400 < 0);
        int64_t rest = sec - days * 86400;
        date_from_days(days, &year, &month, &day);
        text = put_digits(text, (uint64_t)year, 4, '-');
        text = put_digits(text, (uint64_t)month, 2, '-');
        text = put_digits(text, (uint64_t)day, 2, 'T');
        text = put_digits(text, (uint64_t)(rest / 3600), 2, ':');
        text = put_digits(text, (uint64_t)(rest / 60 % 60), 2, ':');
        text = put_digits(text, (uint64_t)(rest % 60), 2, usec >= 0 ? '.' : 'Z');
        if (usec >= 0)
                text = put_digits(text, (uint64_t)usec, 6, 'Z');
        *text = '\0';
}

/* Reads exactly n digits and advances *p past them. -1: there are fewer digits. */
static int read_digits(const char **p, int n) {
        int value = 0;

        for (int i = 0; i < n; i++, (*p)++) {
                if (!hf__is_digit(**p))
                        return -1;
                value = value * 10 + (**p - '0');
        }
        return value;
}

/* Advances *p past c. false: the next character is not c. */
static bool skip_char(const char **p, char c) {
        if (**p != c)
                return false;
        (*p)++;
        return true;
}

/* Parses "Z", "+hh:mm" or "-hh:mm" into seconds east of UTC. */
static int parse_zone(const char **p, int64_t *ret_offset) {
        int sign = **p == '-' ? -1 : 1;

        *ret_offset = 0;
        if (skip_char(p, 'Z'))
                return 0;
        if (!skip_char(p, '+') && !skip_char(p, '-'))
                return -EINVAL;
        int hours = read_digits(p, 2);
        if (hours < 0 || hours > 23 || !skip_char(p, ':'))
                return -EINVAL;
        int minutes = read_digits(p, 2);
        if (minutes < 0 || minutes > 59)
                return -EINVAL;
        *ret_offset = sign * (hours * 3600 + minutes * 60);
        return 0;
}

/* Parses "2026-11-21T02:36:00" into seconds since 1970, as if the zone were UTC. */
static int parse_date_time(const char **p, int64_t *ret_sec) {
        static const char month_days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
        int year, month, day, hour, minute, second;

        if ((year = read_digits(p, 4)) < 0 || !skip_char(p, '-'))
                return -EINVAL;
        if ((month = read_digits(p, 2)) < 1 || month > 12 || !skip_char(p, '-'))
                return -EINVAL;
        if ((day = read_digits(p, 2)) < 1 || day > month_days[month - 1] || !skip_char(p, 'T'))
                return -EINVAL;
        if ((hour = read_digits(p, 2)) < 0 || hour > 23 || !skip_char(p, ':'))
                return -EINVAL;
        if ((minute = read_digits(p, 2)) < 0 || minute > 59 || !skip_char(p, ':'))
                return -EINVAL;
        if ((second = read_digits(p, 2)) < 0 || second > 59)
                return -EINVAL;
        if (month == 2 && day == 29 && (year % 4 != 0 || (year % 100 == 0 && year % 400 != 0)))
                return -EINVAL;
        *ret_sec = days_from_date(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
        return 0;
}

/* Parses a MicroTime (with_usec) or a Time. No other text may follow. */
static int parse_time(const char *p, bool with_usec, int64_t *ret_sec, int *ret_usec) {
        int64_t sec, offset;
        int usec = 0;

        if (parse_date_time(&p, &sec) < 0)
                return -EINVAL;
        if (with_usec && (!skip_char(&p, '.') || (usec = read_digits(&p, 6)) < 0))
                return -EINVAL;
        if (parse_zone(&p, &offset) < 0 || *p != '\0')
                return -EINVAL;
        *ret_sec = sec - offset;
        *ret_usec = usec;
        return 0;
}

void hf__microtime_format(int64_t usec, char *text) {
        int64_t sec = usec / 1000000 - (usec % 1000000 < 0);
        format_time(sec, (int)(usec - sec * 1000000), text);
}

int hf__microtime_parse(const char *text, int64_t *ret_usec) {
        int64_t sec;
        int usec;

        if (parse_time(text, true, &sec, &usec) < 0)
                return -EINVAL;
        *ret_usec = sec * 1000000 + usec;
        return 0;
}

void hf__time_format(int64_t sec, char *text) { format_time(sec, -1, text); }

int hf__time_parse(const char *text, int64_t *ret_sec) {
        int usec;
        return parse_time(text, false, ret_sec, &usec);
}

/* Reads a unit of time and advances *p past it. Returns its length in nanoseconds; 0 = no unit. */
static hf_nsec read_unit(const char **p) {
        static const struct {
                const char *name; /* "ms" must precede its prefix "m" */
                hf_nsec value;
        } units[] = {
                {"ns", 1},
                {"us", HF_NSEC_PER_USEC},
                {"\xc2\xb5s", HF_NSEC_PER_USEC}, /* micro sign */
                {"\xce\xbcs", HF_NSEC_PER_USEC}, /* Greek mu */
                {"ms", HF_NSEC_PER_MSEC},
                {"s", HF_NSEC_PER_SEC},
                {"m", 60 * HF_NSEC_PER_SEC},
                {"h", 3600 * HF_NSEC_PER_SEC},
        };

        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
                if (strncmp(*p, units[i].name, strlen(units[i].name)) == 0) {
                        *p += strlen(units[i].name);
                        return units[i].value;
                }
        return 0;
}

/*
 * Parses one term of a duration, for example "1.5h". The whole part is exact. The fraction is
 * computed in double and then rounded down to nanoseconds, exactly as Go does it, because another
 * precision can give another last nanosecond.
 */
static int parse_duration_term(const char **p, hf_nsec *ret_term) {
        int64_t whole = 0, fraction = 0;
        double scale = 1; /* the fraction is fraction / scale */
        bool has_digits = false, is_full = false;

        for (; hf__is_digit(**p); (*p)++) {
                has_digits = true;
                if (__builtin_mul_overflow(whole, 10, &whole) ||
                    __builtin_add_overflow(whole, **p - '0', &whole))
                        return -EINVAL;
        }
        if (skip_char(p, '.'))
                for (; hf__is_digit(**p); (*p)++) {
                        has_digits = true;
                        /* Ignore the digits that do not fit: even in hours they are worth less
                         * than a nanosecond. */
                        int64_t longer;
                        is_full = is_full || __builtin_mul_overflow(fraction, 10, &longer) ||
                                  __builtin_add_overflow(longer, **p - '0', &longer);
                        if (is_full)
                                continue;
                        fraction = longer;
                        scale *= 10;
                }
        hf_nsec whole_nsec, unit = has_digits ? read_unit(p) : 0;
        if (unit == 0 || __builtin_mul_overflow(whole, unit, &whole_nsec))
                return -EINVAL;
        hf_nsec fraction_nsec = (hf_nsec)((double)fraction * ((double)unit / scale));
        if (__builtin_add_overflow(whole_nsec, fraction_nsec, ret_term))
                return -EINVAL;
        return 0;
}

int hf__duration_parse(const char *text, hf_nsec *ret_duration) {
        hf_nsec sum = 0, term;

        if (*text == '+')
                text++;
        if (strcmp(text, "0") == 0) {
                *ret_duration = 0;
                return 0;
        }
        if (*text == '\0')
                return -EINVAL;
        while (*text != '\0')
                if (parse_duration_term(&text, &term) < 0 ||
                    __builtin_add_overflow(sum, term, &sum))
                        return -EINVAL;
        *ret_duration = sum;
        return 0;
}

/* Writes value / scale with up to `places` decimals, without trailing zeros, and suffix. Returns
 * the length. scale is 10 to the power of places. */
static int put_decimal(char *text, size_t space, hf_nsec value, hf_nsec scale, int places,
                       const char *suffix) {
        int n = snprintf(text, space, "%lld", (long long)(value / scale));
        hf_nsec rest = value % scale;

        if (rest != 0) {
                n += snprintf(text + n, space - (size_t)n, ".%0*lld", places, (long long)rest);
                while (text[n - 1] == '0')
                        n--;
        }
        return n + snprintf(text + n, space - (size_t)n, "%s", suffix);
}

void hf__duration_format(hf_nsec duration, char *text) {
        const size_t space = 32;
        int n = 0;

        if (duration <= 0)
                (void)snprintf(text, space, "0s");
        else if (duration < HF_NSEC_PER_USEC)
                (void)snprintf(text, space, "%lldns", (long long)duration);
        else if (duration < HF_NSEC_PER_MSEC)
                put_decimal(text, space, duration, HF_NSEC_PER_USEC, 3, "\xc2\xb5s");
        else if (duration < HF_NSEC_PER_SEC)
                put_decimal(text, space, duration, HF_NSEC_PER_MSEC, 6, "ms");
        else {
                int64_t minutes = duration / (60 * HF_NSEC_PER_SEC);
                if (minutes >= 60)
                        n += snprintf(text, space, "%lldh", (long long)(minutes / 60));
                if (minutes > 0)
                        n += snprintf(text + n, space - (size_t)n, "%lldm",
                                      (long long)(minutes % 60));
                put_decimal(text + n, space - (size_t)n, duration % (60 * HF_NSEC_PER_SEC),
                            HF_NSEC_PER_SEC, 9, "s");
        }
}

void hf__age_format(int64_t seconds, char text[HF__AGE_MAX]) {
        /* The thresholds of duration.HumanDuration in k8s.io/apimachinery, so that ages look as in
         * kubectl. A row is for ages below `below`. They are shown in `unit`, and the remainder in
         * `rest` (0 = no remainder is shown). All numbers are seconds. */
        static const struct {
                int64_t below, unit, rest;
                char unit_letter, rest_letter;
        } forms[] = {
                {2 * 60, 1, 0, 's', 0},
                {10 * 60, 60, 1, 'm', 's'},
                {3 * 3600, 60, 0, 'm', 0},
                {8 * 3600, 3600, 60, 'h', 'm'},
                {2 * 86400, 3600, 0, 'h', 0},
                {8 * 86400, 86400, 3600, 'd', 'h'},
                {2 * 365 * 86400, 86400, 0, 'd', 0},
                {8 * 365 * INT64_C(86400), 365 * 86400, 86400, 'y', 'd'},
                {INT64_MAX, 365 * 86400, 0, 'y', 0},
        };
        unsigned i = 0;

        if (seconds < 0)
                seconds = 0;
        while (i + 1 < sizeof forms / sizeof forms[0] && seconds >= forms[i].below)
                i++;
        int64_t rest = forms[i].rest ? seconds % forms[i].unit / forms[i].rest : 0;
        if (rest)
                (void)snprintf(text, HF__AGE_MAX, "%" PRId64 "%c%" PRId64 "%c",
                               seconds / forms[i].unit, forms[i].unit_letter, rest,
                               forms[i].rest_letter);
        else
                (void)snprintf(text, HF__AGE_MAX, "%" PRId64 "%c", seconds / forms[i].unit,
                               forms[i].unit_letter);
}
