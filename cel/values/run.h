/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One evaluation: its memory and its limits. The limits count steps and bytes, never time, so that
 * an evaluation ends in the same way everywhere, unless the caller's `watch` ends it. Owner and
 * thread: the caller's, for the time of one evaluation.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/values/value.h"

struct hf__arena;
struct hf__cel_pattern;
struct hf__cel_zones;

struct hf__cel_run {
        struct hf__arena *arena;
        const struct hf__cel_zones *zones;  /* may be NULL */
        const struct hf__cel_value *inputs; /* of the declared variables */
        struct hf__cel_value *locals;       /* of macros */
        /* The cost as Kubernetes counts it: about one for each step. */
        uint64_t cost;
        uint64_t cost_limit;
        /* Steps of work inside of single operations, for example elements that == compares. */
        uint64_t work;
        uint64_t work_limit;
        /* The caller looks at the run when one of these is exceeded (struct hf__cel_limits). */
        uint64_t cost_pause;
        uint64_t work_pause;
        int (*watch)(void *ctx, uint64_t cost, uint64_t work); /* NULL: nobody watches */
        void *watch_ctx;
        size_t n_bytes;
        size_t bytes_limit;
        size_t *shared_bytes; /* the caller's; NULL: none */
        size_t shared_bytes_limit;
        /* The part of the program that was prepared for the call that runs now: a compiled pattern.
         * May be NULL. */
        const void *prepared;
        /* A hash table of the patterns that the evaluation has computed so far
         * (functions/computed_pattern.c). */
        struct hf__cel_pattern *patterns;
        size_t n_patterns;
        size_t patterns_space; /* 0, or a power of two */
        /* The memory of a search for a pattern, which the next search uses again. May be NULL. */
        void *scratch;
        size_t n_scratch;
        /* HF_E_TOO_LARGE: a limit was exceeded; -ENOMEM; or what `watch` has returned. Then the
         * evaluation ends; no operator absorbs this. */
        int failed;
        /* The limit was one that Kubernetes does not have: of work, of memory, or that of
         * hf__cel_exceed. */
        bool own_limit;
        const char *exceeded; /* the text of hf__cel_exceed; NULL: it was not called */
};

/* n bytes that live as long as the arena. NULL: the run has failed. */
void *hf__cel_alloc(struct hf__cel_run *run, size_t n);
/* Counts n bytes that other code allocates, and their overhead. n_bytes never exceeds bytes_limit.
 * false: the run has failed. */
bool hf__cel_reserve(struct hf__cel_run *run, size_t n);
/* Fails the run, because it exceeds a limit that Kubernetes does not have. The text becomes the
 * message of the error, and must live as long as the arena. If the run has failed already, that
 * failure stays. Returns the error value of the run. */
struct hf__cel_value hf__cel_exceed(struct hf__cel_run *run, const char *text);
/* The error value of a run that has failed. */
struct hf__cel_value hf__cel_failure(const struct hf__cel_run *run);
/* An error with a formatted message of at most 511 bytes. */
struct hf__cel_value hf__cel_errorf(struct hf__cel_run *run, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
/* Both charge what was or will be done: hf__cel_spend what Kubernetes counts too, hf__cel_work what
 * only this module counts. false: the run has failed. */
bool hf__cel_spend(struct hf__cel_run *run, uint64_t cost);
bool hf__cel_work(struct hf__cel_run *run, uint64_t steps);

/* A list of n elements, which the caller then stores in *ret_items. An error value: the run has
 * failed. */
struct hf__cel_value hf__cel_new_list(struct hf__cel_run *run, size_t n,
                                      struct hf__cel_value **ret_items);
/* A map of the entries, which are in the arena. Of equal keys the last counts, as in Kubernetes. An
 * error value: a value cannot be a key, or the run has failed. */
struct hf__cel_value hf__cel_new_map(struct hf__cel_run *run, const struct hf__cel_entry *entries,
                                     size_t n);
/* A map of the entries, which come from several maps and are in the arena. An error value: a key is
 * repeated, or the run has failed. */
struct hf__cel_value hf__cel_join_maps(struct hf__cel_run *run, const struct hf__cel_entry *entries,
                                       size_t n);
/* a + b of lists, if a has keys (struct hf__cel_list). First come the elements of a. If
 * a->replaces, an element of b takes the place of the element of a with the same key; otherwise it
 * is dropped. The elements of b with keys that a does not have follow; if not a->replaces, only the
 * first of each key. An error value: an element has no valid key, or the run has failed. */
struct hf__cel_value hf__cel_union(struct hf__cel_run *run, const struct hf__cel_list *a,
                                   const struct hf__cel_list *b);
/* n elements of a list, beginning with number `first`, as a list without keys. If the list has
 * `items`, both share them. An error value: the run has failed. */
struct hf__cel_value hf__cel_sublist(struct hf__cel_run *run, const struct hf__cel_list *list,
                                     size_t first, size_t n);
/* The map as an object of this type. An error value: the run has failed. */
struct hf__cel_value hf__cel_object(struct hf__cel_run *run, const struct hf__cel_map *map,
                                    const struct hf__cel_type *type);
/* A copy of a text, with a NUL. An error value: the run has failed. */
struct hf__cel_value hf__cel_copy_string(struct hf__cel_run *run, const char *text, size_t n);
/* An optional that holds the value. An error value: the value is one, or the run has failed. */
struct hf__cel_value hf__cel_optional_of(struct hf__cel_run *run, struct hf__cel_value value);
struct hf__cel_value hf__cel_optional_none(void);

/* Whether a == b, as a bool. An error value: the run has failed. */
struct hf__cel_value hf__cel_equal(struct hf__cel_run *run, struct hf__cel_value a,
                                   struct hf__cel_value b);
/* Compares two values as `<` does. True: *ret_order is below, equal to or above 0, but means
 * nothing if the run has failed. False: the values cannot be compared, and *ret_error is the error,
 * which does not fail the run. *ret_error is overwritten in both cases. */
bool hf__cel_order(struct hf__cel_run *run, struct hf__cel_value a, struct hf__cel_value b,
                   int *ret_order, struct hf__cel_value *ret_error);
/* The size: characters of a STRING, bytes, elements or entries. An optional has the size of what it
 * holds, anything else the size 1. Counting characters takes linear time, which is charged as work.
 * If the run fails by that, the result is 0. */
uint64_t hf__cel_size(struct hf__cel_run *run, struct hf__cel_value value);
