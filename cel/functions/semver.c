/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of versions as semver.org 2.0.0 defines them:
 * semver('1.2.3-rc.1+x').isLessThan(semver('1.2.3')).
 *
 * Invariant: a version refers to the text that it was read from, which lives as long as the
 * evaluation.
 */
#include <assert.h>
#include <string.h>

#include "cel/functions/tables.h"

#include "base/text.h"

struct version {
        struct hf__cel_opaque opaque;
        uint64_t numbers[3];
        const char *pre; /* "rc.1"; without the dash */
        size_t n_pre;
};

static bool is_identifier(char c) {
        return hf__is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

/* Reads a number without leading zeros, unless these are allowed. NULL: malformed. The numbers have
 * 64 bits, as in the Go library that Kubernetes uses. */
static const char *take_number(const char *at, const char *end, bool zeros, uint64_t *ret_number) {
        const char *start = at;

        *ret_number = 0;
        for (; at < end && hf__is_digit(*at); at++)
                if (__builtin_mul_overflow(*ret_number, 10, ret_number) ||
                    __builtin_add_overflow(*ret_number, (uint64_t)(*at - '0'), ret_number))
                        return NULL;
        if (at == start || (!zeros && at - start > 1 && *start == '0'))
                return NULL;
        return at;
}

/* Whether the text is a list of identifiers with dots between them. numbers: an identifier of
 * digits alone must be a number of 64 bits without leading zeros. Build metadata need not, because
 * it is never compared. */
static bool is_list(const char *at, const char *end, bool numbers) {
        for (;;) {
                const char *start = at;
                bool digits = true;
                uint64_t number;

                for (; at < end && is_identifier(*at); at++)
                        digits = digits && hf__is_digit(*at);
                if (at == start || (numbers && digits && !take_number(start, at, false, &number)))
                        return false;
                if (at == end)
                        return true;
                if (*at++ != '.')
                        return false;
        }
}

/* Parses a version. Returns NULL, or what is wrong with the text. */
static const char *parse_version(struct hf__cel_value text, bool normalize,
                                 struct version *version) {
        const char *at = text.as.text;
        const char *end = at + text.n;
        const char *build;

        *version = (struct version){.opaque.type = &hf__cel_semver_type};
        if (text.n == 0)
                return normalize ? "Invalid character(s) found in major number \"\""
                                 : "Version string empty";
        /* With normalize, Kubernetes accepts what versions often look like: v1.2, 1.02.3. */
        if (normalize && *at == 'v')
                at++;
        for (size_t i = 0; i < 3; i++) {
                /* Numbers that are missing are 0. */
                if (i > 0 && at == end && normalize)
                        return NULL;
                if (i > 0 && (at == end || *at != '.'))
                        return normalize && at < end && (*at == '-' || *at == '+')
                                       ? "short version cannot contain PreRelease/Build meta data"
                                       : "No Major.Minor.Patch elements found";
                /* Kubernetes puts a 0 before a last part that begins otherwise: 1.2.-rc. */
                if (i == 2 && normalize && end - at > 2 && (at[1] == '-' || at[1] == '+')) {
                        at++;
                        break;
                }
                at = take_number(i > 0 ? at + 1 : at, end, normalize, &version->numbers[i]);
                if (!at)
                        return "Invalid number in version";
        }
        /* Build metadata has no part in the order, so it is checked and not kept. */
        build = memchr(at, '+', (size_t)(end - at));
        if (build && !is_list(build + 1, end, false))
                return "Invalid build meta data";
        if (build)
                end = build;
        if (at == end)
                return NULL;
        version->pre = at + 1;
        version->n_pre = (size_t)(end - at) - 1;
        return *at == '-' && is_list(at + 1, end, true) ? NULL : "Invalid PreRelease";
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
        const char *error;

        if (!version)
                return hf__cel_failure(run);
        error = parse_version(args[0], n > 1 && args[1].as.boolean, version);
        version->opaque.equal = versions_equal;
        version->opaque.n_text = version->n_pre;
        return error ? hf__cel_error_text(error) : hf__cel_opaque_value(&version->opaque);
}

static struct hf__cel_value is_semver(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        struct version version;

        return hf__cel_bool(!parse_version(args[0], n > 1 && args[1].as.boolean, &version));
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

/* The lists may be as long as the texts, so the comparison is charged for their length: for that of
 * both, because it also looks for the end of the first identifier of each. */
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
