/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the times that clients send, and brings them into the form in which they are stored.
 *
 * Invariants: all stored times of one type have the same form, so that they can be compared as
 * text. A time is accepted if Go's time.Parse accepts it, and the messages are Go's. So the text is
 * read as Go reads it: one part of the layout after the other, each with its own rules for the
 * number of digits.
 */
#include "server/schema/values/time_text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define SHOWN_MAX  100                 /* bytes of a client's text that are shown */
#define QUOTED_MAX (4 * SHOWN_MAX + 1) /* each byte takes up to four; the NUL */

enum part { YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, FRACTION, ZONE, N_PARTS };

/* Go writes a layout as the time 15:04:05 on 2006-01-02. */
static const char time_layout[] = "2006-01-02T15:04:05Z07:00",
                  micro_layout[] = "2006-01-02T15:04:05.000000Z07:00";
static const char *const layout_parts[] =
        {[YEAR] = "2006", [MONTH] = "01",  [DAY] = "02",           [HOUR] = "15",
         [MINUTE] = "04", [SECOND] = "05", [FRACTION] = ".000000", [ZONE] = "Z07:00"};
/* What stands before each part. */
static const char *const separators[N_PARTS] =
        {[YEAR] = "",    [MONTH] = "-",  [DAY] = "-",     [HOUR] = "T",
         [MINUTE] = ":", [SECOND] = ":", [FRACTION] = "", [ZONE] = ""};

struct parsed_time {
        int numbers[FRACTION + 1]; /* the fraction in microseconds */
        int offset;                /* seconds east of UTC */
};

/* ---- messages ---- */

/* Escapes text as Go's package time does in its messages. */
static void quote(const char *text, char quoted[QUOTED_MAX]) {
        size_t n = 0;

        for (size_t i = 0; text[i] && i < SHOWN_MAX; i++) {
                unsigned char c = (unsigned char)text[i];
                if (c < ' ' || c >= 0x80) {
                        n += (size_t)snprintf(quoted + n, QUOTED_MAX - n, "\\x%02x", c);
                        continue;
                }
                if (c == '"' || c == '\\')
                        quoted[n++] = '\\';
                quoted[n++] = (char)c;
        }
        quoted[n] = '\0';
}

/* Writes the message for a part of the layout that the text `at` does not have. */
static void put_not_parsed(const char *sent, const char *layout, const char *at, const char *part,
                           char *reason, size_t max_reason) {
        char quoted[QUOTED_MAX], rest[QUOTED_MAX];

        quote(sent, quoted);
        quote(at, rest);
        (void)snprintf(reason, max_reason,
                       "parsing time \"%s\" as \"%s\": cannot parse \"%s\" as \"%s\"", quoted,
                       layout, rest, part);
}

/* Writes the message for a number that is too large or too small. */
static void put_out_of_range(const char *sent, const char *what, char *reason, size_t max_reason) {
        char quoted[QUOTED_MAX];

        quote(sent, quoted);
        (void)snprintf(reason, max_reason, "parsing time \"%s\": %s out of range", quoted, what);
}

/* ---- the parts of a time ---- */

/*
 * Each function reads a part at *at, and moves *at behind it. NULL: it is read. Otherwise *at may
 * be anywhere, and the result is what is out of range, or "" if the text has not the form of the
 * part.
 */

/* Reads a number of two digits, or of one if fewer may be there. */
static const char *read_number(const char **at, bool fewer, int *ret_number) {
        const char *p = *at;

        if (!hf__is_digit(p[0]) || (!hf__is_digit(p[1]) && !fewer))
                return "";
        *ret_number = *p++ - '0';
        if (hf__is_digit(*p))
                *ret_number = 10 * *ret_number + (*p++ - '0');
        *at = p;
        return NULL;
}

static const char *read_year(const char **at, int *ret_year) {
        *ret_year = 0;
        for (int i = 0; i < 4; i++, ++*at) {
                if (!hf__is_digit(**at))
                        return "";
                *ret_year = 10 * *ret_year + (**at - '0');
        }
        return NULL;
}

static bool begins_fraction(const char *text) { return text[0] == '.' || text[0] == ','; }

/* The fraction of a MicroTime has six characters. Go accepts a sign as the first one. */
static const char *read_fraction(const char **at, int *ret_usec) {
        const char *p = *at + 1, *end = *at + 7;
        bool has_sign = begins_fraction(*at) && (*p == '-' || *p == '+');
        bool is_negative = has_sign && *p == '-';

        if (!begins_fraction(*at))
                return "";
        *ret_usec = 0;
        for (p += has_sign; p < end; p++) {
                if (!hf__is_digit(*p))
                        return "";
                *ret_usec = 10 * *ret_usec + (*p - '0');
        }
        *at = end;
        return is_negative && *ret_usec > 0 ? "fractional second" : NULL;
}

/* As in Go, 24 hours and 60 minutes are accepted. */
static const char *read_zone(const char **at, int *ret_offset) {
        const char *p = *at;
        int hours, minutes;

        *ret_offset = 0;
        if (*p == 'Z') {
                ++*at;
                return NULL;
        }
        if (strnlen(p, 6) < 6 || p[3] != ':')
                return "";
        const char *hours_at = p + 1, *minutes_at = p + 4;
        if (read_number(&hours_at, false, &hours))
                return "";
        const char *wrong = read_number(&minutes_at, false, &minutes);
        if (!wrong && minutes > 60)
                return "time zone offset minute";
        if (hours > 24)
                return "time zone offset hour";
        if (wrong || (*p != '+' && *p != '-'))
                return "";
        *ret_offset = (hours * 60 + minutes) * (*p == '-' ? -60 : 60);
        *at = p + 6;
        return NULL;
}

/* A Time may have a fraction of a second, which is ignored, although its layout has none. */
static const char *read_second(const char **at, bool micro, int *ret_second) {
        const char *wrong = read_number(at, false, ret_second);

        if (wrong || *ret_second >= 60)
                return wrong ? wrong : "second";
        if (!micro && begins_fraction(*at) && hf__is_digit((*at)[1]))
                *at += 1 + strspn(*at + 1, "0123456789");
        return NULL;
}

static const char *read_part(const char **at, enum part part, bool micro,
                             struct parsed_time *time) {
        int *number = part == ZONE ? &time->offset : &time->numbers[part];
        const char *wrong = NULL;

        switch (part) {
        case YEAR: return read_year(at, number);
        case SECOND: return read_second(at, micro, number);
        case FRACTION: return read_fraction(at, number);
        case ZONE: return read_zone(at, number);
        case MONTH:
                wrong = read_number(at, false, number);
                return wrong || (*number >= 1 && *number <= 12) ? wrong : "month";
        case HOUR:
                wrong = read_number(at, true, number);
                return wrong || *number < 24 ? wrong : "hour";
        case MINUTE:
                wrong = read_number(at, false, number);
                return wrong || *number < 60 ? wrong : "minute";
        case DAY: /* has_day comes later */
        case N_PARTS: break;
        }
        return read_number(at, false, number);
}

static bool has_day(const struct parsed_time *time) {
        static const char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
        int year = time->numbers[YEAR], month = time->numbers[MONTH], day = time->numbers[DAY];
        bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

        return day >= 1 && day <= days[month - 1] + (month == 2 && is_leap);
}

static bool parse_time(const char *sent, bool micro, struct parsed_time *time, char *reason,
                       size_t max_reason) {
        const char *layout = micro ? micro_layout : time_layout, *at = sent;
        char quoted[QUOTED_MAX];

        for (enum part part = YEAR; part < N_PARTS; part++) {
                if (part == FRACTION && !micro)
                        continue;
                const char *separator = separators[part];
                if (*separator && *at != *separator) {
                        put_not_parsed(sent, layout, at, separator, reason, max_reason);
                        return false;
                }
                at += strlen(separator);
                const char *begin = at;
                const char *wrong = read_part(&at, part, micro, time);
                if (wrong && *wrong)
                        put_out_of_range(sent, wrong, reason, max_reason);
                else if (wrong)
                        put_not_parsed(sent, layout, begin, layout_parts[part], reason, max_reason);
                if (wrong)
                        return false;
        }
        if (*at) {
                char rest[QUOTED_MAX];
                quote(sent, quoted);
                quote(at, rest);
                (void)snprintf(reason, max_reason, "parsing time \"%s\": extra text: \"%s\"",
                               quoted, rest);
                return false;
        }
        if (!has_day(time))
                put_out_of_range(sent, "day", reason, max_reason);
        return has_day(time);
}

/* ---- the stored form ---- */

bool hfd_time_text_normalize(const char *sent, bool micro, char text[HF__MICROTIME_MAX],
                             char *reason, size_t max_reason) {
        struct parsed_time time = {0};
        char utc[64];
        int64_t sec = 0;

        if (!parse_time(sent, micro, &time, reason, max_reason))
                return false;
        const int *n = time.numbers;
        (void)snprintf(utc, sizeof utc, "%04d-%02d-%02dT%02d:%02d:%02dZ", n[YEAR], n[MONTH], n[DAY],
                       n[HOUR], n[MINUTE], n[SECOND]);
        (void)hf__time_parse(utc, &sec); /* all numbers are in their ranges */
        sec -= time.offset;
        if (micro)
                hf__microtime_format(sec * 1000000 + n[FRACTION], text);
        else
                hf__time_format(sec, text);
        return true;
}
