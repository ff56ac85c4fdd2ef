/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mark is in a page that the kernel clears in every forked child (MADV_WIPEONFORK). That
 * includes a child of a bare clone(2), for which pthread_atfork handlers do not run. Where
 * MADV_WIPEONFORK does not exist (before Linux 4.14, some sandboxes) the mark is the process id;
 * then two processes in different pid namespaces may have the same mark (process_mark.h).
 *
 * Invariant: `last` is ordinary memory, which a child inherits. So it is at least as great as every
 * mark that any ancestor of this process had got before it forked. Inherited state can contain only
 * these marks, and the child's own mark is greater than all of them.
 */
#include "base/process_mark.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic uint64_t last;    /* the last number that was taken; a few never become a mark */
static _Atomic uint64_t no_page; /* only its address is used: a value of `at` */
/* The address of the mark. NULL = not initialised; &no_page = there is no such page. The number in
 * the page is 0 until this process has got a mark. */
static _Atomic(_Atomic uint64_t *) at;

int hf__process_mark_init(void) {
        size_t n_page = (size_t)sysconf(_SC_PAGESIZE);
        _Atomic uint64_t *none = NULL, *place = &no_page;

        if (atomic_load_explicit(&at, memory_order_acquire))
                return 0;
        void *page = mmap(NULL, n_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
                return -errno;
        if (madvise(page, n_page, MADV_WIPEONFORK) == 0)
                place = page;
        /* If another thread was faster, its place counts. */
        if (!atomic_compare_exchange_strong(&at, &none, place) || place == &no_page)
                (void)munmap(page, n_page);
        return 0;
}

uint64_t hf__process_mark(void) {
        _Atomic uint64_t *place = atomic_load_explicit(&at, memory_order_acquire);

        assert(place);
        if (place == &no_page)
                return (uint64_t)getpid();
        uint64_t mark = atomic_load_explicit(place, memory_order_relaxed);
        if (mark != 0)
                return mark;
        /* Several threads may find 0. One of their numbers becomes the mark, and the others are
         * never used. */
        uint64_t next = atomic_fetch_add(&last, 1) + 1;
        return atomic_compare_exchange_strong(place, &mark, next) ? next : mark;
}
