/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the value of one flag.
 *
 * Invariants: a value that is out of range is refused, never changed to the nearest limit. No
 * message repeats a password (base/redact.h).
 */
#include "server/config/flag_value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/redact.h"
#include "base/time_format.h"

/* Reports a value that cannot be parsed or is out of range. The message is the same for both,
 * because it contains both rules. Not for a TEXT, FILE or DIRECTORY: these are never refused. */
static int refuse_value(const struct hfd_flag *flag, const char *value,
                        struct hf_status *reterr_status) {
        char shown[101], min[32], max[32];

        (void)hf__redact(value, shown, sizeof shown);
        if (flag->kind == HFD_FLAG_BOOL)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flag --%s: \"%s\" is neither true nor false", flag->name, shown);
        if (flag->kind == HFD_FLAG_CHOICE)
                return hf_fail(reterr_status, HF_E_INVALID, "flag --%s: \"%s\" is not one of %s",
                               flag->name, shown, flag->choices);
        if (flag->kind == HFD_FLAG_NUMBER)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flag --%s: \"%s\" is not a whole number from %lld to %lld",
                               flag->name, shown, (long long)flag->min, (long long)flag->max);
        hf__duration_format(flag->min, min);
        hf__duration_format(flag->max, max);
        return hf_fail(reterr_status, HF_E_INVALID,
                       "flag --%s: \"%s\" is not a duration such as 15s or 1m30s from %s to %s",
                       flag->name, shown, min, max);
}

/* Parses a NUMBER or DURATION into *member, an int64_t. */
static int set_number(const struct hfd_flag *flag, const char *value, void *member,
                      struct hf_status *reterr_status) {
        char *end = NULL;
        int64_t number = 0;
        errno = 0;
        if (flag->kind == HFD_FLAG_NUMBER) /* -1 is below each min */
                number = value[0] >= '0' && value[0] <= '9' ? strtoll(value, &end, 10) : -1;
        else if (hf__duration_parse(value, &number) != 0)
                return refuse_value(flag, value, reterr_status);
        /* strtoll sets errno if the number does not fit in 64 bits. */
        if (errno != 0 || (end && *end) || number < flag->min || number > flag->max)
                return refuse_value(flag, value, reterr_status);
        memcpy(member, &number, sizeof number);
        return 0;
}

/* Sets *member, an int64_t, to the index of the word. */
static int set_choice(const struct hfd_flag *flag, const char *value, void *member,
                      struct hf_status *reterr_status) {
        size_t n_value = strlen(value);
        int64_t index = 0;

        for (const char *word = flag->choices; word; index++) {
                size_t n = strcspn(word, "|");
                if (n == n_value && memcmp(word, value, n) == 0) {
                        memcpy(member, &index, sizeof index);
                        return 0;
                }
                word = word[n] ? word + n + 1 : NULL;
        }
        return refuse_value(flag, value, reterr_status);
}

/* The words are those of Go's strconv.ParseBool, because users of Kubernetes know them. */
bool hfd_flag_value_parse_bool(const char *value, bool *ret_yes) {
        static const char *const words[2][6] = {{"false", "False", "FALSE", "f", "F", "0"},
                                                {"true", "True", "TRUE", "t", "T", "1"}};

        for (size_t i = 0; i < 12; i++)
                if (strcmp(value, words[i / 6][i % 6]) == 0) {
                        *ret_yes = i / 6 == 1;
                        return true;
                }
        return false;
}

int hfd_flag_value_set(const struct hfd_flag *flag, const char *value, struct hfd_config *config,
                       struct hf_status *reterr_status) {
        void *member = (char *)config + flag->offset;
        char *copy;
        switch (flag->kind) {
        case HFD_FLAG_TEXT:
        case HFD_FLAG_FILE:
        case HFD_FLAG_DIRECTORY:
                copy = strdup(value);
                if (!copy)
                        return hf_fail(reterr_status, -ENOMEM, "out of memory");
                free(*(char **)member);
                *(char **)member = copy;
                return 0;
        case HFD_FLAG_BOOL:
                return hfd_flag_value_parse_bool(value, member)
                               ? 0
                               : refuse_value(flag, value, reterr_status);
        case HFD_FLAG_NUMBER:
        case HFD_FLAG_DURATION: return set_number(flag, value, member, reterr_status);
        case HFD_FLAG_CHOICE: return set_choice(flag, value, member, reterr_status);
        }
        return -EINVAL;
}

int hfd_flag_value_append(const struct hfd_flag *flag, const char *value, struct hfd_config *config,
                          struct hf_status *reterr_status) {
        char **member = (char **)((char *)config + flag->offset), *joined;

        if (asprintf(&joined, "%s,%s", *member, value) < 0)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        free(*member);
        *member = joined;
        return 0;
}
