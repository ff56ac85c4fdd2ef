/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Regular expressions in the syntax of RE2, searched in linear time: the time of a search is at
 * most the length of the text times the size of the program, whatever both contain. There are no
 * back-references and no lookaround. Classes such as \pL and \p{Greek}, and (?i), follow Unicode
 * (unicode_ranges.h, unicode_folds.h).
 *
 * Ownership: a regex belongs to the arena. Thread: any, since it does not change.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__arena;
struct hf__cel_run;
struct hf__cel_regex;

/* Instructions of a program, after repetitions are written out. */
#define HF__CEL_REGEX_SIZE_MAX 5000
/* Bytes of a pattern; the caller checks this. */
#define HF__CEL_PATTERN_MAX 10000
/* Work of reading a pattern: a few milliseconds. Only classes can need that much, for example 60
 * times (?i)\pL. The parser may exceed it by one part of the pattern, or by sorting one class. */
#define HF__CEL_REGEX_WORK_MAX 300000

/* Compiles a pattern of n bytes. Returns 0, -ENOMEM, HF_E_INVALID (Go refuses the pattern, too) or
 * HF_E_TOO_LARGE (the pattern exceeds a limit that Go does not have, or has higher). The last two
 * come with a message in reterr_message, which is cut to max_message bytes, its NUL included.
 * Only the program takes memory of the arena: HF_E_INVALID and HF_E_TOO_LARGE leave nothing there,
 * -ENOMEM may leave a part of the program. *ret_work gets the work that was done, also after a
 * failure, for hf__cel_work or another limit of the caller. */
int hf__cel_regex_compile(struct hf__arena *arena, const char *text, size_t n,
                          const struct hf__cel_regex **ret_regex, char *reterr_message,
                          size_t max_message, uint64_t *ret_work);

/*
 * Finds the leftmost match that begins at or after byte `from` of the n bytes of the text; of
 * several that begin at the same place, the one that the order of the alternatives prefers.
 * *ret_start and *ret_end get its first byte and the byte after it. If both are NULL, the search
 * only finds out whether there is a match, which is quicker. The search charges its work to the
 * run, and uses the run's scratch memory. False: there is no match, or the run has failed.
 */
bool hf__cel_regex_find(const struct hf__cel_regex *regex, struct hf__cel_run *run,
                        const char *text, size_t n, size_t from, size_t *ret_start,
                        size_t *ret_end);
