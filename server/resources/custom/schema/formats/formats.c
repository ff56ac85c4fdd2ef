/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of formats, and the checks of all that do not belong to the network
 * (network_formats.c). The formats are those of the Go package strfmt in kube-openapi, which
 * Kubernetes uses.
 *
 * Invariant: a format accepts what Kubernetes accepts, even where that is more than its name
 * promises: a stricter check would refuse objects that other servers have stored. Exceptions are
 * long numbers in a duration (is_duration), and what network_formats.c lists.
 */
#include "server/resources/custom/schema/formats/formats.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES 24 /* of a format, with the NUL */

/* ---- dates and times ---- */

/* The value of n digits; -1: one of the characters is not a digit. */
static int digits(const char *text, int n) {
        int value = 0;

        for (int i = 0; i < n; i++) {
                if (!isdigit((unsigned char)text[i]))
                        return -1;
                value = 10 * value + text[i] - '0';
        }
        return value;
}

static bool is_leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

/* Whether the first ten characters are a date. */
static bool begins_with_date(const char *text) {
        static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

        if (strnlen(text, 10) < 10 || text[4] != '-' || text[7] != '-')
                return false;
        int year = digits(text, 4), month = digits(text + 5, 2), day = digits(text + 8, 2);
        if (year < 0 || month < 1 || month > 12 || day < 1)
                return false;
        return day <= days[month - 1] + (month == 2 && is_leap(year));
}

static bool is_date(const char *text) { return begins_with_date(text) && text[10] == '\0'; }

/* Whether the n bytes are "Z", "z" or an offset, "+01:00". */
static bool is_zone(const char *text, size_t n) {
        if (n == 1)
                return *text == 'Z' || *text == 'z';
        return n == 6 && (*text == '+' || *text == '-') && digits(text + 1, 2) >= 0 &&
               text[3] == ':' && digits(text + 4, 2) >= 0;
}

/* "2006-01-02T15:04:05.999Z" or with an offset, "+01:00". As in Kubernetes, T and Z may be small
 * letters, any character but a line feed is the point before the fraction, and nothing counts from
 * a second T on. */
static bool is_date_time(const char *text) {
        if (!begins_with_date(text) || (text[10] != 'T' && text[10] != 't'))
                return false;
        const char *time = text + 11, *end = time + strcspn(time, "Tt");
        if (end - time < 9)
                return false;
        int hour = digits(time, 2), minute = digits(time + 3, 2), second = digits(time + 6, 2);
        if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 ||
            time[2] != ':' || time[5] != ':')
                return false;
        time += 8;
        if (is_zone(time, (size_t)(end - time)))
                return true;
        if (*time == '\n')
                return false;
        for (time++; time < end && ((unsigned char)*time & 0xc0) == 0x80;)
                time++; /* the further bytes of the character */
        size_t n_digits = strspn(time, "0123456789");
        return n_digits > 0 && is_zone(time + n_digits, (size_t)(end - time) - n_digits);
}

/* Go's time.ParseDuration, but without its limit for large values: "1h30m", "-1.5s", "0". */
static bool is_go_duration(const char *text) {
        static const char *const units[] = {"ns", "us", "\u00b5s", "\u03bcs", "ms", "s", "m", "h"};

        if (*text == '+' || *text == '-')
                text++;
        if (strcmp(text, "0") == 0)
                return true;
        if (!*text)
                return false;
        while (*text) {
                size_t n = strspn(text, "0123456789"), n_fraction = 0, unit = 0;
                const size_t n_units = sizeof units / sizeof units[0];
                if (text[n] == '.')
                        n_fraction = 1 + strspn(text + n + 1, "0123456789");
                if (n == 0 && n_fraction < 2)
                        return false;
                text += n + n_fraction;
                n = strcspn(text, "0123456789.");
                while (unit < n_units &&
                       (strlen(units[unit]) != n || strncmp(text, units[unit], n) != 0))
                        unit++;
                if (unit == n_units)
                        return false;
                text += n;
        }
        return true;
}

/* Whether the n bytes are a unit of time, such as "s", "sec" or "seconds". As in Kubernetes, every
 * word that begins with one of the long names is a unit, for example "secret". */
static bool is_time_unit(const char *text, size_t n) {
        static const char *const exact[] = {"ns", "us", "\u00b5s", "ms", "s", "m",
                                            "h",  "hr", "d",       "w",  "wk"};
        static const char *const beginnings[] = {"nano", "micro", "milli", "sec",
                                                 "min",  "hour",  "day",   "week"};

        for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++)
                if (strlen(exact[i]) == n && strncasecmp(text, exact[i], n) == 0)
                        return true;
        for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
                if (strlen(beginnings[i]) <= n &&
                    strncasecmp(text, beginnings[i], strlen(beginnings[i])) == 0)
                        return true;
        return false;
}

/* Besides Go's form, a number with a unit of time somewhere in the text is enough: "2 days and
 * more". A number of more than 18 digits could overflow, and ends the search. */
static bool is_duration(const char *text) {
        if (is_go_duration(text))
                return true;
        while (*text) {
                size_t n = strspn(text, "0123456789"), n_unit = 0;
                if (n == 0) {
                        text++;
                        continue;
                }
                text += n;
                if (n > 18)
                        return false;
                text += strspn(text, " \t\n\r\f");
                while (isalpha((unsigned char)text[n_unit]) ||
                       strncmp(text + n_unit, "\u00b5", 2) == 0)
                        n_unit += text[n_unit] == '\xc2' ? 2 : 1;
                if (is_time_unit(text, n_unit))
                        return true;
                text += n_unit;
        }
        return false;
}

/* ---- numbers and identifiers ---- */

/* 32 hexadecimal digits, with or without a dash after the 8th, 12th, 16th and 20th. version: the
 * 13th digit; 0 = any. In versions 4 and 5 the 17th digit has the variant, 8 to b. */
static bool is_uuid_of(const char *text, char version) {
        int n = 0;

        for (; *text; text++) {
                if (*text == '-') {
                        if ((n != 8 && n != 12 && n != 16 && n != 20) || text[-1] == '-')
                                return false;
                        continue;
                }
                if (!isxdigit((unsigned char)*text))
                        return false;
                if (n == 12 && version && *text != version)
                        return false;
                if (n == 16 && (version == '4' || version == '5') && !strchr("89abAB", *text))
                        return false;
                n++;
        }
        return n == 32 && text[-1] != '-';
}

static bool is_uuid(const char *text) { return is_uuid_of(text, 0); }
static bool is_uuid3(const char *text) { return is_uuid_of(text, '3'); }
static bool is_uuid4(const char *text) { return is_uuid_of(text, '4'); }
static bool is_uuid5(const char *text) { return is_uuid_of(text, '5'); }

static bool is_hex(const char *text, size_t n) {
        return strlen(text) == n && strspn(text, "0123456789abcdefABCDEF") == n;
}

static bool is_object_id(const char *text) { return is_hex(text, 24); }

static bool is_hex_color(const char *text) {
        if (*text == '#')
                text++;
        return is_hex(text, 3) || is_hex(text, 6);
}

/* "rgb(0, 128, 255)" */
static bool is_rgb_color(const char *text) {
        static const char space[] = " \t\n\r\f";

        if (strncmp(text, "rgb(", 4) != 0)
                return false;
        text += 4;
        for (int i = 0; i < 3; i++) {
                text += strspn(text, space);
                size_t n = strspn(text, "0123456789");
                if (n == 0 || n > 3 || (n > 1 && *text == '0') || digits(text, (int)n) > 255)
                        return false;
                text += n + strspn(text + n, space);
                if (*text++ != (i < 2 ? ',' : ')'))
                        return false;
        }
        return *text == '\0';
}

/* Copies text without the characters of `without`. out has room for max bytes and the NUL. false:
 * the copy would have more than max bytes. */
static bool copy_without(const char *text, const char *without, char *out, size_t max) {
        size_t n = 0;

        for (; *text; text++) {
                if (strchr(without, *text))
                        continue;
                if (n == max)
                        return false;
                out[n++] = *text;
        }
        out[n] = '\0';
        return true;
}

/* In both forms of an ISBN, spaces and dashes do not count, and the last digit is a checksum. */
static bool is_isbn10(const char *text) {
        char plain[11];
        int sum = 0;

        if (!copy_without(text, " \t\n\r\f-", plain, 10) || strlen(plain) != 10 ||
            strspn(plain, "0123456789") < 9 || !strchr("0123456789X", plain[9]))
                return false;
        for (int i = 0; i < 9; i++)
                sum += (i + 1) * (plain[i] - '0');
        sum += 10 * (plain[9] == 'X' ? 10 : plain[9] - '0');
        return sum % 11 == 0;
}

static bool is_isbn13(const char *text) {
        char plain[14];
        int sum = 0;

        if (!copy_without(text, " \t\n\r\f-", plain, 13) || strlen(plain) != 13 ||
            strspn(plain, "0123456789") != 13)
                return false;
        for (int i = 0; i < 12; i++)
                sum += (i % 2 == 0 ? 1 : 3) * (plain[i] - '0');
        return plain[12] - '0' == (10 - sum % 10) % 10;
}

static bool is_isbn(const char *text) { return is_isbn10(text) || is_isbn13(text); }

/* Whether the digits have the length and beginning of a card of some kind. */
static bool is_card(const char *d) {
        size_t n = strlen(d);
        int two = digits(d, 2), three = digits(d, 3), four = digits(d, 4);

        if (*d == '4')
                return n == 13 || n == 16;
        if (n == 16)
                return (two >= 51 && two <= 55) || four == 6011 || two == 65 || two == 35;
        if (n == 15)
                return two == 34 || two == 37 || four == 2131 || four == 1800;
        return n == 14 && ((three >= 300 && three <= 305) || two == 36 || two == 38);
}

/* The digits have the checksum of credit cards (Luhn). Other characters do not count. */
static bool is_credit_card(const char *text) {
        char plain[17];
        size_t n = 0;
        int sum = 0;

        for (; *text; text++)
                if (isdigit((unsigned char)*text)) {
                        if (n == 16)
                                return false;
                        plain[n++] = *text;
                }
        plain[n] = '\0';
        if (n < 13 || !is_card(plain))
                return false;
        for (size_t i = 0; i < n; i++) {
                int digit = plain[n - 1 - i] - '0';
                if (i % 2 == 1)
                        digit = digit < 5 ? 2 * digit : 2 * digit - 9;
                sum += digit;
        }
        return sum % 10 == 0;
}

/* A social security number: "123-45-6789". */
static bool is_ssn(const char *text) {
        return strlen(text) == 11 && digits(text, 3) >= 0 && digits(text + 4, 2) >= 0 &&
               digits(text + 7, 4) >= 0 && strchr("- ", text[3]) && strchr("- ", text[6]);
}

/* Base64 with padding; not empty. It is stricter than hf__base64_check, which skips line breaks:
 * Kubernetes skips them in a []byte, but not in a text with this format. */
static bool is_base64(const char *text) {
        static const char alphabet[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        size_t n = strspn(text, alphabet), n_pad = strlen(text) - n;

        if (n == 0 || (n + n_pad) % 4 != 0 || n_pad > 2)
                return false;
        return strcmp(text + n, &"=="[2 - n_pad]) == 0;
}

static bool is_anything(const char *text) {
        (void)text;
        return true;
}

/* ---- names of Kubernetes ---- */

/* Small letters, digits and dashes, with a letter or a digit at both ends. dots: several such
 * parts, with dots between them. max: the most bytes. */
static bool is_name(const char *text, size_t max, bool dots) {
        size_t n = strlen(text);

        if (n == 0 || n > max)
                return false;
        for (size_t i = 0; i < n; i++) {
                const bool is_edge =
                        i == 0 || i + 1 == n || text[i - 1] == '.' || (text[i + 1] == '.' && dots);
                if (islower((unsigned char)text[i]) || isdigit((unsigned char)text[i]))
                        continue;
                if (is_edge || (text[i] != '-' && !(text[i] == '.' && dots)))
                        return false;
        }
        return true;
}

static bool is_short_name(const char *text) { return is_name(text, 63, false); }
static bool is_long_name(const char *text) { return is_name(text, 253, true); }

/* ---- the table ---- */

struct format {
        const char *name;                  /* without dashes */
        bool (*matches)(const char *text); /* text: ends with a NUL */
};

/* Few enough to be searched one by one. */
static const struct format formats_of_texts[] = {
        {"bsonobjectid", is_object_id},
        {"byte", is_base64},
        {"cidr", hfd_is_cidr},
        {"creditcard", is_credit_card},
        {"date", is_date},
        {"datetime", is_date_time},
        {"duration", is_duration},
        {"email", hfd_is_email},
        {"hexcolor", is_hex_color},
        {"hostname", hfd_is_internet_host},
        {"ipv4", hfd_is_ipv4},
        {"ipv6", hfd_is_ipv6},
        {"isbn", is_isbn},
        {"isbn10", is_isbn10},
        {"isbn13", is_isbn13},
        {"k8slongname", is_long_name},
        {"k8sshortname", is_short_name},
        {"mac", hfd_is_mac},
        {"password", is_anything},
        {"rgbcolor", is_rgb_color},
        {"ssn", is_ssn},
        {"uri", hfd_is_request_uri},
        {"uuid", is_uuid},
        {"uuid3", is_uuid3},
        {"uuid4", is_uuid4},
        {"uuid5", is_uuid5},
};

/* As in Kubernetes, dashes in the name of a format do not count. */
static const struct format *find_format(const char *format) {
        char name[NAME_MAX_BYTES];

        if (!copy_without(format, "-", name, sizeof name - 1))
                return NULL;
        for (size_t i = 0; i < sizeof formats_of_texts / sizeof formats_of_texts[0]; i++)
                if (strcmp(formats_of_texts[i].name, name) == 0)
                        return &formats_of_texts[i];
        return NULL;
}

bool hfd_custom_format_is_known(const char *format) { return find_format(format) != NULL; }

bool hfd_custom_format_matches(const char *format, const char *text) {
        const struct format *found = find_format(format);

        return !found || found->matches(text);
}
