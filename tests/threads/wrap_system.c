/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces clocks, random numbers and the descriptors by which threads wake each other: eventfd,
 * timerfd and epoll. A virtual descriptor has a number that no real one has. All are non-blocking,
 * except epoll_wait.
 *
 * The clocks differ by constants. So it shows when code uses a time of one clock with another.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "baton_private.h"
#include "wraps.h"

#define MONOTONIC_BEHIND (300 * HF_NSEC_PER_SEC)        /* as after a suspend of 5 minutes */
#define REAL_AHEAD       (1800000000 * HF_NSEC_PER_SEC) /* about the year 2027 */

enum { FIRST_FD = 1 << 20, MAX_FDS = 64, MAX_WATCHED = 8 };

static struct descriptor {
        enum { CLOSED, EVENT, TIMER, EPOLL } kind;
        uint64_t count;   /* EVENT */
        hf_nsec at;       /* TIMER: 0 = disarmed */
        size_t n_watched; /* EPOLL */
        struct {
                struct descriptor *descriptor;
                struct epoll_event event;
        } watched[MAX_WATCHED];
} descriptors[MAX_FDS];

/* ---- clocks and random numbers ---- */

static hf_nsec ahead_of_boot(clockid_t clock) {
        if (clock == CLOCK_MONOTONIC)
                return -MONOTONIC_BEHIND;
        return clock == CLOCK_REALTIME ? REAL_AHEAD : 0;
}

hf_nsec baton_boot_time(clockid_t clock, hf_nsec time) { return time - ahead_of_boot(clock); }

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time) {
        if (!baton_self)
                return __real_clock_gettime(clock, ret_time);
        hf_nsec now = baton_now() + ahead_of_boot(clock);
        *ret_time = (struct timespec){.tv_sec = (time_t)(now / HF_NSEC_PER_SEC),
                                      .tv_nsec = (long)(now % HF_NSEC_PER_SEC)};
        return 0;
}

int __wrap_sched_yield(void) {
        if (!baton_self)
                return __real_sched_yield();
        baton_yield_to_all();
        return 0;
}

ssize_t __wrap_getrandom(void *buffer, size_t n, unsigned flags) {
        if (!baton_self)
                return __real_getrandom(buffer, n, flags);
        for (size_t i = 0; i < n; i++)
                ((unsigned char *)buffer)[i] = (unsigned char)baton_random_bits();
        return (ssize_t)n;
}

/* ---- descriptors ---- */

static int open_descriptor(int kind) {
        for (int i = 0; i < MAX_FDS; i++)
                if (descriptors[i].kind == CLOSED) {
                        descriptors[i] = (struct descriptor){.kind = kind};
                        return FIRST_FD + i;
                }
        baton_fail("more than %d descriptors are open", MAX_FDS);
}

/* NULL = not a virtual descriptor. */
static struct descriptor *find(int fd) {
        if (fd < FIRST_FD)
                return NULL;
        if (fd >= FIRST_FD + MAX_FDS || descriptors[fd - FIRST_FD].kind == CLOSED)
                baton_fail("descriptor %d is used and not open", fd);
        return &descriptors[fd - FIRST_FD];
}

unsigned baton_n_open(void) {
        unsigned n = 0;

        for (int i = 0; i < MAX_FDS; i++)
                n += descriptors[i].kind != CLOSED;
        return n;
}

void baton_forget_open(void) { memset(descriptors, 0, sizeof descriptors); }

static bool is_readable(const struct descriptor *descriptor) {
        if (descriptor->kind == EVENT)
                return descriptor->count > 0;
        return descriptor->kind == TIMER && descriptor->at != 0 && descriptor->at <= baton_now();
}

/* Wakes the threads that wait for a descriptor that has changed. */
static void wake_watchers(const struct descriptor *changed) {
        for (int i = 0; i < MAX_FDS; i++)
                for (size_t k = 0; k < descriptors[i].n_watched; k++)
                        if (descriptors[i].watched[k].descriptor == changed)
                                baton_wake_all(&descriptors[i]);
}

int __wrap_eventfd(unsigned count, int flags) {
        if (!baton_self)
                return __real_eventfd(count, flags);
        return open_descriptor(EVENT);
}

int __wrap_timerfd_create(int clock, int flags) {
        if (!baton_self)
                return __real_timerfd_create(clock, flags);
        return open_descriptor(TIMER);
}

int __wrap_epoll_create1(int flags) {
        if (!baton_self)
                return __real_epoll_create1(flags);
        return open_descriptor(EPOLL);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *time,
                           struct itimerspec *ret_old) {
        struct descriptor *timer = find(fd);

        if (!timer)
                return __real_timerfd_settime(fd, flags, time, ret_old);
        if ((flags & TFD_TIMER_ABSTIME) == 0)
                baton_fail("only absolute times of timers are supported");
        timer->at = (hf_nsec)time->it_value.tv_sec * HF_NSEC_PER_SEC + time->it_value.tv_nsec;
        wake_watchers(timer);
        return 0;
}

ssize_t __wrap_read(int fd, void *buffer, size_t n) {
        struct descriptor *descriptor = find(fd);

        if (!descriptor)
                return __real_read(fd, buffer, n);
        baton_point();
        if (!is_readable(descriptor)) {
                errno = EAGAIN;
                return -1;
        }
        uint64_t count = descriptor->kind == EVENT ? descriptor->count : 1;
        descriptor->count = 0;
        if (descriptor->kind == TIMER)
                descriptor->at = 0;
        memcpy(buffer, &count, sizeof count);
        return sizeof count;
}

ssize_t __wrap_write(int fd, const void *buffer, size_t n) {
        struct descriptor *descriptor = find(fd);
        uint64_t count;

        if (!descriptor)
                return __real_write(fd, buffer, n);
        baton_point();
        (void)find(fd); /* another thread may have closed it */
        memcpy(&count, buffer, sizeof count);
        descriptor->count += count;
        wake_watchers(descriptor);
        baton_point();
        return sizeof count;
}

int __wrap_close(int fd) {
        struct descriptor *closed = find(fd);

        if (!closed)
                return __real_close(fd);
        baton_point();
        if (baton_is_awaited(closed))
                baton_fail("descriptor %d is closed while a thread waits for it", fd);
        for (int i = 0; i < MAX_FDS; i++) {
                struct descriptor *epoll = &descriptors[i];
                for (size_t k = 0; k < epoll->n_watched; k++)
                        if (epoll->watched[k].descriptor == closed)
                                epoll->watched[k--] = epoll->watched[--epoll->n_watched];
        }
        *closed = (struct descriptor){.kind = CLOSED};
        return 0;
}

/* ---- epoll ---- */

int __wrap_epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event) {
        struct descriptor *epoll = find(epoll_fd), *watched = find(fd);

        if (!epoll)
                return __real_epoll_ctl(epoll_fd, operation, fd, event);
        if (operation != EPOLL_CTL_ADD || !watched || epoll->n_watched == MAX_WATCHED)
                baton_fail("this call of epoll_ctl is not supported");
        epoll->watched[epoll->n_watched].descriptor = watched;
        epoll->watched[epoll->n_watched++].event = *event;
        baton_wake_all(epoll);
        return 0;
}

static int collect_events(const struct descriptor *epoll, struct epoll_event *events, int max) {
        int n = 0;

        for (size_t i = 0; i < epoll->n_watched && n < max; i++)
                if (is_readable(epoll->watched[i].descriptor))
                        events[n++] = epoll->watched[i].event;
        return n;
}

static hf_nsec earliest_timer(const struct descriptor *epoll, hf_nsec until) {
        for (size_t i = 0; i < epoll->n_watched; i++) {
                const struct descriptor *timer = epoll->watched[i].descriptor;
                if (timer->kind == TIMER && timer->at != 0 && timer->at < until)
                        until = timer->at;
        }
        return until;
}

int __wrap_epoll_wait(int epoll_fd, struct epoll_event *events, int max, int timeout_ms) {
        struct descriptor *epoll = find(epoll_fd);
        int n;

        if (!epoll)
                return __real_epoll_wait(epoll_fd, events, max, timeout_ms);
        hf_nsec until =
                timeout_ms < 0 ? HF_NSEC_NEVER : baton_now() + timeout_ms * HF_NSEC_PER_MSEC;
        baton_point();
        while ((n = collect_events(epoll, events, max)) == 0 && baton_now() < until)
                (void)baton_block(epoll, "a descriptor", earliest_timer(epoll, until));
        return n;
}
