/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the times that clients send, and brings them into the form in which they are stored.
 *
 * Invariants: all stored times of one type have the same form, so that they can be compared as
 * text. The messages are Go's, with the exceptions in time_text.h. Most of them name the first part
 * of the text that does not fit, and the part of the layout that the text should have there. So
 * explain_time has the layout in the same parts.
 */
#include "server/schema/time_text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 100 /* bytes of a client's text that are shown */

/* Go writes a layout as the time 15:04:05 on 2006-01-02. */
static const char time_layout[] = "2006-01-02T15:04:05Z07:00",
                  micro_layout[] = "2006-01-02T15:04:05.000000Z07:00";

static size_t count_digits(const char *text) { return strspn(text, "0123456789"); }

/* Writes the message for the part of sent that begins at `at`. Always returns false. */
static bool cannot_parse(const char *sent, const char *layout, const char *at, const char *part,
                         char *reason, size_t max_reason) {
        (void)snprintf(reason, max_reason,
                       "parsing time \"%.*s\" as \"%s\": cannot parse \"%.*s\" as \"%s\"",
                       SHOWN_MAX, sent, layout, SHOWN_MAX, at, part);
        return false;
}

/* Finds the first part that does not fit, and writes the message. Always returns false. */
static bool explain_time(const char *sent, bool micro, char *reason, size_t max_reason) {
        static const char *const parts[] = {"2006", "-", "01", "-", "02", "T",
                                            "15",   ":", "04", ":", "05"};
        const char *layout = micro ? micro_layout : time_layout, *at = sent;

        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
                size_t n = strlen(parts[i]);
                bool fits = count_digits(parts[i]) > 0 ? count_digits(at) >= n
                                                       : strncmp(at, parts[i], n) == 0;
                if (!fits)
                        return cannot_parse(sent, layout, at, parts[i], reason, max_reason);
                at += n;
        }
        if (micro && (*at != '.' || count_digits(at + 1) < 6))
                return cannot_parse(sent, layout, at, ".000000", reason, max_reason);
        if (*at == '.') /* a MicroTime has exactly six digits, a Time any number */
                at += micro ? 7 : 1 + count_digits(at + 1);
        if (*at == 'Z' && at[1]) {
                (void)snprintf(reason, max_reason, "parsing time \"%.*s\": extra text: \"%.*s\"",
                               SHOWN_MAX, sent, SHOWN_MAX, at + 1);
                return false;
        }
        if (*at != 'Z' && *at != '+' && *at != '-')
                return cannot_parse(sent, layout, at, "Z07:00", reason, max_reason);
        /* The date and the time have the right form. So a number is too large, or the offset is
         * wrong. Go has several messages for these; here one is enough. */
        (void)snprintf(reason, max_reason, "parsing time \"%.*s\": out of range", SHOWN_MAX, sent);
        return false;
}

/* Copies sent without the fraction of a second. False: the text is too long to be a time. */
static bool copy_without_fraction(const char *sent, char *text, size_t space) {
        const char *point = strchr(sent, '.');
        size_t n_digits = point ? count_digits(point + 1) : 0;
        size_t n_whole = n_digits > 0 ? (size_t)(point - sent) : strlen(sent);
        const char *rest = n_digits > 0 ? point + 1 + n_digits : "";

        if (n_whole + strlen(rest) >= space)
                return false;
        (void)snprintf(text, space, "%.*s%s", (int)n_whole, sent, rest);
        return true;
}

bool hfd_time_text_normalize(const char *sent, bool micro, char text[HF__MICROTIME_MAX],
                             char *reason, size_t max_reason) {
        char whole[HF__MICROTIME_MAX];
        int64_t when;

        if (micro && hf__microtime_parse(sent, &when) == 0) {
                hf__microtime_format(when, text);
                return true;
        }
        if (!micro && copy_without_fraction(sent, whole, sizeof whole) &&
            hf__time_parse(whole, &when) == 0) {
                hf__time_format(when, text);
                return true;
        }
        return explain_time(sent, micro, reason, max_reason);
}
