/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the patterns that an evaluation computes, and keeps them by their texts: in a loop
 * within another one the same few patterns are wanted thousands of times.
 *
 * Invariants: a pattern is compiled into the memory of the run, which has a limit, and the work of
 * compiling and of finding it is charged. At most half of the slots are taken, so a search ends; an
 * author of an expression who makes many texts with the same hash pays for each slot that the
 * search visits. A pattern that only a limit of ours refuses fails the run, because Kubernetes
 * would search for it.
 */
#include "cel/functions/computed_pattern.h"

#include <errno.h>
#include <string.h>

#include <holdfast/error.h>

#include "cel/regex/regex.h"
#include "cel/regex/regex_program.h"
#include "cel/values/run.h"

#define SLOTS_MIN  16 /* a power of two */
#define STEP_BYTES 16 /* of a text that are hashed or compared in a step of work */

/* A text refers to what lives as long as the run: its memory, the program or the inputs. */
struct hf__cel_pattern {
        const char *text;
        uint32_t n;
        const struct hf__cel_regex *regex; /* NULL: the slot is free */
};

/* FNV-1a. */
static uint64_t hash_of(const char *text, size_t n) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (size_t i = 0; i < n; i++)
                hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
        return hash ^ hash >> 32;
}

/* The slot of the pattern, or the free one where it belongs. NULL: the run has failed. */
static struct hf__cel_pattern *find_slot(struct hf__cel_run *run, struct hf__cel_value pattern) {
        const size_t mask = run->patterns_space - 1;
        size_t i = hash_of(pattern.as.text, pattern.n) & mask;

        while (hf__cel_work(run, 1 + pattern.n / STEP_BYTES)) {
                struct hf__cel_pattern *slot = &run->patterns[i];

                if (!slot->regex ||
                    (slot->n == pattern.n && memcmp(slot->text, pattern.as.text, slot->n) == 0))
                        return slot;
                i = (i + 1) & mask;
        }
        return NULL;
}

/* Makes room for one more pattern. The space doubles, and the old one stays in the arena, so n
 * patterns take time and memory in proportion to n. false: the run has failed. */
static bool grow_slots(struct hf__cel_run *run) {
        struct hf__cel_pattern *old = run->patterns;
        size_t n_old = run->patterns_space;

        if (run->n_patterns < n_old / 2)
                return true;
        run->patterns_space = n_old > 0 ? 2 * n_old : SLOTS_MIN;
        run->patterns = hf__cel_alloc(run, run->patterns_space * sizeof *run->patterns);
        if (!run->patterns)
                return false;
        memset(run->patterns, 0, run->patterns_space * sizeof *run->patterns);
        for (size_t i = 0; i < n_old; i++) {
                const struct hf__cel_value text = {.kind = HF__CEL_STRING,
                                                   .n = old[i].n,
                                                   .as.text = old[i].text};
                struct hf__cel_pattern *slot = old[i].regex ? find_slot(run, text) : NULL;

                if (slot)
                        *slot = old[i];
        }
        return run->failed == 0;
}

static const struct hf__cel_regex *compile_pattern(struct hf__cel_run *run,
                                                   struct hf__cel_value pattern,
                                                   struct hf__cel_value *ret_error) {
        const struct hf__cel_regex *regex;
        char message[400];
        uint64_t work;
        int r = hf__cel_regex_compile(run->arena, pattern.as.text, pattern.n, &regex, message,
                                      sizeof message, &work);

        if (r < 0)
                run->failed = r;
        /* Work and memory are known, and counted, afterwards. They exceed their limits by one
         * pattern at most, because then the run has failed. An invalid pattern takes work, too. */
        if (hf__cel_work(run, work) && r == 0 && hf__cel_reserve(run, regex->n_bytes))
                return regex;
        *ret_error = run->failed != 0 ? hf__cel_failure(run) : hf__cel_errorf(run, "%s", message);
        if (r == HF_E_TOO_LARGE)
                *ret_error = hf__cel_exceed(run, ret_error->as.text);
        return NULL;
}

/* Invalid patterns are not kept. Nobody wants one many times. */
const struct hf__cel_regex *hf__cel_computed_pattern(struct hf__cel_run *run,
                                                     struct hf__cel_value pattern,
                                                     struct hf__cel_value *ret_error) {
        struct hf__cel_pattern *slot;

        if (pattern.n > HF__CEL_PATTERN_MAX) {
                *ret_error = hf__cel_exceed(run, "the pattern is too long");
                return NULL;
        }
        slot = grow_slots(run) ? find_slot(run, pattern) : NULL;
        if (!slot) {
                *ret_error = hf__cel_failure(run);
                return NULL;
        }
        if (slot->regex)
                return slot->regex;
        *slot = (struct hf__cel_pattern){.text = pattern.as.text, .n = (uint32_t)pattern.n};
        slot->regex = compile_pattern(run, pattern, ret_error);
        run->n_patterns += slot->regex ? 1 : 0;
        return slot->regex;
}
