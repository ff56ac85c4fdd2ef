/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the patterns of a schema.
 *
 * Invariant: once the effort has exceeded a limit (compile/effort.h), no further pattern is
 * compiled, and one cause says so.
 */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "server/resources/custom/schema/compile/compile.h"
#include "server/resources/custom/schema/structure/structure.h"

static int compare_texts(const void *a, const void *b) { return strcmp(a, b); }

void hfd_structure_patterns_done(struct hfd_structure *structure) {
        while (structure->patterns)
                (void)tdelete(*(char **)structure->patterns, &structure->patterns, compare_texts);
}

/* Compiles the pattern only to find out whether it is valid. Returns whether it is. If not, there
 * is a cause; if memory runs out, the causes note that, and the result is false. */
static bool is_valid(struct hfd_structure *structure, const char *pattern,
                     const struct hfd_structure_path *path) {
        const struct hf__cel_regex *regex;
        char message[200] = "", detail[300];
        struct hf__arena arena;
        uint64_t work;

        hf__arena_init(&arena);
        int r = hfd_custom_pattern_compile(&arena, pattern, &regex, message, sizeof message, &work);
        hf__arena_deinit(&arena);
        structure->effort->work += work;
        if (hfd_causes_check(structure->causes, r) || r == -ENOMEM)
                return r == 0;
        (void)snprintf(detail, sizeof detail, "must be a valid regular expression, but isn't: %s",
                       message);
        hfd_structure_refuse_text(structure, path, "pattern", pattern, detail);
        return false;
}

void hfd_structure_check_pattern(struct hfd_structure *structure, const struct hf__json *props,
                                 const struct hfd_structure_path *path) {
        const char *pattern = hfd_structure_text(props, "pattern");

        if (!*pattern || hfd_schema_effort_problem(structure->effort) ||
            tfind(pattern, &structure->patterns, compare_texts))
                return;
        bool valid = is_valid(structure, pattern, path);
        /* The tree refers to the text in the definition, which stays until the end of the check. */
        if (valid && !tsearch(pattern, &structure->patterns, compare_texts))
                hfd_causes_no_memory(structure->causes);
        if (hfd_schema_effort_problem(structure->effort))
                hfd_structure_forbid(structure, path, "pattern",
                                     hfd_schema_effort_problem(structure->effort));
}
