/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that take or return strings. Positions in expressions count characters; those in
 * this file are offsets of bytes, unless they are called an index.
 *
 * Invariants: a function charges the bytes of its result to the run before it writes them. A part
 * of a string shares the bytes of the string. A step of work is some 16 bytes that are copied or
 * compared (run.c), and slower loops charge more; the call itself was charged before (charge.c).
 * Texts are valid UTF-8, but a loop over characters goes on past a malformed byte, so that it ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cel/functions/tables.h"
#include "cel/regex/unicode.h"

/* The byte at which character `index` begins; the length of the text for the one after the last.
 * SIZE_MAX: there is none. */
static size_t offset_of(struct hf__cel_value text, int64_t index) {
        int64_t count = 0;

        for (size_t i = 0; i < text.n; i++)
                if (((unsigned char)text.as.text[i] & 0xc0) != 0x80 && count++ == index)
                        return i;
        return count == index ? text.n : SIZE_MAX;
}

static int64_t characters_until(struct hf__cel_run *run, struct hf__cel_value text, size_t offset) {
        return (int64_t)hf__cel_size(run, hf__cel_string(text.as.text, offset));
}

static struct hf__cel_value out_of_range(struct hf__cel_run *run, int64_t index) {
        return hf__cel_errorf(run, "index out of range: %lld", (long long)index);
}

/* The first place of `part` at or after `from`. SIZE_MAX: there is none. The caller counts the
 * work. */
static size_t find_part(struct hf__cel_value text, struct hf__cel_value part, size_t from) {
        const char *found;

        if (part.n > text.n || from > text.n - part.n)
                return SIZE_MAX;
        if (part.n == 0)
                return from;
        found = memmem(text.as.text + from, text.n - from, part.as.text, part.n);
        return found ? (size_t)(found - text.as.text) : SIZE_MAX;
}

static struct hf__cel_value call_contains(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        if (!hf__cel_work(run, args[0].n / 16))
                return hf__cel_failure(run);
        return hf__cel_bool(find_part(args[0], args[1], 0) != SIZE_MAX);
}

static struct hf__cel_value starts_with(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        return hf__cel_bool(
                args[0].n >= args[1].n &&
                (args[1].n == 0 || memcmp(args[0].as.text, args[1].as.text, args[1].n) == 0));
}

static struct hf__cel_value ends_with(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        return hf__cel_bool(args[0].n >= args[1].n &&
                            (args[1].n == 0 || memcmp(args[0].as.text + args[0].n - args[1].n,
                                                      args[1].as.text, args[1].n) == 0));
}

/* The place after the last character is valid and gives an empty text, as in cel-go. */
static struct hf__cel_value char_at(struct hf__cel_run *run, const struct hf__cel_value *args,
                                    unsigned n) {
        size_t offset;
        size_t length;

        if (!hf__cel_work(run, args[0].n / 8))
                return hf__cel_failure(run);
        offset = args[1].as.i < 0 ? SIZE_MAX : offset_of(args[0], args[1].as.i);
        if (offset == SIZE_MAX)
                return out_of_range(run, args[1].as.i);
        length = offset < args[0].n ? hf__utf8_length(args[0].as.text + offset, args[0].n - offset)
                                    : 0;
        if (length == 0 && offset < args[0].n)
                length = 1;
        return hf__cel_string(args[0].as.text + offset, length);
}

/* Whether the index args[2], from which a search begins, already decides the result, as in cel-go:
 * an empty part is found at every index, even one outside of the text. For any other part a
 * negative index is an error, and from the end of the text on nothing is found. True: *ret_result
 * is set. False: the search begins at *ret_from. */
static bool decides_search(struct hf__cel_run *run, const struct hf__cel_value *args,
                           size_t *ret_from, struct hf__cel_value *ret_result) {
        if (args[1].n == 0) {
                *ret_result = args[2];
                return true;
        }
        *ret_result = args[2].as.i < 0 ? out_of_range(run, args[2].as.i) : hf__cel_int(-1);
        *ret_from = args[2].as.i < 0 ? SIZE_MAX : offset_of(args[0], args[2].as.i);
        return *ret_from >= args[0].n;
}

/* Indexes of CEL count characters, and the search is one of bytes. Text and part are valid UTF-8,
 * so a match begins at a character. */
static struct hf__cel_value index_of(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n) {
        struct hf__cel_value result;
        size_t from = 0;

        if (!hf__cel_work(run, args[0].n / 8))
                return hf__cel_failure(run);
        if (n > 2 && decides_search(run, args, &from, &result))
                return result;
        from = find_part(args[0], args[1], from);
        return hf__cel_int(from == SIZE_MAX ? -1 : characters_until(run, args[0], from));
}

/* The last place of a part of at most this many bytes is found by comparing at each place. With
 * longer ones the time would be the product of two sizes that a client chooses. */
#define SHORT_PART 64

static void put_reversed(char *out, const char *text, size_t n) {
        for (size_t i = 0; i < n; i++)
                out[i] = text[n - 1 - i];
}

/* The last place of a long part: the first one of the reversed part in the reversed text, which
 * memmem finds in linear time. `space` has room for both. Not inlined, because gcc 12 would move
 * the subtraction behind the caller's free, and warn that freed memory is used. */
__attribute__((noinline)) static size_t find_reversed(char *space, const char *text, size_t n,
                                                      const char *part, size_t n_part) {
        const char *found;

        put_reversed(space, text, n);
        put_reversed(space + n, part, n_part);
        found = memmem(space, n, space + n, n_part);
        return found ? n - (size_t)(found - space) - n_part : SIZE_MAX;
}

static size_t find_long_last(struct hf__cel_run *run, const char *text, size_t n, const char *part,
                             size_t n_part) {
        /* The arena would keep the reversed copy until the evaluation ends, so it is not used. */
        char *space = malloc(n + n_part);
        size_t at;

        if (!space) {
                run->failed = -ENOMEM;
                return SIZE_MAX;
        }
        at = find_reversed(space, text, n, part, n_part);
        free(space);
        return at;
}

/* The last place of `part` at or before `from`. SIZE_MAX: there is none, or the run has failed. The
 * text must be at least from + part.n bytes long. */
static size_t find_last(struct hf__cel_run *run, struct hf__cel_value text,
                        struct hf__cel_value part, size_t from) {
        if (part.n > SHORT_PART)
                return find_long_last(run, text.as.text, from + part.n, part.as.text, part.n);
        for (size_t at = from + 1; at-- > 0;)
                if (part.n == 0 || memcmp(text.as.text + at, part.as.text, part.n) == 0)
                        return at;
        return SIZE_MAX;
}

/* A step of work for each byte, and not for each eight as in index_of: a short part is compared at
 * each byte. */
static struct hf__cel_value last_index_of(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        struct hf__cel_value result;
        size_t at = args[0].n;

        if (!hf__cel_work(run, args[0].n))
                return hf__cel_failure(run);
        if (n > 2 && decides_search(run, args, &at, &result))
                return result;
        if (args[1].n > args[0].n)
                return hf__cel_int(-1);
        if (at > args[0].n - args[1].n)
                at = args[0].n - args[1].n;
        at = find_last(run, args[0], args[1], at);
        if (run->failed != 0)
                return hf__cel_failure(run);
        return hf__cel_int(at == SIZE_MAX ? -1 : characters_until(run, args[0], at));
}

static struct hf__cel_value call_substring(struct hf__cel_run *run,
                                           const struct hf__cel_value *args, unsigned n) {
        int64_t first = args[1].as.i;
        size_t start;
        size_t end = args[0].n;

        if (!hf__cel_work(run, args[0].n / 8))
                return hf__cel_failure(run);
        /* As in cel-go, this check comes before those of the limits of the text: the author sees
         * the message of the first check that fails. */
        if (n > 2 && first > args[2].as.i)
                return hf__cel_errorf(run, "invalid substring range. start: %lld, end: %lld",
                                      (long long)first, (long long)args[2].as.i);
        start = first < 0 ? SIZE_MAX : offset_of(args[0], first);
        if (start == SIZE_MAX)
                return out_of_range(run, first);
        if (n > 2)
                end = offset_of(args[0], args[2].as.i);
        if (end == SIZE_MAX)
                return out_of_range(run, args[2].as.i);
        return hf__cel_string(args[0].as.text + start, end - start);
}

/* lowerAscii and upperAscii change letters of ASCII only, so bytes are changed one by one, and the
 * length stays. */
static struct hf__cel_value change_case(struct hf__cel_run *run, struct hf__cel_value text,
                                        char first, char last) {
        struct hf__cel_value copy = hf__cel_copy_string(run, text.as.text, text.n);
        char *letters;

        if (hf__cel_is_error(copy))
                return copy;
        letters = hf__cel_alloc(run, copy.n + 1);
        if (!letters)
                return hf__cel_failure(run);
        for (uint32_t i = 0; i < copy.n; i++) {
                char c = copy.as.text[i];

                letters[i] = c >= first && c <= last ? (char)(c ^ 0x20) : c;
        }
        return hf__cel_string(letters, copy.n);
}

static struct hf__cel_value call_lower(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        return change_case(run, args[0], 'A', 'Z');
}

static struct hf__cel_value call_upper(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        return change_case(run, args[0], 'a', 'z');
}

static struct hf__cel_value call_trim(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        const char *text = args[0].as.text;
        size_t start = SIZE_MAX;
        size_t end = 0;

        if (!hf__cel_work(run, args[0].n / 8))
                return hf__cel_failure(run);
        for (size_t i = 0; i < args[0].n;) {
                uint32_t c = 0xfffd;
                size_t length = hf__utf8_decode(text + i, args[0].n - i, &c);

                length = length > 0 ? length : 1;
                if (!hf__cel_unicode_is_space(c)) {
                        start = start == SIZE_MAX ? i : start;
                        end = i + length;
                }
                i += length;
        }
        return start == SIZE_MAX ? hf__cel_string("", 0)
                                 : hf__cel_string(text + start, end - start);
}

/* The end of the part of a text that begins at `from`: it ends before the next separator, or at the
 * end of the text. If the separator is empty, the part is one character. */
static size_t part_end(struct hf__cel_value text, struct hf__cel_value separator, size_t from) {
        size_t end;

        if (separator.n > 0) {
                end = find_part(text, separator, from);
                return end == SIZE_MAX ? text.n : end;
        }
        return from < text.n ? hf__utf8_next(text.as.text, text.n, from) : text.n;
}

/* Divides a text at the separators into at most `limit` parts; a negative limit means any number.
 * Stores the parts in items, unless that is NULL. Returns their number. */
static size_t divide_text(struct hf__cel_value text, struct hf__cel_value separator, int64_t limit,
                          struct hf__cel_value *items) {
        size_t count = 0;
        size_t from = 0;

        if (limit == 0 || (separator.n == 0 && text.n == 0))
                return 0;
        for (;;) {
                size_t end = part_end(text, separator, from);

                if (limit > 0 && count + 1 == (uint64_t)limit)
                        end = text.n;
                if (items)
                        items[count] = hf__cel_string(text.as.text + from, end - from);
                count++;
                if (end == text.n)
                        return count;
                from = end + separator.n;
        }
}

static struct hf__cel_value call_split(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        int64_t limit = n > 2 ? args[2].as.i : -1;
        struct hf__cel_value *items;
        struct hf__cel_value list;

        if (!hf__cel_work(run, args[0].n / 4))
                return hf__cel_failure(run);
        /* The first pass counts the parts, so that the list gets the right size. The parts share
         * the bytes of the text. */
        list = hf__cel_new_list(run, divide_text(args[0], args[1], limit, NULL), &items);
        if (!hf__cel_is_error(list))
                divide_text(args[0], args[1], limit, items);
        return list;
}

/* The text of n bytes that a function fills. NULL: the run has failed. No limit allows SIZE_MAX / 4
 * bytes, so asking for them makes the run fail. */
static char *new_text(struct hf__cel_run *run, size_t n) {
        if (n >= UINT32_MAX || !hf__cel_work(run, n / 16))
                return hf__cel_alloc(run, SIZE_MAX / 4);
        return hf__cel_alloc(run, n + 1);
}

static struct hf__cel_value call_join(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        const struct hf__cel_list *list = args[0].as.list;
        struct hf__cel_value separator = n > 1 ? args[1] : hf__cel_string("", 0);
        size_t length = 0;
        char *text;
        char *at;

        for (size_t i = 0; i < list->n; i++) {
                struct hf__cel_value part = hf__cel_list_at(list, i);

                /* The list may be one of dyn, whose elements nobody has checked. */
                if (part.kind != HF__CEL_STRING)
                        return hf__cel_error_text("join: invalid input: not a string");
                length += part.n + (i > 0 ? separator.n : 0);
        }
        at = text = new_text(run, length);
        if (!text)
                return hf__cel_failure(run);
        for (size_t i = 0; i < list->n; i++) {
                struct hf__cel_value part = hf__cel_list_at(list, i);

                if (i > 0 && separator.n > 0)
                        at = mempcpy(at, separator.as.text, separator.n);
                if (part.n > 0)
                        at = mempcpy(at, part.as.text, part.n);
        }
        return hf__cel_string(text, length);
}

static struct hf__cel_value call_replace(struct hf__cel_run *run, const struct hf__cel_value *args,
                                         unsigned n) {
        struct hf__cel_value with = args[2];
        int64_t limit = n > 3 ? args[3].as.i : -1;
        struct hf__cel_value *parts;
        struct hf__cel_value list;
        struct hf__cel_value join_args[2];
        bool lead = args[1].n == 0;
        size_t count;

        if (limit == 0)
                return args[0];
        if (!hf__cel_work(run, args[0].n / 4))
                return hf__cel_failure(run);
        /* k replacements join k + 1 parts. If the searched text is empty, it also matches before
         * the first character, so the first part is empty. Then `lead` is true, and divide_text
         * makes only the other k parts. */
        if (limit < 0 || limit > (int64_t)args[0].n)
                limit = -1;
        else if (!lead)
                limit++;
        count = divide_text(args[0], args[1], limit, NULL);
        /* Two more: an empty text matches before the first character and after the last one. */
        list = hf__cel_new_list(run, count + 2, &parts);
        if (hf__cel_is_error(list))
                return list;
        parts[0] = hf__cel_string("", 0);
        divide_text(args[0], args[1], limit, parts + (lead ? 1 : 0));
        count += lead ? 1 : 0;
        if (lead && (limit < 0 || (uint64_t)limit >= count))
                parts[count++] = hf__cel_string("", 0);
        join_args[0] = hf__cel_sublist(run, list.as.list, 0, count);
        join_args[1] = with;
        return hf__cel_is_error(join_args[0]) ? join_args[0] : call_join(run, join_args, 2);
}

static struct hf__cel_value call_quote(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        static const char from[] = "\a\b\f\n\r\t\v\\\"";
        static const char to[] = "abfnrtv\\\"";
        /* A byte that belongs to no character becomes U+FFFD, which has three bytes. An escape has
         * two. */
        char *text = new_text(run, 3 * (size_t)args[0].n + 2);
        char *at = text;

        if (!text)
                return hf__cel_failure(run);
        *at++ = '"';
        for (size_t i = 0; i < args[0].n;) {
                const char *c = args[0].as.text + i;
                size_t length = hf__utf8_length(c, args[0].n - i);
                const char *escape = *c ? strchr(from, *c) : NULL;

                if (length == 0) {
                        at = mempcpy(at, "\xef\xbf\xbd", 3);
                        length = 1;
                } else if (escape) {
                        *at++ = '\\';
                        *at++ = to[escape - from];
                } else {
                        at = mempcpy(at, c, length);
                }
                i += length;
        }
        *at++ = '"';
        return hf__cel_string(text, (size_t)(at - text));
}

#define FIRST HF__CEL_COST_FIRST

const struct hf__cel_row hf__cel_strings[] = {
        {"contains", ".string(string) -> bool", call_contains, HF__CEL_COST_CONTAINS},
        {"startsWith", ".string(string) -> bool", starts_with, FIRST},
        {"endsWith", ".string(string) -> bool", ends_with, FIRST},
        {"charAt", ".string(int) -> string", char_at, HF__CEL_COST_ONE},
        {"indexOf", ".string(string) -> int", index_of, HF__CEL_COST_WALK},
        {"indexOf", ".string(string, int) -> int", index_of, HF__CEL_COST_WALK},
        {"lastIndexOf", ".string(string) -> int", last_index_of, HF__CEL_COST_WALK},
        {"lastIndexOf", ".string(string, int) -> int", last_index_of, HF__CEL_COST_WALK},
        {"join", ".list(string)() -> string", call_join, HF__CEL_COST_JOIN},
        {"join", ".list(string)(string) -> string", call_join, HF__CEL_COST_JOIN},
        {"lowerAscii", ".string() -> string", call_lower, FIRST},
        {"upperAscii", ".string() -> string", call_upper, FIRST},
        {"replace", ".string(string, string) -> string", call_replace, HF__CEL_COST_TWICE},
        {"replace", ".string(string, string, int) -> string", call_replace, HF__CEL_COST_TWICE},
        {"split", ".string(string) -> list(string)", call_split, HF__CEL_COST_TWICE},
        {"split", ".string(string, int) -> list(string)", call_split, HF__CEL_COST_TWICE},
        {"substring", ".string(int) -> string", call_substring, FIRST},
        {"substring", ".string(int, int) -> string", call_substring, FIRST},
        {"trim", ".string() -> string", call_trim, FIRST},
        {"strings.quote", "(string) -> string", call_quote, FIRST},
        {NULL, NULL, NULL, HF__CEL_COST_ONE},
};
