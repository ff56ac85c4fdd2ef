/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches a text for a pattern. The search follows all ways through the program at the same time,
 * one character after the other (Thompson's algorithm, as in RE2). So the time is at most the
 * length of the text times the size of the program; a search that tries one way after the other can
 * need exponentially many steps.
 *
 * Invariants: an instruction is in a list of ways at most once, so that a character costs at most
 * the size of the program, and loops of empty matches end. A list is in the order of preference:
 * the first way that matches wins, and those after it are dropped.
 */
#include <assert.h>
#include <string.h>

#include "base/assert_costly.h"
#include "base/utf8.h"
#include "cel/regex/regex.h"
#include "cel/regex/regex_program.h"
#include "cel/values/run.h"

/* A way through the program that fits the text so far. */
struct way {
        uint32_t at;  /* the index of the SET or MATCH instruction that comes next */
        size_t start; /* the byte of the text at which the match begins */
};

struct ways {
        struct way *items;
        uint32_t n;
};

struct search {
        const struct hf__cel_regex *regex;
        struct hf__cel_run *run;
        const char *text; /* borrowed */
        size_t n;
        uint64_t *visited; /* for each instruction: the last round that reached it */
        uint64_t round;    /* counts the places in the text, from 1 */
        uint32_t *stack;   /* of add_way */
        struct ways now;   /* the ways at the current place */
        struct ways next;  /* the ways after the current character */
        uint64_t steps;    /* instructions visited since the last charge */
};

/* Whether the byte is a character of a word. As in RE2, only ASCII counts, so a byte is enough. */
static bool is_word(const struct search *s, size_t at) {
        unsigned char c = (unsigned char)s->text[at];

        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '_';
}

/* Whether the assertion holds between the bytes at - 1 and `at`. */
static bool assertion_holds(const struct search *s, enum hf__cel_assertion assertion, size_t at) {
        bool word_before = at > 0 && is_word(s, at - 1);
        bool word_after = at < s->n && is_word(s, at);

        switch (assertion) {
        case HF__CEL_BEGIN_TEXT: return at == 0;
        case HF__CEL_END_TEXT: return at == s->n;
        case HF__CEL_BEGIN_LINE: return at == 0 || s->text[at - 1] == '\n';
        case HF__CEL_END_LINE: return at == s->n || s->text[at] == '\n';
        case HF__CEL_WORD_EDGE: return word_before != word_after;
        case HF__CEL_NO_WORD_EDGE: return word_before == word_after;
        }
        return false;
}

/* Adds a way for each SET and MATCH instruction that can be reached from the instruction `from`
 * without reading a character. start: where the match begins; at: the current byte. The function
 * has a stack of its own in place of recursion, because a program may have thousands of
 * instructions. */
static void add_way(struct search *s, struct ways *ways, uint32_t from, size_t start, size_t at) {
        uint32_t n_stack = 0;

        s->stack[n_stack++] = from;
        while (n_stack > 0) {
                hf__assert_costly(n_stack <= 2 * s->regex->n + 2);
                uint32_t i = s->stack[--n_stack];
                const struct hf__cel_instruction *instruction = &s->regex->instructions[i];

                s->steps++;
                if (s->visited[i] == s->round)
                        continue;
                s->visited[i] = s->round;
                switch (instruction->kind) {
                case HF__CEL_DO_SPLIT:
                        /* The preferred way is pushed last, so it is taken first and stands first
                         * in the list. */
                        s->stack[n_stack++] = instruction->y;
                        s->stack[n_stack++] = instruction->x;
                        break;
                case HF__CEL_DO_JUMP: s->stack[n_stack++] = instruction->x; break;
                case HF__CEL_DO_ASSERT:
                        if (assertion_holds(s, instruction->assertion, at))
                                s->stack[n_stack++] = instruction->x;
                        break;
                case HF__CEL_DO_SET:
                case HF__CEL_DO_MATCH:
                        hf__assert_costly(ways->n < s->regex->n); /* each instruction once */
                        ways->items[ways->n++] = (struct way){.at = i, .start = start};
                        break;
                }
        }
}

/* Divides the scratch memory of the run among the arrays. Later searches use the memory again;
 * otherwise the function findAll would allocate for each match. False: the run has failed. */
static bool prepare_search(struct search *s) {
        size_t n = s->regex->n;
        size_t need = n * sizeof *s->visited + 2 * n * sizeof *s->now.items +
                      (2 * n + 2) * sizeof *s->stack;
        char *memory;

        if (s->run->n_scratch < need) {
                s->run->scratch = hf__cel_alloc(s->run, need);
                s->run->n_scratch = s->run->scratch ? need : 0;
        }
        if (!s->run->scratch || !hf__cel_work(s->run, n / 8))
                return false;
        memory = s->run->scratch;
        s->visited = (uint64_t *)(void *)memory;
        memory += n * sizeof *s->visited;
        s->now.items = (struct way *)(void *)memory;
        memory += n * sizeof *s->now.items;
        s->next.items = (struct way *)(void *)memory;
        memory += n * sizeof *s->next.items;
        /* A split pushes two, but each instruction is expanded once. */
        s->stack = (uint32_t *)(void *)memory;
        memset(s->visited, 0, n * sizeof *s->visited);
        return true;
}

/* Advances all ways in `now` over the character c, which occupies the bytes from `at` to `after`,
 * and puts them into `next`. at_end: there is no character. Returns whether a way has matched at
 * `at`; the ways after it in the list, which are less preferred, are then dropped. */
static bool advance_ways(struct search *s, uint32_t c, bool at_end, size_t at, size_t after,
                         size_t *ret_start, size_t *ret_end) {
        s->round++;
        s->next.n = 0;
        for (uint32_t i = 0; i < s->now.n; i++) {
                struct way way = s->now.items[i];
                const struct hf__cel_instruction *instruction = &s->regex->instructions[way.at];

                if (instruction->kind == HF__CEL_DO_MATCH) {
                        *ret_start = way.start;
                        *ret_end = at;
                        return true; /* alternatives with less preference are ignored */
                }
                if (!at_end && hf__cel_set_has(instruction->set, c))
                        add_way(s, &s->next, way.at + 1, way.start, after);
        }
        return false;
}

bool hf__cel_regex_find(const struct hf__cel_regex *regex, struct hf__cel_run *run,
                        const char *text, size_t n, size_t from, size_t *ret_start,
                        size_t *ret_end) {
        struct search s = {.regex = regex, .run = run, .text = text, .n = n, .round = 1};
        bool found = false;
        size_t start = 0;
        size_t end = 0;

        assert(from <= n && (ret_start != NULL) == (ret_end != NULL));
        if (!prepare_search(&s))
                return false;
        for (size_t at = from;;) {
                struct ways swapped;
                uint32_t c = 0xfffd;
                size_t length = at < n ? hf__utf8_decode(text + at, n - at, &c) : 1;

                if (length == 0) {
                        length = 1;
                        c = 0xfffd;
                }
                /* The leftmost match wins, so after the first match no way begins further to the
                 * right. */
                if (!found && (!regex->anchored || at == 0))
                        add_way(&s, &s.now, 0, at, at);
                /* Eight instructions are one unit of work: they take about as long as other steps
                 * do. */
                if (!hf__cel_work(run, 1 + (s.steps + s.now.n) / 8))
                        return false;
                s.steps = 0;
                if (advance_ways(&s, c, at >= n, at, at + length, &start, &end))
                        found = true;
                /* Without ret_start nobody asks where the match is, so the first one ends the
                 * search. Otherwise a way that is preferred may still make it longer. */
                if (at >= n || (found && (!ret_start || s.next.n == 0)) ||
                    (s.next.n == 0 && regex->anchored))
                        break;
                swapped = s.now;
                s.now = s.next;
                s.next = swapped;
                at += length;
        }
        if (found && ret_start) {
                *ret_start = start;
                *ret_end = end;
        }
        return found;
}
