/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Variables that release their object when they go out of scope, for constructors above all. A
 * constructor that fails at its fifth step must release the results of the four steps before. With
 * a variable of this kind each step simply returns its error:
 *
 *      HF__CLEANUP_DEFINE(registry_cleanup, struct hfd_registry *, hfd_registry_free)
 *      ...
 *      HF__CLEANUP(registry_cleanup) struct hfd_registry *registry = calloc(1, sizeof *registry);
 *
 *      if (!registry)
 *              return -ENOMEM;
 *      int r = hfd_renderings_new(registry, &registry->renderings);
 *      if (r != 0)
 *              return r;
 *      *ret_registry = HF__TAKE(registry);
 *      return 0;
 *
 * Rules: the variable is initialized where it is declared. Ownership leaves it through HF__TAKE
 * only. Its destructor accepts an object whose later parts were not made yet.
 *
 * Threads: any. A thread that is cancelled would not run these functions; no thread here is
 * cancelled.
 */
#include <stdlib.h>

/* Runs fn(&variable) at the end of the scope of the variable that is declared after it. */
#define HF__CLEANUP(fn) __attribute__((__cleanup__(fn)))

/* Defines the function name for HF__CLEANUP: it calls destroy(variable) unless the variable is
 * NULL, and ignores the result. type is the variable's type, a pointer. */
#define HF__CLEANUP_DEFINE(name, type, destroy)                                                    \
        static inline void name(type *variable) {                                                  \
                if (*variable)                                                                     \
                        (void)destroy(*variable);                                                  \
        }

/* The value of a pointer variable. The variable is NULL afterwards and owns nothing. */
#define HF__TAKE(variable)                                                                         \
        __extension__({                                                                            \
                __typeof__(variable) taken_ = (variable);                                          \
                (variable) = NULL;                                                                 \
                taken_;                                                                            \
        })

/* For HF__CLEANUP: memory of malloc. */
static inline void hf__free_cleanup(void *variable) { free(*(void **)variable); }
