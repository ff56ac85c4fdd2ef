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

#include "base/cleanup.h"
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
        worker->dirty.tail = &worker->dirty.first;
        worker->dirty_strangers.tail = &worker->dirty_strangers.first;
        hfd_strangers_init(&worker->handshakes, http->seed);
        hfd_strangers_init(&worker->strangers, http->seed);
        HF__CLEANUP(hf__free_cleanup) char *in = malloc(HFD_IN_SPACE);
        HF__CLEANUP(hf__free_cleanup) char *out = malloc(HFD_OUT_SPACE + HFD_OUT_SLACK);
        if (!in || !out)
                return -ENOMEM;
        r = hfd_worker_mailbox_init(&worker->mailbox);
        if (r != 0)
                return r;
        r = open_epolls(worker);
        if (r != 0) {
                close_epolls(worker);
                hfd_worker_mailbox_done(&worker->mailbox);
                return r;
        }
        worker->in = HF__TAKE(in);
        worker->out = HF__TAKE(out);
        return 0;
}

void hfd_worker_done(struct hfd_worker *worker) {
        assert(!worker->running && !worker->connections && !worker->responded);
        assert(!worker->dirty.first && !worker->dirty_strangers.first);
        hfd_strangers_done(&worker->handshakes);
        hfd_strangers_done(&worker->strangers);
        hfd_worker_mailbox_done(&worker->mailbox);
        close_epolls(worker);
        free(worker->in);
        free(worker->out);
}
