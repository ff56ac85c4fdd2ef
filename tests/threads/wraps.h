/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The functions that the linker replaces (--wrap): their replacements, and the real functions. The
 * list in meson.build has the same names. */
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>
#include <time.h>

#include <holdfast/clock.h>

/* The virtual boot time at which a clock shows `time`. */
hf_nsec baton_boot_time(clockid_t clock, hf_nsec time);

#define WRAPPED(result, name, ...)                                                                 \
        result __wrap_##name(__VA_ARGS__);                                                         \
        result __real_##name(__VA_ARGS__)

struct itimerspec;

WRAPPED(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
        void *ctx);
WRAPPED(int, pthread_join, pthread_t thread, void **ret_result);
WRAPPED(int, pthread_setname_np, pthread_t thread, const char *name);
int __real_pthread_mutex_trylock(pthread_mutex_t *mutex);
WRAPPED(int, pthread_mutex_lock, pthread_mutex_t *mutex);
WRAPPED(int, pthread_mutex_unlock, pthread_mutex_t *mutex);
WRAPPED(int, pthread_mutex_destroy, pthread_mutex_t *mutex);
WRAPPED(int, pthread_rwlock_rdlock, pthread_rwlock_t *rwlock);
WRAPPED(int, pthread_rwlock_wrlock, pthread_rwlock_t *rwlock);
WRAPPED(int, pthread_rwlock_unlock, pthread_rwlock_t *rwlock);
WRAPPED(int, pthread_cond_wait, pthread_cond_t *cond, pthread_mutex_t *mutex);
WRAPPED(int, pthread_cond_timedwait, pthread_cond_t *cond, pthread_mutex_t *mutex,
        const struct timespec *time);
WRAPPED(int, pthread_cond_clockwait, pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
        const struct timespec *time);
WRAPPED(int, pthread_cond_signal, pthread_cond_t *cond);
WRAPPED(int, pthread_cond_broadcast, pthread_cond_t *cond);
WRAPPED(int, pthread_cond_destroy, pthread_cond_t *cond);

WRAPPED(int, clock_gettime, clockid_t clock, struct timespec *ret_time);
WRAPPED(int, sched_yield, void);
WRAPPED(ssize_t, getrandom, void *buffer, size_t n, unsigned flags);

WRAPPED(int, eventfd, unsigned count, int flags);
WRAPPED(int, timerfd_create, int clock, int flags);
WRAPPED(int, timerfd_settime, int fd, int flags, const struct itimerspec *time,
        struct itimerspec *ret_old);
WRAPPED(int, epoll_create1, int flags);
WRAPPED(int, epoll_ctl, int epoll_fd, int operation, int fd, struct epoll_event *event);
WRAPPED(int, epoll_wait, int epoll_fd, struct epoll_event *events, int max, int timeout_ms);
WRAPPED(ssize_t, read, int fd, void *buffer, size_t n);
WRAPPED(ssize_t, write, int fd, const void *buffer, size_t n);
WRAPPED(int, close, int fd);
