/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dependencies between hooks: which hooks a hook starts after.
 *
 * Registration is closed when this code runs, so the list of hooks does not change and is read
 * without the lock.
 *
 * Invariant: after success the dependencies contain no cycle. So there is always a hook that can
 * start next, and one that can stop next.
 */
#include "hooks/dependencies.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hooks/hook_registry.h"

static size_t index_of(const struct hf_hooks *hooks, const struct hf_hook_context *hook) {
        size_t i = 0;

        while (hooks->list[i] != hook) {
                i++;
                assert(i < hooks->n);
        }
        return i;
}

enum mark { UNSEEN, ON_STACK, FREE_OF_CYCLES };

/* A depth-first search. It has an explicit stack, because the depth depends on the number of hooks,
 * and threads have small stacks. */
struct search {
        struct hf_hooks *hooks;
        enum mark *marks;               /* by index in hooks->list; owned */
        struct hf_hook_context **stack; /* owned */
        /* for each hook on the stack, the index of its next dependency to visit; owned */
        size_t *next;
        size_t n; /* number of hooks on the stack */
};

static void push_hook(struct search *search, struct hf_hook_context *hook) {
        assert(search->n < search->hooks->n);
        search->marks[index_of(search->hooks, hook)] = ON_STACK;
        search->stack[search->n] = hook;
        search->next[search->n] = 0;
        search->n++;
}

/* Writes the cycle from hook up to the top of the stack and back to hook, in the form `"a" after
 * "b" after "a"`. */
static void describe_cycle(const struct search *search, const struct hf_hook_context *hook,
                           char *text, size_t max_text) {
        size_t first = 0, used = 0;

        while (search->stack[first] != hook)
                first++;
        for (size_t i = first; i <= search->n && used < max_text; i++) {
                const char *name = search->stack[i < search->n ? i : first]->name;
                int n = snprintf(text + used, max_text - used, "%s\"%s\"",
                                 i > first ? " after " : "", name);
                used += n > 0 ? (size_t)n : 0;
        }
}

/* Looks for a cycle that can be reached from root. */
static int find_cycle(struct search *search, struct hf_hook_context *root,
                      struct hf_status *reterr_status) {
        push_hook(search, root);
        while (search->n > 0) {
                struct hf_hook_context *top = search->stack[search->n - 1];
                size_t *next = &search->next[search->n - 1];
                if (*next == top->n_after) {
                        search->marks[index_of(search->hooks, top)] = FREE_OF_CYCLES;
                        assert(search->n > 0);
                        search->n--;
                        continue;
                }
                struct hf_hook_context *dependency = top->dependencies[(*next)++];
                enum mark mark = search->marks[index_of(search->hooks, dependency)];
                if (mark == ON_STACK) {
                        char cycle[320];
                        describe_cycle(search, dependency, cycle, sizeof cycle);
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "hooks wait for each other in a cycle: %s", cycle);
                }
                if (mark == UNSEEN)
                        push_hook(search, dependency);
        }
        return 0;
}

static int check_for_cycles(struct hf_hooks *hooks, struct hf_status *reterr_status) {
        size_t n = hooks->n + 1; /* calloc(0) may return NULL */
        struct search search = {.hooks = hooks,
                                .marks = calloc(n, sizeof *search.marks),
                                .stack = calloc(n, sizeof(struct hf_hook_context *)),
                                .next = calloc(n, sizeof *search.next)};
        int r = 0;

        if (!search.marks || !search.stack || !search.next)
                r = hf_fail(reterr_status, -ENOMEM, "hooks: out of memory");
        for (size_t i = 0; r == 0 && i < hooks->n; i++)
                if (search.marks[i] == UNSEEN)
                        r = find_cycle(&search, hooks->list[i], reterr_status);
        free(search.marks);
        free(search.stack);
        free(search.next);
        return r;
}

static struct hf_hook_context *find_hook(const struct hf_hooks *hooks, const char *name) {
        for (size_t i = 0; i < hooks->n; i++)
                if (strcmp(hooks->list[i]->name, name) == 0)
                        return hooks->list[i];
        return NULL;
}

int hf__hook_dependencies_resolve(struct hf_hooks *hooks, struct hf_status *reterr_status) {
        for (size_t i = 0; i < hooks->n; i++) {
                struct hf_hook_context *hook = hooks->list[i];
                for (size_t k = 0; k < hook->n_after; k++) {
                        hook->dependencies[k] = find_hook(hooks, hook->after[k]);
                        if (!hook->dependencies[k])
                                return hf_fail(reterr_status, HF_E_INVALID,
                                               "hook \"%s\" (by %s) is after \"%s\", which is not "
                                               "registered",
                                               hook->name, hook->caller, hook->after[k]);
                }
        }
        return check_for_cycles(hooks, reterr_status);
}
