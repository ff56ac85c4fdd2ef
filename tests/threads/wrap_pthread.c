/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces the functions of threads, mutexes, read-write locks and condition variables.
 *
 * The real mutex is locked too, with pthread_mutex_trylock. A thread that does not get it waits in
 * the scheduler until the mutex is unlocked, and tries again. A condition variable has no state
 * here other than the threads that wait for its address. One that is destroyed is overwritten, so
 * that a later use is noticed, mostly even if its memory was freed. (glibc does this to mutexes.)
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "baton_private.h"
#include "wraps.h"

#define DESTROYED   0xd5 /* each byte of a destroyed condition variable */
#define MAX_TIME(t) ((hf_nsec)(t)->tv_sec * HF_NSEC_PER_SEC + (t)->tv_nsec)

/* ---- threads ---- */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *ctx) {
        return baton_self ? baton_create(thread, attr, fn, ctx)
                          : __real_pthread_create(thread, attr, fn, ctx);
}

int __wrap_pthread_join(pthread_t thread, void **ret_result) {
        return baton_self ? baton_join(thread, ret_result)
                          : __real_pthread_join(thread, ret_result);
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name) {
        if (baton_self)
                baton_set_name(thread, name);
        return __real_pthread_setname_np(thread, name);
}

/* ---- mutexes ---- */

static int lock(pthread_mutex_t *mutex) {
        int error = __real_pthread_mutex_trylock(mutex);

        for (; error == EBUSY; error = __real_pthread_mutex_trylock(mutex))
                (void)baton_block(mutex, "a mutex", HF_NSEC_NEVER);
        if (error != 0)
                baton_fail("pthread_mutex_lock failed with %d", error);
        return 0;
}

static void unlock(pthread_mutex_t *mutex) {
        int error = __real_pthread_mutex_unlock(mutex);

        if (error != 0)
                baton_fail("pthread_mutex_unlock failed with %d", error);
        baton_wake_all(mutex);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) {
        if (!baton_self)
                return __real_pthread_mutex_lock(mutex);
        baton_point();
        return lock(mutex);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex) {
        if (!baton_self)
                return __real_pthread_mutex_unlock(mutex);
        unlock(mutex);
        baton_point();
        return 0;
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex) {
        int error = __real_pthread_mutex_destroy(mutex);

        if (baton_self && error != 0)
                baton_fail("a mutex is destroyed that is locked");
        if (baton_self && baton_is_awaited(mutex))
                baton_fail("a mutex is destroyed that a thread waits for");
        return error;
}

/* ---- read-write locks ---- */

static int lock_rw(pthread_rwlock_t *rwlock, int (*try)(pthread_rwlock_t *rwlock)) {
        baton_point();
        int error = try(rwlock);
        for (; error == EBUSY; error = try(rwlock))
                (void)baton_block(rwlock, "a read-write lock", HF_NSEC_NEVER);
        if (error != 0)
                baton_fail("a read-write lock fails with %d", error);
        return 0;
}

int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *rwlock) {
        return baton_self ? lock_rw(rwlock, pthread_rwlock_tryrdlock)
                          : __real_pthread_rwlock_rdlock(rwlock);
}

int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *rwlock) {
        return baton_self ? lock_rw(rwlock, pthread_rwlock_trywrlock)
                          : __real_pthread_rwlock_wrlock(rwlock);
}

int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *rwlock) {
        int error = __real_pthread_rwlock_unlock(rwlock);

        if (!baton_self)
                return error;
        baton_wake_all(rwlock);
        baton_point();
        return error;
}

/* ---- condition variables ---- */

static void check_not_destroyed(const pthread_cond_t *cond) {
        const unsigned char *at = (const unsigned char *)cond;
        size_t n = 0;

        while (n < sizeof *cond && at[n] == DESTROYED)
                n++;
        if (n == sizeof *cond)
                baton_fail("a condition variable is used after it was destroyed");
}

static int wait_on(pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec until) {
        check_not_destroyed(cond);
        baton_point(); /* a signal that is sent now, without the mutex, is lost */
        unlock(mutex);
        bool woken = baton_block(cond, baton_in_cond, until);
        (void)lock(mutex);
        return woken ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) {
        return baton_self ? wait_on(cond, mutex, HF_NSEC_NEVER)
                          : __real_pthread_cond_wait(cond, mutex);
}

/* Every condition variable of the library waits on monotonic time (hf_cond_init). */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *time) {
        return baton_self ? wait_on(cond, mutex, baton_boot_time(CLOCK_MONOTONIC, MAX_TIME(time)))
                          : __real_pthread_cond_timedwait(cond, mutex, time);
}

int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *time) {
        return baton_self ? wait_on(cond, mutex, baton_boot_time(clock, MAX_TIME(time)))
                          : __real_pthread_cond_clockwait(cond, mutex, clock, time);
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond) {
        if (!baton_self)
                return __real_pthread_cond_signal(cond);
        baton_point();
        check_not_destroyed(cond);
        baton_wake_one(cond);
        baton_point();
        return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond) {
        if (!baton_self)
                return __real_pthread_cond_broadcast(cond);
        baton_point();
        check_not_destroyed(cond);
        baton_wake_all(cond);
        baton_point();
        return 0;
}

int __wrap_pthread_cond_destroy(pthread_cond_t *cond) {
        if (baton_self && baton_is_awaited(cond))
                baton_fail("a condition variable is destroyed that a thread waits for");
        int error = __real_pthread_cond_destroy(cond);
        if (baton_self)
                memset(cond, DESTROYED, sizeof *cond);
        return error;
}
