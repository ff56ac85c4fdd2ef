/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles a regular expression: reads it into a tree (syntax.c), and writes the program that a
 * search follows (search.c).
 *
 * Invariants: the program has at most HF__CEL_REGEX_SIZE_MAX instructions. It is written into
 * memory that is allocated once, for the size that the tree needs (size_of). Writing stops at that
 * size, and at VISITS_MAX, because a part that needs no instruction takes time when it is repeated.
 * So repetitions of repetitions, which multiply, cost neither much memory nor much time. The tree
 * and this memory are in an arena of the compilation. Only a program that is complete is copied to
 * the caller's arena, with its sets, because the sets of the tree may take many times the memory of
 * their copies.
 */
#include "cel/regex/regex_program.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "cel/regex/regex.h"

#define START_WORK  50 /* of any compilation, beside what depends on the pattern */
#define STEP_WRITES 4  /* instructions that are written, or nodes visited, in a step of work */
/* Nodes visited to write the instructions: enough for a character in 100 groups, each of which has
 * two nodes, that is repeated 1,000 times. */
#define VISITS_MAX 250000

struct writer {
        struct hf__cel_instruction *instructions; /* room for `max`; in the arena of the tree */
        uint32_t n;
        uint32_t max;
        uint32_t n_visits; /* of nodes */
        bool full;         /* an instruction had no room, or VISITS_MAX: the program is useless */
};

static void write_node(struct writer *w, const struct hf__cel_regex_node *node);

/* Appends an instruction that goes to the next one. Never NULL. */
static struct hf__cel_instruction *emit_instruction(struct writer *w,
                                                    enum hf__cel_instruction_kind kind) {
        struct hf__cel_instruction *instruction;

        if (w->n == w->max) {
                /* compile_in reports the failure at the end, so that no caller has to pass it on.
                 * Until then callers may write to the last instruction. */
                w->full = true;
                return &w->instructions[w->n - 1];
        }
        assert(w->n < w->max);
        instruction = &w->instructions[w->n++];
        *instruction = (struct hf__cel_instruction){.kind = kind, .x = w->n, .y = w->n};
        return instruction;
}

/* Appends a split that goes to the next instruction and to one that set_other sets later. */
static struct hf__cel_instruction *emit_split(struct writer *w) {
        return emit_instruction(w, HF__CEL_DO_SPLIT);
}

/* lazy: `other` is preferred to the next instruction. */
static void set_other(struct hf__cel_instruction *split, bool lazy, uint32_t other) {
        if (lazy)
                split->x = other;
        else
                split->y = other;
}

/* Each alternative except the last begins with a split, which also goes to the next alternative,
 * and ends with a jump to the end of the choice. Until the end is known, the jumps form a list. */
static void write_choice(struct writer *w, const struct hf__cel_regex_node *node) {
        uint32_t jumps = UINT32_MAX; /* the last jump; its x is the index of the one before */

        for (const struct hf__cel_regex_node *child = node->child; child && !w->full;
             child = child->next) {
                struct hf__cel_instruction *split = child->next ? emit_split(w) : NULL;

                write_node(w, child);
                if (split) {
                        emit_instruction(w, HF__CEL_DO_JUMP)->x = jumps;
                        jumps = w->n - 1;
                        set_other(split, false, w->n);
                }
        }
        while (jumps != UINT32_MAX && !w->full) {
                uint32_t before = w->instructions[jumps].x;

                w->instructions[jumps].x = w->n;
                jumps = before;
        }
}

/* Writes a loop of one or more rounds: the child, and then a split that also goes back to it. */
static void write_plus(struct writer *w, const struct hf__cel_regex_node *node) {
        uint32_t start = w->n;

        write_node(w, node->child);
        if (w->n > start)
                set_other(emit_split(w), !node->lazy, start);
}

/* Writes a loop of any number of rounds. In x*, a round in which x matches the empty text ends the
 * repetition, and that end is preferred to the later alternatives of x. A loop back to a split
 * before x would never come to that end, because add_way (search.c) has already visited the split
 * at this place of the text. So for such an x, (x+)? is written, as in Go. */
static void write_star(struct writer *w, const struct hf__cel_regex_node *node) {
        uint32_t start = w->n;
        struct hf__cel_instruction *split = emit_split(w);

        if (node->child->nullable) {
                write_plus(w, node);
        } else {
                write_node(w, node->child);
                emit_instruction(w, HF__CEL_DO_JUMP)->x = start;
        }
        set_other(split, node->lazy, w->n);
}

/* Writes the child `min` times, and then the optional rounds. If there is no maximum, a loop stands
 * in place of the last of the `min` times, or alone if `min` is 0. */
static void write_repeat(struct writer *w, const struct hf__cel_regex_node *node) {
        bool loop = node->max == HF__CEL_NO_MAX;
        uint32_t splits = UINT32_MAX; /* the last split; its other way is the one before */
        uint32_t needed = loop && node->min > 0 ? node->min - 1 : node->min;
        uint32_t optional = loop ? 0 : node->max - node->min;

        for (uint32_t i = 0; i < needed && !w->full; i++) {
                uint32_t before = w->n;

                write_node(w, node->child);
                if (w->n == before)
                        break; /* the child needs no instruction, so its repetitions must not take
                                  time */
        }
        if (loop && node->min > 0)
                write_plus(w, node);
        else if (loop)
                write_star(w, node);
        /* Each optional round begins with a split, which also goes to the end of all rounds. Until
         * the end is known, the splits form a list. */
        for (uint32_t i = 0; i < optional && !w->full; i++) {
                set_other(emit_split(w), node->lazy, splits);
                splits = w->n - 1;
                write_node(w, node->child);
        }
        while (splits != UINT32_MAX && !w->full) {
                struct hf__cel_instruction *split = &w->instructions[splits];
                uint32_t before = node->lazy ? split->x : split->y;

                set_other(split, node->lazy, w->n);
                splits = before;
        }
}

static void write_node(struct writer *w, const struct hf__cel_regex_node *node) {
        if (w->n_visits >= VISITS_MAX)
                w->full = true;
        if (w->full)
                return;
        w->n_visits++;
        switch (node->kind) {
        case HF__CEL_REGEX_EMPTY: break;
        case HF__CEL_REGEX_SET: emit_instruction(w, HF__CEL_DO_SET)->set = &node->set; break;
        case HF__CEL_REGEX_ASSERTION:
                emit_instruction(w, HF__CEL_DO_ASSERT)->assertion = node->assertion;
                break;
        case HF__CEL_REGEX_SEQUENCE:
                for (const struct hf__cel_regex_node *c = node->child; c && !w->full; c = c->next)
                        write_node(w, c);
                break;
        case HF__CEL_REGEX_CHOICE: write_choice(w, node); break;
        case HF__CEL_REGEX_REPEAT: write_repeat(w, node); break;
        }
}

/* Whether every match begins at the beginning of the text. Only the first parts of the pattern are
 * looked at, so the result may be false for such a pattern; that costs only time. A search of an
 * anchored pattern ends at the first character that does not fit. */
static bool is_anchored(const struct hf__cel_regex_node *node) {
        while ((node->kind == HF__CEL_REGEX_CHOICE || node->kind == HF__CEL_REGEX_SEQUENCE) &&
               node->child) {
                if (node->kind == HF__CEL_REGEX_CHOICE && node->child->next)
                        return false;
                node = node->child;
        }
        return node->kind == HF__CEL_REGEX_ASSERTION && node->assertion == HF__CEL_BEGIN_TEXT;
}

/* The most instructions that a node can need. More than HF__CEL_REGEX_SIZE_MAX count as that many,
 * at each level of the tree, so no product overflows. The recursion is as deep as the tree, which
 * syntax.c limits. */
static uint64_t size_of(const struct hf__cel_regex_node *node) {
        uint64_t size = 0;

        switch (node->kind) {
        case HF__CEL_REGEX_EMPTY: return 0;
        case HF__CEL_REGEX_SET:
        case HF__CEL_REGEX_ASSERTION: return 1;
        case HF__CEL_REGEX_SEQUENCE:
        case HF__CEL_REGEX_CHOICE:
                for (const struct hf__cel_regex_node *c = node->child; c; c = c->next)
                        size += size_of(c) + (node->kind == HF__CEL_REGEX_CHOICE ? 2 : 0);
                break;
        case HF__CEL_REGEX_REPEAT:
                size = size_of(node->child);
                if (node->max == HF__CEL_NO_MAX)
                        size = size * (node->min > 0 ? node->min : 1) + 2;
                else
                        size = size * node->max + node->max - node->min;
                break;
        }
        return size < HF__CEL_REGEX_SIZE_MAX ? size : HF__CEL_REGEX_SIZE_MAX;
}

/* Allocates a part of the regex, and counts it. NULL: out of memory. */
static void *keep_block(struct hf__arena *arena, struct hf__cel_regex *regex, size_t n) {
        regex->n_bytes += n;
        return hf__arena_alloc(arena, n);
}

/* The copy of a set of the tree, which is made once: the instructions of a repetition share it.
 * NULL: out of memory. */
static const struct hf__cel_set *keep_set(struct hf__arena *arena, struct hf__cel_regex *regex,
                                          const struct hf__cel_set *set) {
        size_t n = set->n * sizeof *set->ranges;
        struct hf__cel_set *kept;

        if (set->kept)
                return set->kept;
        kept = keep_block(arena, regex, sizeof *kept + n);
        if (!kept)
                return NULL;
        *kept = *set;
        kept->ranges = (struct hf__cel_range *)(void *)(kept + 1);
        kept->space = set->n;
        if (n > 0)
                memcpy(kept->ranges, set->ranges, n);
        /* The tree is the compilation's own, so it may change. */
        ((struct hf__cel_set *)(uintptr_t)set)->kept = kept;
        return kept;
}

/* Copies the finished program, with its sets, to the caller's arena. NULL: out of memory. */
static struct hf__cel_regex *keep_program(struct hf__arena *arena, const struct writer *w) {
        struct hf__cel_regex *regex = hf__arena_alloc(arena, sizeof *regex);
        size_t n = w->n * sizeof *w->instructions;

        if (!regex)
                return NULL;
        *regex = (struct hf__cel_regex){.n = w->n, .n_bytes = sizeof *regex};
        regex->instructions = keep_block(arena, regex, n);
        if (!regex->instructions)
                return NULL;
        memcpy(regex->instructions, w->instructions, n);
        for (uint32_t i = 0; i < regex->n; i++) {
                struct hf__cel_instruction *instruction = &regex->instructions[i];

                if (instruction->kind != HF__CEL_DO_SET)
                        continue;
                instruction->set = keep_set(arena, regex, instruction->set);
                if (!instruction->set)
                        return NULL;
        }
        return regex;
}

/* Compiles in the arena of the maker, and copies the complete program to `arena`. */
static int compile_in(struct hf__cel_set_maker *maker, struct hf__arena *arena, const char *text,
                      size_t n, const struct hf__cel_regex **ret_regex, char *reterr_message,
                      size_t max_message) {
        struct hf__cel_regex_node *root;
        struct hf__cel_regex *regex;
        struct writer w = {.n = 0};
        int r = hf__cel_regex_parse(maker, text, n, &root, reterr_message, max_message);

        if (r != 0)
                return r;
        /* One more for the MATCH. */
        w.max = (uint32_t)size_of(root) + 1;
        w.instructions = hf__arena_alloc(maker->arena, w.max * sizeof *w.instructions);
        if (!w.instructions)
                return -ENOMEM;
        write_node(&w, root);
        emit_instruction(&w, HF__CEL_DO_MATCH);
        maker->work += ((uint64_t)w.n + w.n_visits) / STEP_WRITES;
        if (w.full || w.n > HF__CEL_REGEX_SIZE_MAX) {
                snprintf(reterr_message, max_message, "error parsing regexp: expression too large");
                return HF_E_TOO_LARGE;
        }
        regex = keep_program(arena, &w);
        if (!regex)
                return -ENOMEM;
        regex->anchored = is_anchored(root);
        *ret_regex = regex;
        return 0;
}

int hf__cel_regex_compile(struct hf__arena *arena, const char *text, size_t n,
                          const struct hf__cel_regex **ret_regex, char *reterr_message,
                          size_t max_message, uint64_t *ret_work) {
        struct hf__arena scratch;
        struct hf__cel_set_maker maker = {.arena = &scratch, .work = START_WORK + n};
        int r;

        hf__arena_init(&scratch);
        r = compile_in(&maker, arena, text, n, ret_regex, reterr_message, max_message);
        hf__arena_deinit(&scratch);
        *ret_work = maker.work;
        return r;
}
