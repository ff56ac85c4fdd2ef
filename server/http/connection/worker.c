/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker: the mailbox, the epolls, the buffers and the lists that the connections of one thread
 * share. A connection belongs to the same worker for its whole life.
 *
 * Invariant: while the worker's thread runs, only that thread touches the connections and the
 * lists.
 */
#include "server/http/connection/worker.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "server/http/connection/http_private.h"

/* 0 or -errno. Call close_epolls in any case. */
static int open_epolls(struct hfd_worker *worker) {
        struct epoll_event message = {.events = EPOLLIN, .data.ptr = worker};
        struct epoll_event stranger = {.events = EPOLLIN, .data.ptr = &worker->stranger_epoll};

        worker->epoll = epoll_create1(EPOLL_CLOEXEC);
        worker->stranger_epoll = epoll_create1(EPOLL_CLOEXEC);
        if (worker->epoll < 0 || worker->stranger_epoll < 0 ||
            epoll_ctl(worker->epoll, EPOLL_CTL_ADD, worker->mailbox.shared.fd, &message) != 0 ||
            epoll_ctl(worker->epoll, EPOLL_CTL_ADD, worker->stranger_epoll, &stranger) != 0)
                return -errno;
        return 0;
}

static void close_epolls(struct hfd_worker *worker) {
        if (worker->epoll >= 0)
                close(worker->epoll);
        if (worker->stranger_epoll >= 0)
                close(worker->stranger_epoll);
}

int hfd_worker_init(struct hfd_worker *worker, struct hfd_http *http, unsigned index) {
        int r;

        memset(worker, 0, sizeof *worker);
        worker->http = http;
        worker->index = index;
        worker->dirty_tail = &worker->dirty;
        hfd_strangers_init(&worker->handshakes, http->seed);
        hfd_strangers_init(&worker->strangers, http->seed);
        worker->in = malloc(HFD_IN_SPACE);
        worker->out = malloc(HFD_OUT_SPACE + HFD_OUT_SLACK);
        r = worker->in && worker->out ? hfd_worker_mailbox_init(&worker->mailbox) : -ENOMEM;
        if (r != 0)
                goto fail;
        r = open_epolls(worker);
        if (r == 0)
                return 0;
        close_epolls(worker);
        hfd_worker_mailbox_done(&worker->mailbox);
fail:
        free(worker->in);
        free(worker->out);
        return r;
}

void hfd_worker_done(struct hfd_worker *worker) {
        assert(!worker->running && !worker->connections && !worker->dirty && !worker->responded);
        hfd_strangers_done(&worker->handshakes);
        hfd_strangers_done(&worker->strangers);
        hfd_worker_mailbox_done(&worker->mailbox);
        close_epolls(worker);
        free(worker->in);
        free(worker->out);
}
