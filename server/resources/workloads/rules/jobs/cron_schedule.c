/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules for the schedule and the time zone of a CronJob.
 *
 * Invariants: a schedule is accepted or refused as by the parser that kube-apiserver uses
 * (github.com/robfig/cron), and with the same text, because clients show the text. Its odd rules
 * are therefore kept, such as "?" for "*", and a sign before a number. These are exceptions:
 *
 *  - TEXT_MAX limits the length, because a check has a copy of the schedule on the stack;
 *  - all numbers of 19 or more digits are out of range (parse_number);
 *  - only ASCII spaces separate fields, and a zone inside a schedule is not looked up;
 *  - the texts for a bad duration and for some bad numbers can differ.
 *
 * kube-apiserver has a database of zones of its own. Here it is that of the machine. If that
 * database is incomplete, each well-formed name that is not in it is accepted (hfd_zone_may_exist).
 */
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "cel/values/timestamp.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"
#include "server/resources/zones/zones.h"

#define SPACES   " \t\n\v\f\r"
#define N_FIELDS 5
#define TEXT_MAX 1024 /* bytes of a schedule without its zone; Kubernetes has no limit */
#define ZONE_MAX 14   /* bytes of a part of a zone's name */

/* The values that a field of the schedule may have. */
struct bounds {
        unsigned min, max;
        const char *names; /* three letters each, the first one stands for min; NULL = none */
};

/* Minute, hour, day of the month, month, day of the week. */
static const struct bounds fields[N_FIELDS] = {{0, 59, NULL},
                                               {0, 23, NULL},
                                               {1, 31, NULL},
                                               {1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
                                               {0, 6, "sunmontuewedthufrisat"}};

/* The message for the first mistake in a schedule; "" = there is none. A message that repeats the
 * whole schedule fits. Longer ones are cut. */
struct mistake {
        char text[TEXT_MAX + 160];
};

/* Records a mistake. Checks go on after it, so that they need no error path; later calls have no
 * effect. */
static void record_mistake(struct mistake *mistake, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
static void record_mistake(struct mistake *mistake, const char *format, ...) {
        va_list args;

        if (mistake->text[0] != '\0')
                return;
        va_start(args, format);
        (void)vsnprintf(mistake->text, sizeof mistake->text, format, args);
        va_end(args);
}

/* ---- fields ---- */

/* Reads a number as Go's strconv.Atoi does. A number of more than 18 digits may exceed an int64,
 * and counts as out of range. A shorter one above UINT_MAX becomes UINT_MAX, which is too large for
 * every field, too. After a mistake the result does not matter. */
static unsigned parse_number(const char *text, struct mistake *mistake) {
        bool is_negative = *text == '-';
        const char *digits = text + (is_negative || *text == '+');
        size_t n = strspn(digits, "0123456789");
        unsigned long value = strtoul(digits, NULL, 10);

        if (n == 0 || digits[n] != '\0')
                record_mistake(mistake,
                               "failed to parse int from %s: strconv.Atoi: parsing \"%s\": invalid "
                               "syntax",
                               text, text);
        else if (n > 18)
                record_mistake(mistake,
                               "failed to parse int from %s: strconv.Atoi: parsing \"%s\": value "
                               "out of range",
                               text, text);
        else if (is_negative && value > 0)
                record_mistake(mistake, "negative number (%s) not allowed: %s", text, text);
        return value > UINT_MAX ? UINT_MAX : (unsigned)value;
}

/* Reads a number, or a name such as "jan" in any case. */
static unsigned parse_value(const char *text, const struct bounds *bounds,
                            struct mistake *mistake) {
        size_t n = bounds->names ? strlen(bounds->names) / 3 : 0;

        for (size_t i = 0; i < n; i++)
                if (strlen(text) == 3 && strncasecmp(text, bounds->names + 3 * i, 3) == 0)
                        return bounds->min + (unsigned)i;
        return parse_number(text, mistake);
}

/* Splits *text at the next `c` and returns the part before it. *text is then the part after it, or
 * NULL if there is no `c`. Writes a NUL in place of `c`. */
static char *take_part(char **text, char c) {
        char *part = *text, *end = strchr(part, c);

        if (end)
                *end = '\0';
        *text = end ? end + 1 : NULL;
        return part;
}

/* Checks one range of a field: "*", "5", "1-5", or one of them with a step, "1-5/2". A single value
 * with a step, "5/2", goes to the maximum. */
static void check_range(const char *range, const struct bounds *bounds, struct mistake *mistake) {
        char text[TEXT_MAX + 1];
        char *rest = text, *after;
        unsigned begin = bounds->min, end = bounds->max, step = 1;

        (void)snprintf(text, sizeof text, "%s", range);
        char *values = take_part(&rest, '/');
        const char *steps = rest ? take_part(&rest, '/') : NULL;
        after = values;
        const char *first = take_part(&after, '-');
        bool is_single = !after;
        if (strcmp(first, "*") != 0 && strcmp(first, "?") != 0) {
                begin = end = parse_value(first, bounds, mistake);
                if (after && strchr(after, '-'))
                        record_mistake(mistake, "too many hyphens: %s", range);
                else if (after)
                        end = parse_value(after, bounds, mistake);
        }
        if (rest)
                record_mistake(mistake, "too many slashes: %s", range);
        if (steps)
                step = parse_number(steps, mistake);
        if (steps && is_single)
                end = bounds->max;
        if (begin < bounds->min)
                record_mistake(mistake, "beginning of range (%u) below minimum (%u): %s", begin,
                               bounds->min, range);
        if (end > bounds->max)
                record_mistake(mistake, "end of range (%u) above maximum (%u): %s", end,
                               bounds->max, range);
        if (begin > end)
                record_mistake(mistake, "beginning of range (%u) beyond end of range (%u): %s",
                               begin, end, range);
        if (step == 0)
                record_mistake(mistake, "step of range should be a positive number: %s", range);
}

/* ---- schedules ---- */

/* Checks a schedule without fields: a word such as "@daily", or "@every" and a duration. */
static void check_descriptor(const char *text, struct mistake *mistake) {
        static const char *const known[] = {"@yearly", "@annually", "@monthly", "@weekly",
                                            "@daily",  "@midnight", "@hourly"};
        static const char every[] = "@every ";
        int64_t nanoseconds;

        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
                if (strcmp(text, known[i]) == 0)
                        return;
        if (strncmp(text, every, strlen(every)) != 0)
                record_mistake(mistake, "unrecognized descriptor: %s", text);
        else if (!hf__cel_duration_parse(text + strlen(every), strlen(text + strlen(every)),
                                         &nanoseconds))
                record_mistake(mistake,
                               "failed to parse duration %s: time: invalid duration \"%s\"", text,
                               text + strlen(every));
}

/* The schedule has n fields, not five. Go prints a list of texts as "[a b]"; the part in brackets
 * is no longer than the schedule, so it fits in `list`. */
static void record_count(const char *text, size_t n, struct mistake *mistake) {
        char list[TEXT_MAX + 1];
        size_t used = 0;

        for (const char *at = text + strspn(text, SPACES); *at; at += strspn(at, SPACES)) {
                size_t length = strcspn(at, SPACES);
                int printed = snprintf(list + used, sizeof list - used, "%s%.*s", used ? " " : "",
                                       (int)length, at);
                used += printed > 0 ? (size_t)printed : 0;
                at += length;
        }
        list[used] = '\0';
        record_mistake(mistake, "expected exactly %d fields, found %zu: [%s]", N_FIELDS, n, list);
}

/* Checks the five fields. Each is a list of ranges between commas; empty ranges do not count. */
static void check_fields(const char *text, struct mistake *mistake) {
        char copy[TEXT_MAX + 1];
        char *saved = NULL, *list = NULL;
        size_t n = 0;

        for (const char *at = text + strspn(text, SPACES); *at; n++) {
                at += strcspn(at, SPACES);
                at += strspn(at, SPACES);
        }
        if (n != N_FIELDS) {
                record_count(text, n, mistake);
                return;
        }
        (void)snprintf(copy, sizeof copy, "%s", text);
        char *field = strtok_r(copy, SPACES, &saved);
        for (size_t i = 0; i < N_FIELDS && field; i++) {
                for (const char *range = strtok_r(field, ",", &list); range;
                     range = strtok_r(NULL, ",", &list))
                        check_range(range, &fields[i], mistake);
                field = strtok_r(NULL, SPACES, &saved);
        }
}

/* Checks a schedule, with or without a zone before it ("TZ=UTC 0 0 * * *"). As in Go, the spaces
 * around a schedule are dropped only if a zone precedes it. */
static void check_schedule(const char *text, struct mistake *mistake) {
        bool has_zone = strncmp(text, "TZ=", 3) == 0 || strncmp(text, "CRON_TZ=", 8) == 0;
        char schedule[TEXT_MAX + 1];

        if (has_zone) {
                text += strcspn(text, " ");
                text += strspn(text, SPACES);
        }
        size_t n = strlen(text);
        while (has_zone && n > 0 && strchr(SPACES, text[n - 1]))
                n--;
        if (n > TEXT_MAX) {
                record_mistake(mistake, "must be no more than %d bytes", TEXT_MAX);
                return;
        }
        memcpy(schedule, text, n);
        schedule[n] = '\0';
        if (*schedule == '@')
                check_descriptor(schedule, mistake);
        else
                check_fields(schedule, mistake);
}

/* A zone belongs in spec.timeZone. If the old schedule has a zone in it, because it was stored
 * before that rule existed, the new one may have one, too. */
void hfd_cron_schedule_validate(const struct hf__json *spec, const struct hf__json *was,
                                struct hfd_causes *causes) {
        static const char field[] = "spec.schedule";
        const char *text = hfd_text_of(spec, "schedule");
        bool may_have_zone = strstr(hfd_text_of(was, "schedule"), "TZ"),
             has_zone = strstr(text, "TZ");
        struct mistake mistake = {{0}};

        check_schedule(text, &mistake);
        if (mistake.text[0] != '\0')
                hfd_cause_invalid_text(causes, field, text, mistake.text);
        if (has_zone && may_have_zone && hf__json_get(spec, "timeZone"))
                hfd_cause_invalid_text(causes, field, text,
                                       "cannot use both timeZone field and TZ or CRON_TZ in "
                                       "schedule");
        else if (has_zone && !may_have_zone)
                hfd_cause_invalid_text(causes, field, text,
                                       "cannot use TZ or CRON_TZ in schedule, use timeZone field "
                                       "instead");
}

/* ---- zones ---- */

/* Whether n bytes can be a part of a zone's name: the name is used as a path in the database of
 * zones, so "." and ".." are refused. */
static bool is_zone_part(const char *part, size_t n) {
        if (n == 0 || n > ZONE_MAX || *part == '-' || (n == 1 && *part == '.') ||
            (n == 2 && strncmp(part, "..", 2) == 0))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!isalnum((unsigned char)part[i]) && !strchr("._-+", part[i]))
                        return false;
        return true;
}

static const char zone_field[] = "spec.timeZone";

static void refuse_unknown(const char *text, struct hfd_causes *causes) {
        char why[TEXT_MAX];

        (void)snprintf(why, sizeof why, "unknown time zone %s", text);
        hfd_cause_invalid_text(causes, zone_field, text, why);
}

void hfd_cron_zone_validate(const struct hf__json *zone, struct hfd_causes *causes) {
        const char *text = hf__json_is_string(zone) ? hf__json_text(zone) : NULL;

        if (!text)
                return;
        if (!*text) {
                hfd_cause_invalid_text(causes, zone_field, "",
                                       "timeZone must be nil or non-empty string");
                return;
        }
        for (const char *part = text; part;) {
                const char *slash = strchr(part, '/');
                if (!is_zone_part(part, slash ? (size_t)(slash - part) : strlen(part))) {
                        refuse_unknown(text, causes);
                        return;
                }
                part = slash ? slash + 1 : NULL;
        }
        if (strcasecmp(text, "Local") == 0)
                hfd_cause_invalid_text(causes, zone_field, text,
                                       "timeZone must be an explicit time zone as defined in "
                                       "https://www.iana.org/time-zones");
        if (strcmp(text, "Local") != 0 && !hfd_zone_may_exist(text))
                refuse_unknown(text, causes);
}
