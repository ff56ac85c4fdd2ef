/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the patterns of a schema, each text once.
 *
 * Invariant: a compiled pattern (a program) is kept without what only its compilation needed. The
 * function that compiles it has large variables, so it is not inlined into those that recurse.
 */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "cel/regex/regex.h"
#include "cel/regex/regex_program.h"
#include "server/resources/custom/schema/compile/compile.h"

int hfd_custom_pattern_compile(struct hf__arena *arena, const char *text,
                               const struct hf__cel_regex **ret_regex, char *reterr_message,
                               size_t max_message, uint64_t *ret_work) {
        size_t n = strlen(text);
        int r;

        *ret_work = 0;
        if (n > HF__CEL_PATTERN_MAX) {
                (void)snprintf(reterr_message, max_message, "expression too large");
                return HF_E_INVALID;
        }
        r = hf__cel_regex_compile(arena, text, n, ret_regex, reterr_message, max_message, ret_work);
        return r == HF_E_TOO_LARGE ? HF_E_INVALID : r;
}

/* For tsearch: patterns by their texts. */
static int compare_patterns(const void *a, const void *b) {
        const struct hfd_custom_pattern *x = a, *y = b;

        return strcmp(x->text, y->text);
}

/* Copies a set of characters into kept pieces. NULL: compiler->error is set. */
static const struct hf__cel_set *keep_set(struct hfd_schema_compiler *compiler,
                                          const struct hf__cel_set *set) {
        struct hf__cel_set copy;

        memset(&copy, 0, sizeof copy);
        copy.n = copy.space = set->n;
        memcpy(copy.ascii, set->ascii, sizeof copy.ascii);
        if (set->n > 0) {
                /* Nothing changes a finished set. */
                copy.ranges =
                        (struct hf__cel_range *)hfd_compile_keep(compiler, set->ranges,
                                                                 set->n * sizeof set->ranges[0]);
        }
        return hfd_compile_keep(compiler, &copy, sizeof copy);
}

/* The same for a program, without what only its compilation needed. Repeated sets are kept once. */
static const struct hf__cel_regex *keep_regex(struct hfd_schema_compiler *compiler,
                                              const struct hf__cel_regex *regex) {
        struct hf__cel_instruction *list = calloc(regex->n, sizeof *list);
        const struct hf__cel_set *last = NULL, *last_kept = NULL;
        const struct hf__cel_regex *kept = NULL;
        struct hf__cel_regex copy;

        memset(&copy, 0, sizeof copy);
        if (!list)
                hfd_compile_fail(compiler, -ENOMEM);
        for (uint32_t i = 0; list && i < regex->n && compiler->error == 0; i++) {
                list[i] = regex->instructions[i];
                if (list[i].kind != HF__CEL_DO_SET || !list[i].set)
                        continue;
                /* A repetition that was written out has the same set many times. */
                if (list[i].set != last) {
                        last = list[i].set;
                        last_kept = keep_set(compiler, last);
                }
                list[i].set = last_kept;
        }
        if (compiler->error == 0) {
                copy.instructions =
                        (struct hf__cel_instruction *)hfd_compile_keep(compiler, list,
                                                                       regex->n * sizeof *list);
                copy.n = regex->n;
                copy.anchored = regex->anchored;
                kept = hfd_compile_keep(compiler, &copy, sizeof copy);
        }
        free(list);
        return kept;
}

/* Counts the work of compiling a pattern, and the bytes that it has added to the kept pieces. Not
 * only each pattern is limited, but also the sums: a definition may have thousands. Patterns that
 * differ often have the same sets, which are kept once and so counted once. */
static void count_effort(struct hfd_schema_compiler *compiler, size_t n_bytes, uint64_t work) {
        if (!compiler->effort)
                return;
        compiler->effort->n_bytes += n_bytes;
        compiler->effort->work += work;
        if (hfd_schema_effort_problem(compiler->effort))
                hfd_compile_fail(compiler, HF_E_TOO_LARGE);
}

/* Compiles a pattern in an arena of its own, because the pieces of the program are then copied, and
 * most of them may be kept already. A mistake in a stored pattern, or a limit that an older server
 * did not have, is kept as an error of the pattern: as in Kubernetes, it refuses every text, and
 * the rest of the schema stays in force.
 */
__attribute__((noinline)) static void compile_regex(struct hfd_schema_compiler *compiler,
                                                    struct hfd_custom_pattern *pattern) {
        const size_t n_before = compiler->keeper.n_bytes;
        const struct hf__cel_regex *regex = NULL;
        struct hf__arena arena;
        char message[400];
        uint64_t work;

        hf__arena_init(&arena);
        int r = hfd_custom_pattern_compile(&arena, pattern->text, &regex, message, sizeof message,
                                           &work);
        if (r == 0)
                pattern->regex = keep_regex(compiler, regex);
        else if (r > 0 && !compiler->effort)
                pattern->error = hfd_compile_text(compiler, message);
        else
                hfd_compile_fail(compiler, r);
        hf__arena_deinit(&arena);
        count_effort(compiler, compiler->keeper.n_bytes - n_before, work);
}

/* Patterns often occur many times in a schema. */
const struct hfd_custom_pattern *hfd_compile_pattern(struct hfd_schema_compiler *compiler,
                                                     const char *text) {
        struct hfd_custom_pattern wanted;

        memset(&wanted, 0, sizeof wanted); /* the keeper compares bytes */
        wanted.text = text;
        void *found = tfind(&wanted, &compiler->patterns, compare_patterns);
        if (found)
                return *(const struct hfd_custom_pattern **)found;
        wanted.text = hfd_compile_text(compiler, text);
        if (compiler->error == 0)
                compile_regex(compiler, &wanted);
        if (compiler->error != 0)
                return NULL;
        const struct hfd_custom_pattern *pattern =
                hfd_compile_keep(compiler, &wanted, sizeof wanted);
        if (pattern && !tsearch(pattern, &compiler->patterns, compare_patterns))
                hfd_compile_fail(compiler, -ENOMEM);
        return pattern;
}

void hfd_compile_patterns_done(struct hfd_schema_compiler *compiler) {
        while (compiler->patterns)
                (void)tdelete(*(struct hfd_custom_pattern **)compiler->patterns,
                              &compiler->patterns, compare_patterns);
}
