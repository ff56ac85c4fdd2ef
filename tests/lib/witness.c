/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process outside of holdfastd that watches the store, or writes to it. STORE is the URL of etcd,
 * or sqlite:FILE.
 *
 *      witness STORE PREFIX
 *              prints {"ready":<revision>} once it watches, then for each event from then on
 *              {"t":<monotonic ns>,"rev":1,"type":"PUT","key":"...","value":"..."}; ends with
 *              SIGTERM, or when its stdin closes. If the watch ends, because a test has stopped
 *              etcd for seconds, for example, it goes on after the last revision
 *      witness STORE PREFIX --bare-writes N [PAUSE_MS]
 *              makes N writes, one after another, and prints how many nanoseconds each takes.
 *              With a pause before each write, the time counts from the planned end of the pause:
 *              it is the cost of a write that is due at an instant, on a machine at rest
 *      witness STORE PREFIX --put KEY FILE
 *              writes the content of a file once, as another process would
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/http/global.h"
#include "base/strbuf.h"
#include "server/storage/store.h"
#include "store_open.h"

static struct hf_host host = {.size = sizeof host};
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int outcome;       /* guarded by mu */
static bool has_reply;    /* guarded by mu */
static uint64_t revision; /* guarded by mu; while the witness watches, the last that it has seen */
static int ended_fd = -1; /* an eventfd: the watch has ended */

static hf_nsec monotonic(void) {
        const struct hf_clock *clock = hf_clock_system();
        return clock->monotonic(clock->ctx);
}

static void on_reply(void *ctx, const struct hfd_store_reply *reply) {
        (void)ctx;
        pthread_mutex_lock(&mu);
        outcome = reply->error;
        revision = reply->revision;
        has_reply = true;
        pthread_cond_signal(&cond);
        pthread_mutex_unlock(&mu);
}

/* Waits for the reply, unless r says that the operation did not start. Returns the error. */
static int wait_reply(int r) {
        if (r != 0)
                return r;
        pthread_mutex_lock(&mu);
        while (!has_reply)
                pthread_cond_wait(&cond, &mu);
        has_reply = false;
        r = outcome;
        pthread_mutex_unlock(&mu);
        return r;
}

static hf_nsec deadline(void) { return hf_now(hf_clock_system()) + 10 * HF_NSEC_PER_SEC; }

static void on_events(void *ctx, const struct hfd_watch_event *events, size_t n) {
        hf_nsec now = monotonic();
        struct hf__strbuf line = {0};

        (void)ctx;
        pthread_mutex_lock(&mu);
        revision = events[n - 1].revision;
        pthread_mutex_unlock(&mu);
        for (size_t i = 0; i < n; i++) {
                const struct hfd_watch_event *event = &events[i];
                if (event->type == HFD_WATCH_PROGRESS)
                        continue;
                hf__strbuf_printf(&line, "{\"t\":%lld,\"rev\":%llu,\"type\":\"%s\",\"key\":",
                                  (long long)now, (unsigned long long)event->kv.mod_revision,
                                  event->type == HFD_WATCH_PUT ? "PUT" : "DELETE");
                hf__strbuf_json(&line, event->kv.key, strlen(event->kv.key));
                if (event->kv.value) {
                        hf__strbuf_puts(&line, ",\"value\":");
                        hf__strbuf_json(&line, event->kv.value->data, event->kv.value->n);
                }
                hf__strbuf_puts(&line, "}\n");
        }
        if (line.n)
                (void)!write(STDOUT_FILENO, line.data, line.n);
        hf__strbuf_done(&line);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        (void)ctx;
        if (error == HF_E_CANCELED)
                return;
        fprintf(stderr, "witness: the watch ended: %s %s\n", hf_strerror(error),
                status ? status->message : "");
        (void)eventfd_write(ended_fd, 1);
}

static int bare_writes(struct hfd_store *store, const char *prefix, int n, int pause_ms) {
        char key[512];

        snprintf(key, sizeof key, "%s.bare/write", prefix);
        struct hf__buf *value = hf__buf_new(300);
        memset(value->data, 'x', value->n);
        for (int i = 0; i < n; i++) {
                struct hfd_op op = {.kind = HFD_PUT, .key = key, .value = value};
                struct hfd_txn txn = {.ops = &op, .n_ops = 1};
                hf_nsec before = monotonic() + pause_ms * HF_NSEC_PER_MSEC;
                const struct timespec due = {.tv_sec = before / HF_NSEC_PER_SEC,
                                             .tv_nsec = before % HF_NSEC_PER_SEC};
                if (pause_ms)
                        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
                if (wait_reply(store->ops->txn(store, &txn, deadline(), on_reply, NULL)) != 0)
                        return 1;
                printf("%lld\n", (long long)(monotonic() - before));
        }
        hf__buf_unref(value);
        return 0;
}

static int put_file(struct hfd_store *store, const char *key, const char *path) {
        static char text[1 << 20];
        FILE *file = fopen(path, "re");
        size_t n = file ? fread(text, 1, sizeof text, file) : 0;

        if (!file)
                return 1;
        fclose(file);
        struct hf__buf *value = hf__buf_copy(text, n);
        struct hfd_op op = {.kind = HFD_PUT, .key = key, .value = value};
        struct hfd_txn txn = {.ops = &op, .n_ops = 1};
        int r = wait_reply(store->ops->txn(store, &txn, deadline(), on_reply, NULL));
        hf__buf_unref(value);
        return r != 0;
}

static int watch(struct hfd_store *store, const char *prefix) {
        static const struct hfd_watch_handler handler = {.event = on_events, .end = on_end};
        struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};
        char begin[512], end[512], byte;
        bool is_ready = false;

        snprintf(begin, sizeof begin, "%s.", prefix);
        snprintf(end, sizeof end, "%s0", prefix);
        fds[1].fd = ended_fd = eventfd(0, EFD_CLOEXEC);
        if (ended_fd < 0 ||
            wait_reply(store->ops->revision(store, deadline(), on_reply, NULL)) != 0)
                return 1;
        for (;;) {
                eventfd_t ends;
                uint64_t id, from;

                pthread_mutex_lock(&mu);
                from = revision + 1;
                pthread_mutex_unlock(&mu);
                if (store->ops->watch(store, begin, end, from, &handler, NULL, &id) != 0)
                        return 1;
                if (!is_ready) {
                        printf("{\"ready\":%llu}\n", (unsigned long long)(from - 1));
                        fflush(stdout);
                        is_ready = true;
                }
                while (poll(fds, 2, -1) < 0 || !(fds[1].revents & POLLIN))
                        if (fds[0].revents && read(STDIN_FILENO, &byte, 1) <= 0)
                                return 0;
                (void)eventfd_read(ended_fd, &ends);
                /* A store that is gone ends each watch at once. */
                (void)poll(fds, 1, 100);
        }
}

int main(int argc, char **argv) {
        struct hfd_store *store;
        struct hf_status status;

        if (argc < 3) {
                fprintf(stderr, "usage: witness URL-OF-ETCD|sqlite:FILE PREFIX [--bare-writes N "
                                "[PAUSE_MS] | "
                                "--put KEY FILE]\n");
                return 2;
        }
        signal(SIGPIPE, SIG_IGN);
        if (hf__http_global_init() != 0) {
                fprintf(stderr, "witness: libcurl cannot be initialised\n");
                return 1;
        }
        if (store_open(&host, argv[1], &store, &status) != 0) {
                fprintf(stderr, "witness: %s\n", status.message);
                return 1;
        }
        int r;
        if ((argc == 5 || argc == 6) && strcmp(argv[3], "--bare-writes") == 0)
                r = bare_writes(store, argv[2], atoi(argv[4]), argc == 6 ? atoi(argv[5]) : 0);
        else if (argc == 6 && strcmp(argv[3], "--put") == 0)
                r = put_file(store, argv[4], argv[5]);
        else
                r = watch(store, argv[2]);
        store->ops->free(store);
        return r;
}
