/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lets another thread run before each atomic operation. Sources that decide something by atomics
 * are compiled a second time for the program `threads`; the compiler then includes this file first
 * (-include). So the sources themselves need no change.
 */
#include <stdatomic.h>

void baton_point(void);

#undef atomic_load
#undef atomic_load_explicit
#undef atomic_store
#undef atomic_store_explicit
#undef atomic_exchange
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak
#undef atomic_compare_exchange_weak_explicit
#undef atomic_fetch_add
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub
#undef atomic_fetch_sub_explicit

#ifdef __clang__
#define BATON_LOAD(at, order)            __c11_atomic_load(at, order)
#define BATON_STORE(at, value, order)    __c11_atomic_store(at, value, order)
#define BATON_EXCHANGE(at, value, order) __c11_atomic_exchange(at, value, order)
#define BATON_COMPARE(at, expected, value, weak, order, order_of_failure)                          \
        __c11_atomic_compare_exchange_strong(at, expected, value, order, order_of_failure)
#define BATON_ADD(at, value, order) __c11_atomic_fetch_add(at, value, order)
#define BATON_SUB(at, value, order) __c11_atomic_fetch_sub(at, value, order)
#else
#define BATON_VALUE_OF(at) __typeof__((void)0, *(at))
#define BATON_LOAD(at, order)                                                                      \
        __extension__({                                                                            \
                BATON_VALUE_OF(at) baton_loaded;                                                   \
                __atomic_load(at, &baton_loaded, order);                                           \
                baton_loaded;                                                                      \
        })
#define BATON_STORE(at, value, order)                                                              \
        __extension__({                                                                            \
                BATON_VALUE_OF(at) baton_value = (value);                                          \
                __atomic_store(at, &baton_value, order);                                           \
        })
#define BATON_EXCHANGE(at, value, order)                                                           \
        __extension__({                                                                            \
                BATON_VALUE_OF(at) baton_value = (value), baton_old;                               \
                __atomic_exchange(at, &baton_value, &baton_old, order);                            \
                baton_old;                                                                         \
        })
#define BATON_COMPARE(at, expected, value, weak, order, order_of_failure)                          \
        __extension__({                                                                            \
                BATON_VALUE_OF(at) baton_value = (value);                                          \
                __atomic_compare_exchange(at, expected, &baton_value, weak, order,                 \
                                          order_of_failure);                                       \
        })
#define BATON_ADD(at, value, order) __atomic_fetch_add(at, value, order)
#define BATON_SUB(at, value, order) __atomic_fetch_sub(at, value, order)
#endif

#define BATON_THEN(operation) (baton_point(), operation)

#define atomic_load_explicit(at, order)            BATON_THEN(BATON_LOAD(at, order))
#define atomic_store_explicit(at, value, order)    BATON_THEN(BATON_STORE(at, value, order))
#define atomic_exchange_explicit(at, value, order) BATON_THEN(BATON_EXCHANGE(at, value, order))
#define atomic_compare_exchange_strong_explicit(at, expected, value, order, order_of_failure)      \
        BATON_THEN(BATON_COMPARE(at, expected, value, 0, order, order_of_failure))
#define atomic_compare_exchange_weak_explicit(at, expected, value, order, order_of_failure)        \
        BATON_THEN(BATON_COMPARE(at, expected, value, 1, order, order_of_failure))
#define atomic_fetch_add_explicit(at, value, order) BATON_THEN(BATON_ADD(at, value, order))
#define atomic_fetch_sub_explicit(at, value, order) BATON_THEN(BATON_SUB(at, value, order))

#define atomic_load(at)            atomic_load_explicit(at, memory_order_seq_cst)
#define atomic_store(at, value)    atomic_store_explicit(at, value, memory_order_seq_cst)
#define atomic_exchange(at, value) atomic_exchange_explicit(at, value, memory_order_seq_cst)
#define atomic_compare_exchange_strong(at, expected, value)                                        \
        atomic_compare_exchange_strong_explicit(at, expected, value, memory_order_seq_cst,         \
                                                memory_order_seq_cst)
#define atomic_compare_exchange_weak(at, expected, value)                                          \
        atomic_compare_exchange_weak_explicit(at, expected, value, memory_order_seq_cst,           \
                                              memory_order_seq_cst)
#define atomic_fetch_add(at, value) atomic_fetch_add_explicit(at, value, memory_order_seq_cst)
#define atomic_fetch_sub(at, value) atomic_fetch_sub_explicit(at, value, memory_order_seq_cst)
