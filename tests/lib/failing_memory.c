/* SPDX-License-Identifier: Apache-2.0 */
/* See failing_memory.h. The table of live blocks is a hash table with linear probing; its keys are
 * the addresses. */
#undef NDEBUG
#include "failing_memory.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t n);
void *__real_reallocarray(void *old, size_t n, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);
void __real_free(void *block);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *ctx);
int __real_pthread_join(pthread_t thread, void **ret_result);

static atomic_int countdown = -1; /* < 0: nothing fails */
static atomic_bool hit;
static atomic_int n_threads; /* created and not joined */
static _Thread_local int shielded;

void failing_memory_arm(int n) {
        atomic_store(&hit, false);
        atomic_store(&countdown, n);
}
void failing_memory_disarm(void) { atomic_store(&countdown, -1); }
bool failing_memory_hit(void) { return atomic_load(&hit); }
void failing_memory_enter(void) { shielded++; }
void failing_memory_leave(void) { shielded--; }
bool is_shortage(int r) { return r == -ENOMEM || r == -EAGAIN; }

static bool fails(void) {
        if (shielded || atomic_load(&countdown) < 0 || atomic_fetch_sub(&countdown, 1) != 0)
                return false;
        atomic_store(&hit, true);
        errno = ENOMEM;
        return true;
}

/* ---- live blocks ---- */

#define N_SLOTS ((size_t)1 << 17)

static struct {
        pthread_mutex_t mu;
        uintptr_t slots[N_SLOTS]; /* 0 = free */
        size_t n;
} live = {.mu = PTHREAD_MUTEX_INITIALIZER};

static size_t slot_of(uintptr_t key) {
        size_t i = (key >> 4) * 0x9E3779B97F4A7C15u % N_SLOTS;

        while (live.slots[i] && live.slots[i] != key)
                i = (i + 1) % N_SLOTS;
        return i;
}

static void *add_block(void *block) {
        if (!block)
                return NULL;
        pthread_mutex_lock(&live.mu);
        size_t i = slot_of((uintptr_t)block);
        assert(!live.slots[i] && live.n < N_SLOTS / 2);
        live.slots[i] = (uintptr_t)block;
        live.n++;
        pthread_mutex_unlock(&live.mu);
        return block;
}

/* Blocks that a shared library has allocated are not in the table. */
static void remove_block(const void *block) {
        if (!block)
                return;
        pthread_mutex_lock(&live.mu);
        size_t i = slot_of((uintptr_t)block);
        if (live.slots[i]) {
                live.slots[i] = 0;
                live.n--;
                /* Keys after the free slot may belong before it. */
                for (i = (i + 1) % N_SLOTS; live.slots[i]; i = (i + 1) % N_SLOTS) {
                        uintptr_t key = live.slots[i];
                        live.slots[i] = 0;
                        live.slots[slot_of(key)] = key;
                }
        }
        pthread_mutex_unlock(&live.mu);
}

size_t failing_memory_n_live(void) {
        pthread_mutex_lock(&live.mu);
        size_t n = live.n;
        pthread_mutex_unlock(&live.mu);
        return n;
}

/* ---- what the linker redirects ---- */

void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n) { return fails() ? NULL : add_block(__real_malloc(n)); }
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size) {
        return fails() ? NULL : add_block(__real_calloc(n, size));
}
void *__wrap_realloc(void *old, size_t n);
void *__wrap_realloc(void *old, size_t n) {
        if (fails())
                return NULL;
        remove_block(old); /* first, because another thread may get its address */
        void *block = __real_realloc(old, n);
        assert(block);
        return add_block(block);
}
void *__wrap_reallocarray(void *old, size_t n, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size) {
        if (fails())
                return NULL;
        remove_block(old);
        void *block = __real_reallocarray(old, n, size);
        assert(block);
        return add_block(block);
}
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text) { return fails() ? NULL : add_block(__real_strdup(text)); }
char *__wrap_strndup(const char *text, size_t n);
char *__wrap_strndup(const char *text, size_t n) {
        return fails() ? NULL : add_block(__real_strndup(text, n));
}
int __wrap_asprintf(char **ret_text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_asprintf(char **ret_text, const char *format, ...) {
        va_list args;

        if (fails()) {
                *ret_text = (char *)1; /* undefined, so nobody may use it */
                return -1;
        }
        va_start(args, format);
        int n = vasprintf(ret_text, format, args);
        va_end(args);
        if (n >= 0)
                (void)add_block(*ret_text);
        return n;
}
void __wrap_free(void *block);
void __wrap_free(void *block) {
        remove_block(block); /* first, because another thread may get its address */
        if (block)           /* whoever still uses it must not find its old content */
                memset(block, 0xa5, malloc_usable_size(block));
        __real_free(block);
}
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *ctx);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *ctx) {
        int error = fails() ? EAGAIN : __real_pthread_create(thread, attr, fn, ctx);

        atomic_fetch_add(&n_threads, error == 0);
        return error;
}
int __wrap_pthread_join(pthread_t thread, void **ret_result);
int __wrap_pthread_join(pthread_t thread, void **ret_result) {
        int error = __real_pthread_join(thread, ret_result);

        atomic_fetch_sub(&n_threads, error == 0);
        return error;
}

int failing_memory_n_threads(void) { return atomic_load(&n_threads); }

void failing_memory_try_all(void (*life)(int n), int at_least) {
        int n = 0;

        do {
                size_t before = failing_memory_n_live();
                int threads_before = atomic_load(&n_threads);
                life(n);
                failing_memory_disarm();
                size_t after = failing_memory_n_live();
                if (after != before)
                        (void)fprintf(stderr, "allocation %d: %zu blocks before, %zu after\n", n,
                                      before, after);
                assert(after == before && atomic_load(&n_threads) == threads_before);
                n++;
        } while (failing_memory_hit());
        assert(n > at_least);
}
