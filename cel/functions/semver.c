/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of versions as semver.org 2.0.0 defines them:
 * semver('1.2.3-rc.1+x').isLessThan(semver('1.2.3')).
 *
 * Invariant: a version refers to the text that it was read from, which lives as long as the
 * evaluation.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "base/text.h"
#include "cel/functions/tables.h"

struct version {
        struct hf__cel_opaque opaque;
        uint64_t numbers[3];
        const char *pre; /* "rc.1"; without the dash */
        size_t n_pre;
};

static bool is_identifier(char c) {
        return hf__is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

#define WHY_MAX 300 /* bytes of a message, with the NUL */

/* A part of the text of a version. */
struct part {
        const char *text;
        size_t n;
        bool has_zero; /* it counts as if a 0 stood before it */
};

/* Writes the message: `what`, the part in quotes, which is cut if it is long, and `after`. Returns
 * false. */
static bool refuse_part(char why[WHY_MAX], const char *what, const struct part *part,
                        const char *after) {
        char quoted[160];

        hf__quote_bytes(part->text, part->n, quoted, sizeof quoted);
        (void)snprintf(why, WHY_MAX, "%s\"%s%s%s", what, part->has_zero ? "0" : "", quoted + 1,
                       after);
        return false;
}

static bool is_digits(const struct part *part) {
        for (size_t i = 0; i < part->n; i++)
                if (!hf__is_digit(part->text[i]))
                        return false;
        return !part->has_zero || part->n == 0;
}

static bool is_identifiers(const struct part *part) {
        for (size_t i = 0; i < part->n; i++)
                if (!is_identifier(part->text[i]))
                        return false;
        return true;
}

/* Reads digits. The numbers have 64 bits, as in the Go library that Kubernetes uses. */
static bool read_digits(const struct part *part, uint64_t *ret_number, char why[WHY_MAX]) {
        *ret_number = 0;
        if (part->n == 0 && !part->has_zero)
                return refuse_part(why, "strconv.ParseUint: parsing ", part, ": invalid syntax");
        for (size_t i = 0; i < part->n; i++)
                if (__builtin_mul_overflow(*ret_number, 10, ret_number) ||
                    __builtin_add_overflow(*ret_number, (uint64_t)(part->text[i] - '0'),
                                           ret_number))
                        return refuse_part(why, "strconv.ParseUint: parsing ", part,
                                           ": value out of range");
        return true;
}

/* Reads one of the three numbers. False: `why` has a message. `invalid` is its beginning if the
 * part is not a number, and `zeros` if the number has leading zeros. */
static bool read_number(const struct part *part, const char *invalid, const char *zeros,
                        uint64_t *ret_number, char why[WHY_MAX]) {
        if (!is_digits(part))
                return refuse_part(why, invalid, part, "");
        if (part->n > 1 && part->text[0] == '0')
                return refuse_part(why, zeros, part, "");
        return read_digits(part, ret_number, why);
}

/* Gets the identifier of the list that begins at *at, and moves *at to the next one. The caller
 * sets *at to 0 first. False: the list has no further identifier. */
static bool next_identifier(const struct part *list, size_t *at, struct part *ret_part) {
        const char *dot;

        if (*at > list->n)
                return false;
        dot = memchr(list->text + *at, '.', list->n - *at);
        *ret_part = (struct part){.text = list->text + *at};
        ret_part->n = dot ? (size_t)(dot - ret_part->text) : list->n - *at;
        *at += ret_part->n + 1;
        return true;
}

static bool check_prerelease(const struct part *list, char why[WHY_MAX]) {
        struct part part;
        uint64_t number;

        for (size_t at = 0; next_identifier(list, &at, &part);) {
                if (part.n == 0) {
                        (void)snprintf(why, WHY_MAX, "Prerelease is empty");
                        return false;
                }
                if (!is_identifiers(&part))
                        return refuse_part(why, "Invalid character(s) found in prerelease ", &part,
                                           "");
                if (!is_digits(&part))
                        continue;
                if (part.n > 1 && part.text[0] == '0')
                        return refuse_part(why,
                                           "Numeric PreRelease version must not contain leading "
                                           "zeroes ",
                                           &part, "");
                if (!read_digits(&part, &number, why))
                        return false;
        }
        return true;
}

/* Build metadata has no part in the order, so it is checked and not kept. */
static bool check_build(const struct part *list, char why[WHY_MAX]) {
        struct part part;

        for (size_t at = 0; next_identifier(list, &at, &part);) {
                if (part.n == 0) {
                        (void)snprintf(why, WHY_MAX, "Build meta data is empty");
                        return false;
                }
                if (!is_identifiers(&part))
                        return refuse_part(why, "Invalid character(s) found in build meta data ",
                                           &part, "");
        }
        return true;
}

/* With normalize, Kubernetes removes leading zeros. Then it puts one zero before a rest that is
 * empty or does not begin with a digit, as in 1.2.-rc. A part of one byte is not changed. */
static void normalize_part(struct part *part) {
        if (part->n <= 1)
                return;
        while (part->n > 0 && *part->text == '0') {
                part->text++;
                part->n--;
        }
        part->has_zero = part->n == 0 || !hf__is_digit(*part->text);
}

/* Divides the text at its first two dots into three parts. With normalize, Kubernetes accepts what
 * versions often look like: v1.2, 1.02.3; a missing part is 0. False, with a message in `why`:
 * there are fewer than three parts, and normalize is false or the last part has a '-' or '+'. */
static bool divide_text(struct hf__cel_value text, bool normalize, struct part parts[3],
                        char why[WHY_MAX]) {
        static const char zero[] = "0";
        const char *at = text.as.text, *end = at + text.n;
        size_t n = 0;

        if (normalize && at < end && *at == 'v')
                at++;
        for (;;) {
                const char *dot = n < 2 ? memchr(at, '.', (size_t)(end - at)) : NULL;
                parts[n++] = (struct part){.text = at, .n = (size_t)((dot ? dot : end) - at)};
                if (!dot)
                        break;
                at = dot + 1;
        }
        for (size_t i = 0; normalize && i < n; i++)
                normalize_part(&parts[i]);
        if (n < 3 && normalize &&
            (memchr(parts[n - 1].text, '+', parts[n - 1].n) ||
             memchr(parts[n - 1].text, '-', parts[n - 1].n))) {
                (void)snprintf(why, WHY_MAX,
                               "short version cannot contain PreRelease/Build meta data");
                return false;
        }
        while (n < 3 && normalize)
                parts[n++] = (struct part){.text = zero, .n = 1};
        if (n == 3)
                return true;
        (void)snprintf(why, WHY_MAX, "%s",
                       text.n == 0 ? "Version string empty"
                                   : "No Major.Minor.Patch elements found");
        return false;
}

/* Cuts off what follows the first `mark`. False: there is none. */
static bool cut_list(struct part *part, char mark, struct part *ret_list) {
        const char *at = memchr(part->text, mark, part->n);

        if (!at)
                return false;
        ret_list->text = at + 1;
        ret_list->n = part->n - (size_t)(at + 1 - part->text);
        part->n = (size_t)(at - part->text);
        return true;
}

/* Parses a version. False: the text is none, and why has the message of Kubernetes' library. */
static bool parse_version(struct hf__cel_value text, bool normalize, struct version *version,
                          char why[WHY_MAX]) {
        struct part parts[3], pre = {0}, build = {0};

        *version = (struct version){.opaque.type = &hf__cel_semver_type};
        if (!divide_text(text, normalize, parts, why) ||
            !read_number(&parts[0], "Invalid character(s) found in major number ",
                         "Major number must not contain leading zeroes ", &version->numbers[0],
                         why) ||
            !read_number(&parts[1], "Invalid character(s) found in minor number ",
                         "Minor number must not contain leading zeroes ", &version->numbers[1],
                         why))
                return false;
        const bool has_build = cut_list(&parts[2], '+', &build),
                   has_pre = cut_list(&parts[2], '-', &pre);
        if (!read_number(&parts[2], "Invalid character(s) found in patch number ",
                         "Patch number must not contain leading zeroes ", &version->numbers[2],
                         why) ||
            (has_pre && !check_prerelease(&pre, why)) || (has_build && !check_build(&build, why)))
                return false;
        version->pre = pre.text;
        version->n_pre = pre.n;
        return true;
}

/* The length of the first identifier. */
static size_t first_part_length(const char *list, size_t n) {
        const char *dot = memchr(list, '.', n);

        return dot ? (size_t)(dot - list) : n;
}

static bool is_number(const char *text, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!hf__is_digit(text[i]))
                        return false;
        return true;
}

/* Identifiers of digits alone are compared as numbers, and come before the others. They have no
 * leading zeros, so a longer one is a greater one, and none needs a conversion. */
static int compare_identifiers(const char *a, size_t n_a, const char *b, size_t n_b) {
        bool number = is_number(a, n_a);
        int r;

        if (number != is_number(b, n_b))
                return number ? -1 : 1;
        if (number && n_a != n_b)
                return n_a < n_b ? -1 : 1;
        r = memcmp(a, b, n_a < n_b ? n_a : n_b);
        return r != 0 ? r : (n_a > n_b) - (n_a < n_b);
}

/* A version without a pre-release list is newer than those with one. */
static int compare_lists(const struct version *a, const struct version *b) {
        size_t i = 0;
        size_t k = 0;

        if (a->n_pre == 0 || b->n_pre == 0)
                return (a->n_pre == 0) - (b->n_pre == 0);
        while (i < a->n_pre && k < b->n_pre) {
                size_t n_a = first_part_length(a->pre + i, a->n_pre - i);
                size_t n_b = first_part_length(b->pre + k, b->n_pre - k);
                int r = compare_identifiers(a->pre + i, n_a, b->pre + k, n_b);

                if (r != 0)
                        return r;
                i += n_a + 1;
                k += n_b + 1;
        }
        /* All identifiers that both have are equal. The version with more of them is newer. */
        return (i < a->n_pre) - (k < b->n_pre);
}

static int compare_versions(const struct version *a, const struct version *b) {
        int r;

        for (size_t i = 0; i < 3; i++)
                if (a->numbers[i] != b->numbers[i])
                        return a->numbers[i] < b->numbers[i] ? -1 : 1;
        r = compare_lists(a, b);
        return (r > 0) - (r < 0);
}

static const struct version *version_of(struct hf__cel_value value) {
        assert(value.kind == HF__CEL_OPAQUE && value.as.opaque->type == &hf__cel_semver_type);
        return (const struct version *)(const void *)value.as.opaque;
}

static bool versions_equal(const struct hf__cel_opaque *a, const struct hf__cel_opaque *b) {
        return compare_versions((const struct version *)(const void *)a,
                                (const struct version *)(const void *)b) == 0;
}

static struct hf__cel_value call_semver(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        struct version *version = hf__cel_alloc(run, sizeof *version);
        char why[WHY_MAX];

        if (!version)
                return hf__cel_failure(run);
        if (!parse_version(args[0], n > 1 && args[1].as.boolean, version, why))
                return hf__cel_errorf(run, "%s", why);
        version->opaque.equal = versions_equal;
        version->opaque.n_text = version->n_pre;
        return hf__cel_opaque_value(&version->opaque);
}

static struct hf__cel_value is_semver(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        struct version version;

        char why[WHY_MAX];

        return hf__cel_bool(parse_version(args[0], n > 1 && args[1].as.boolean, &version, why));
}

/* As in Kubernetes, a number of 2^63 or more becomes a negative int. */
static struct hf__cel_value major_number(struct hf__cel_run *run, const struct hf__cel_value *args,
                                         unsigned n) {
        return hf__cel_int((int64_t)version_of(args[0])->numbers[0]);
}

static struct hf__cel_value minor_number(struct hf__cel_run *run, const struct hf__cel_value *args,
                                         unsigned n) {
        return hf__cel_int((int64_t)version_of(args[0])->numbers[1]);
}

static struct hf__cel_value patch_number(struct hf__cel_run *run, const struct hf__cel_value *args,
                                         unsigned n) {
        return hf__cel_int((int64_t)version_of(args[0])->numbers[2]);
}

/* A pre-release list may be as long as the text of its version, so the comparison is charged. The
 * charge is for both lists, even if one is short: the comparison looks for the end of the first
 * identifier in each. */
static bool order_of_args(struct hf__cel_run *run, const struct hf__cel_value *args,
                          int *ret_order) {
        const struct version *a = version_of(args[0]);
        const struct version *b = version_of(args[1]);

        *ret_order = 0;
        if (!hf__cel_work(run, (a->n_pre + b->n_pre) / 8))
                return false;
        *ret_order = compare_versions(a, b);
        return true;
}

static struct hf__cel_value compare_to(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        int r;

        return order_of_args(run, args, &r) ? hf__cel_int(r) : hf__cel_failure(run);
}

static struct hf__cel_value is_less(struct hf__cel_run *run, const struct hf__cel_value *args,
                                    unsigned n) {
        int r;

        return order_of_args(run, args, &r) ? hf__cel_bool(r < 0) : hf__cel_failure(run);
}

static struct hf__cel_value is_greater(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        int r;

        return order_of_args(run, args, &r) ? hf__cel_bool(r > 0) : hf__cel_failure(run);
}

#define S     "kubernetes.Semver"
#define ONE   HF__CEL_COST_ONE
#define FIRST HF__CEL_COST_FIRST

const struct hf__cel_type hf__cel_semver_type = {.kind = HF__CEL_OPAQUE, .weight = 1, .name = S};

const struct hf__cel_row hf__cel_semvers[] = {
        {"semver", "(string) -> " S, call_semver, FIRST},
        {"semver", "(string, bool) -> " S, call_semver, FIRST},
        {"isSemver", "(string) -> bool", is_semver, FIRST},
        {"isSemver", "(string, bool) -> bool", is_semver, FIRST},
        {"major", "." S "() -> int", major_number, ONE},
        {"minor", "." S "() -> int", minor_number, ONE},
        {"patch", "." S "() -> int", patch_number, ONE},
        {"compareTo", "." S "(" S ") -> int", compare_to, ONE},
        {"isLessThan", "." S "(" S ") -> bool", is_less, ONE},
        {"isGreaterThan", "." S "(" S ") -> bool", is_greater, ONE},
        {NULL, NULL, NULL, ONE},
};
