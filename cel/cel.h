/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The Common Expression Language as Kubernetes uses it: a program is compiled once from the text of
 * an expression, and evaluated many times with the values of its variables.
 *
 * Pure: no I/O, no clock, no threads, no globals. Nothing blocks.
 *
 * Ownership: the caller frees a program. It refers to the declarations it was compiled with, which
 * must live as long. A result refers to the arena of its evaluation, to the program and to the
 * inputs.
 *
 * Thread: any. A program and its declarations do not change, so several threads may evaluate one
 * program at the same time, each with an arena of its own.
 *
 * Limits: an expression has at most 100,000 characters and 250 levels (fewer if max_depth of the
 * declarations says so); a type at most 2,000 parts; a pattern 10,000 bytes and 5,000 instructions.
 * An evaluation ends at the limits that the caller sets, or when the caller's `watch` ends it.
 * These limits count steps and bytes, not time.
 *
 * Stack: the functions recurse over the levels. A compilation takes about 1 KiB for each of them,
 * some 240 KiB for 250: nearly all of the 256 KiB that a thread of the library has by default,
 * besides the stack for JSON (HF__JSON_STACK). The groups of a pattern need some more, and so does
 * code that is not optimized.
 *
 * Texts of inputs are UTF-8. Named time zones are the caller's: see the declarations.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/library.h"
#include "cel/values/declarations.h"
#include "cel/values/value.h"

struct hf__arena;
struct hf__strbuf;
struct hf__cel_program;

/*
 * Compiles and checks an expression of n bytes. 0, -ENOMEM, or HF_E_INVALID: then what is wrong is
 * appended to reterr_message, as Kubernetes shows it: if it has a place, with the line, the column
 * and a mark. The text is not used after the call.
 *
 * *ret_work (ret_work may be NULL) gets the work of the compilation: the steps for the types and
 * the patterns of the expression, and one step for each two bytes of memory that the compiled
 * patterns take. That is at most some four million. The time in proportion to the length of the
 * text is not counted. *ret_work is set after a failure too, because a caller that compiles many
 * expressions needs a limit for the work of all.
 */
int hf__cel_compile(const struct hf__cel_declarations *declarations, const char *text, size_t n,
                    struct hf__strbuf *reterr_message, struct hf__cel_program **ret_program,
                    uint64_t *ret_work);
void hf__cel_program_free(struct hf__cel_program *program); /* accepts NULL */
/* The type of the result; it lives as long as the program. */
const struct hf__cel_type *hf__cel_program_type(const struct hf__cel_program *program);

/* The levels of the expression. The evaluation recurses over them; each takes up to 600 bytes of
 * the stack. */
unsigned hf__cel_program_depth(const struct hf__cel_program *program);

/* Whether the program refers to this declared variable; variable < 64. */
bool hf__cel_program_uses(const struct hf__cel_program *program, unsigned variable);

/* The highest cost that an evaluation may have, as Kubernetes estimates it from the largest sizes
 * in the types of the declared variables; UINT64_MAX: there is no bound. As in Kubernetes, if a
 * value comes from no variable, a field or an element of it is estimated with the type of the first
 * declared variable. */
uint64_t hf__cel_estimate(const struct hf__cel_program *program);

/* Limits of an evaluation. For cost, work and bytes, 0 is the default. */
struct hf__cel_limits {
        uint64_t cost; /* as Kubernetes counts it; default 1,000,000, Kubernetes' PerCallLimit */
        uint64_t work; /* steps within operations, which have no cost; default: as many as cost */
        size_t bytes;  /* of memory; default 16 MiB */
        /* The caller's count of the memory that several evaluations take together. (One of them may
         * be suspended while another makes a value for it.) The evaluation adds to the count what
         * it takes, and ends before the count exceeds shared_bytes_max. NULL: there is no such
         * count. */
        size_t *shared_bytes;
        size_t shared_bytes_max;
        /* Called at the first step, and then after some thousand steps of cost or of work, with
         * what the evaluation has used so far. A caller whose limit is shared by several
         * evaluations, or who has a deadline, can end this one. The use of other evaluations,
         * which make values that this one reads, is not included. Result: 0 = the evaluation goes
         * on; otherwise it ends, and hf__cel_eval returns the result, which is positive or -ENOMEM.
         * NULL: nobody watches. */
        int (*watch)(void *ctx, uint64_t cost, uint64_t work);
        void *watch_ctx;
};

/* What an evaluation has used. Its time is in proportion to the larger of cost and work: a cheap
 * operation may be much work, such as the search through a long text. */
struct hf__cel_usage {
        uint64_t cost;
        uint64_t work;
        size_t bytes;
        /* The evaluation has ended at a limit that Kubernetes does not have: of work, of memory, or
         * of a pattern that the expression computes. */
        bool own_limit;
};

/*
 * Evaluates a program. inputs: the values of the declared variables, in the order of the
 * declarations; those that the program does not use (hf__cel_program_uses) are not read. limits
 * NULL: the defaults. Memory comes from the arena.
 *
 * 0; HF_E_INVALID: the expression has failed; HF_E_TOO_LARGE: a limit was exceeded; -ENOMEM; or
 * what limits->watch has returned. Unless the result is 0, *ret_value is an error value with a
 * message. *ret_usage (ret_usage may be NULL) is set in any case; cost and work may exceed their
 * limits by one operation, bytes never do.
 */
int hf__cel_eval(const struct hf__cel_program *program, const struct hf__cel_value *inputs,
                 const struct hf__cel_limits *limits, struct hf__arena *arena,
                 struct hf__cel_value *ret_value, struct hf__cel_usage *ret_usage);
