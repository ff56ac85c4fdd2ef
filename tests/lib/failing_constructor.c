/* SPDX-License-Identifier: Apache-2.0 */
/* See failing_constructor.h. A lock cannot be made when an allocation cannot. */
#undef NDEBUG
#include "failing_constructor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "failing_memory.h"

static atomic_int n_locks; /* made and not destroyed */

static int count_made(int error) {
        atomic_fetch_add(&n_locks, error == 0);
        return error;
}

static bool fails(void) {
        void *volatile block = malloc(1);
        bool failed = !block;

        free(block);
        return failed;
}

#define WRAP(type)                                                                                 \
        int __real_pthread_##type##_init(pthread_##type##_t *, const pthread_##type##attr_t *);    \
        int __wrap_pthread_##type##_init(pthread_##type##_t *, const pthread_##type##attr_t *);    \
        int __wrap_pthread_##type##_init(pthread_##type##_t *lock,                                 \
                                         const pthread_##type##attr_t *attr) {                     \
                return fails() ? ENOMEM : count_made(__real_pthread_##type##_init(lock, attr));    \
        }                                                                                          \
        int __real_pthread_##type##_destroy(pthread_##type##_t *);                                 \
        int __wrap_pthread_##type##_destroy(pthread_##type##_t *);                                 \
        int __wrap_pthread_##type##_destroy(pthread_##type##_t *lock) {                            \
                atomic_fetch_sub(&n_locks, 1);                                                     \
                return __real_pthread_##type##_destroy(lock);                                      \
        }
WRAP(mutex)
WRAP(cond)
WRAP(rwlock)

static int next_fd(void) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

        assert(fd >= 0);
        (void)close(fd);
        return fd;
}

static failing_constructor_fn current;

static void life(int n) {
        int locks = atomic_load(&n_locks), fd = next_fd();

        failing_memory_arm(n);
        int r = current();
        failing_memory_disarm();
        assert(r == 0 || failing_memory_hit());
        assert(atomic_load(&n_locks) == locks);
        assert(next_fd() == fd);
}

void failing_constructor_try_all(failing_constructor_fn make) {
        current = make;
        assert(make() == 0); /* what it makes once stays */
        failing_memory_try_all(life, 0);
}
