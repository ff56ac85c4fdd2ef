/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's loop. One thread owns curl and all requests; others reach it through the mailbox
 * only.
 *
 * A request is in a bucket (by its id, guarded by mu) from its submission until it has ended, so
 * that a cancellation can find it; its cancel note is a member, so that cancelling allocates
 * nothing and cannot fail. A request that ends while its cancel note is in the mailbox is kept
 * until the note is taken.
 *
 * The loop sleeps in epoll_wait for at most a second: on curl's sockets, on the mailbox, and on a
 * timer of boot time that is set to the earliest of curl's timers, the requests' deadlines and the
 * calls asked for. The timer is set only when it must ring earlier than it is set to; ringing too
 * early is one turn for nothing.
 *
 * At the stop: submissions are refused from then on, what is in the mailbox is taken, every request
 * ends with HF_E_CANCELED and every timer is called, on the engine's thread, which then ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/http/engine_private.h"
#include "base/thread.h"

#define N_EVENTS    64
#define MAX_WAIT_MS 1000

struct timer {
        struct hf__note note;
        struct hf__timer due;
        hf_nsec when;
        void (*fn)(void *ctx);
        void *ctx;
};

#define CONTAINER(pointer, type, member)                                                           \
        ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static struct hf__exchange **bucket_of(struct hf__http_engine *engine, uint64_t id) {
        return &engine->buckets[id % HF__HTTP_N_BUCKETS];
}

/* ---- any thread ---- */

static void post_locked(struct hf__http_engine *engine, struct hf__note *note,
                        enum hf__note_kind kind) {
        note->kind = kind;
        hf__mailbox_post(&engine->box, &note->message);
}

static struct hf__exchange *find_locked(struct hf__http_engine *engine, uint64_t id) {
        struct hf__exchange *x = *bucket_of(engine, id);
        while (x && x->id != id)
                x = x->next_in_bucket;
        return x;
}

/* again: the id of the request that this is another try of; 0 = a new one. */
static int submit(struct hf__http_engine *engine, const struct hf__http_request *request,
                  uint64_t again, uint64_t *ret_id) {
        if (!request->method || !request->url || !request->on_done ||
            request->lane >= HF__HTTP_N_LANES || (request->n_headers > 0 && !request->headers) ||
            (request->n_body > 0 && !request->body))
                return -EINVAL;
        struct hf__exchange *x = hf__exchange_new(engine, request);
        if (!x)
                return -ENOMEM;
        pthread_mutex_lock(&engine->mu);
        const struct hf__exchange *last_try = again ? find_locked(engine, again) : NULL;
        int r = engine->closed                        ? HF_E_CLOSED
                : last_try && last_try->cancel_posted ? HF_E_CANCELED
                                                      : 0;
        if (r == 0) {
                x->id = again ? again : ++engine->last_id;
                if (ret_id)
                        *ret_id = x->id; /* before the first callback can come */
                struct hf__exchange **bucket = bucket_of(engine, x->id);
                x->next_in_bucket = *bucket; /* before the last try, which is there until its
                                                on_done has returned */
                *bucket = x;
                post_locked(engine, &x->note, HF__NOTE_SUBMIT);
        }
        pthread_mutex_unlock(&engine->mu);
        if (r != 0)
                hf__exchange_free(x);
        return r;
}

int hf__http_submit(struct hf__http_engine *engine, const struct hf__http_request *request,
                    uint64_t *ret_id) {
        return submit(engine, request, 0, ret_id);
}

int hf__http_submit_again(struct hf__http_engine *engine, const struct hf__http_request *request,
                          uint64_t id) {
        return submit(engine, request, id, NULL);
}

void hf__http_cancel(struct hf__http_engine *engine, uint64_t id) {
        pthread_mutex_lock(&engine->mu);
        struct hf__exchange *x = find_locked(engine, id);
        if (x && !x->cancel_posted && !engine->closed) {
                x->cancel_posted = true;
                post_locked(engine, &x->cancel_note, HF__NOTE_CANCEL);
        }
        pthread_mutex_unlock(&engine->mu);
}

int hf__http_schedule(struct hf__http_engine *engine, hf_nsec when, void (*fn)(void *ctx),
                      void *ctx) {
        struct timer *timer = calloc(1, sizeof *timer);

        if (!timer)
                return -ENOMEM;
        timer->when = when;
        timer->fn = fn;
        timer->ctx = ctx;
        pthread_mutex_lock(&engine->mu);
        bool closed = engine->closed;
        if (!closed)
                post_locked(engine, &timer->note, HF__NOTE_TIMER);
        pthread_mutex_unlock(&engine->mu);
        if (closed)
                free(timer);
        return closed ? HF_E_CLOSED : 0;
}

uint64_t hf__http_engine_iterations(struct hf__http_engine *engine) {
        return atomic_load_explicit(&engine->iterations, memory_order_relaxed);
}

/* ---- the engine's thread ---- */

void hf__engine_forget(struct hf__http_engine *engine, struct hf__exchange *x) {
        if (x->link) {
                *x->link = x->next;
                if (x->next)
                        x->next->link = x->link;
        }
        pthread_mutex_lock(&engine->mu);
        struct hf__exchange **bucket = bucket_of(engine, x->id);
        while (*bucket != x)
                bucket = &(*bucket)->next_in_bucket;
        *bucket = x->next_in_bucket;
        x->ended = true;
        bool keep = x->cancel_posted;
        pthread_mutex_unlock(&engine->mu);
        if (!keep)
                hf__exchange_free(x);
}

static void run_timer(struct timer *timer) {
        timer->fn(timer->ctx);
        free(timer);
}

static void take_submit(struct hf__http_engine *engine, struct hf__exchange *x) {
        x->next = engine->exchanges;
        if (x->next)
                x->next->link = &x->next;
        x->link = &engine->exchanges;
        engine->exchanges = x;
        hf__exchange_start(x);
}

/* Its submission came before, in the same mailbox. */
static void take_cancel(struct hf__exchange *x) {
        struct hf__http_engine *engine = x->engine;

        if (x->ended) {
                hf__exchange_free(x);
                return;
        }
        pthread_mutex_lock(&engine->mu);
        x->cancel_posted = false; /* the note is ours again, and a second one finds it ended */
        pthread_mutex_unlock(&engine->mu);
        hf__exchange_abort(x, HF_E_CANCELED);
}

static void take_messages(struct hf__http_engine *engine) {
        for (struct hf__message *message = hf__mailbox_take(&engine->box), *next; message;
             message = next) {
                struct hf__note *note = CONTAINER(message, struct hf__note, message);
                next = message->next;
                switch (note->kind) {
                case HF__NOTE_SUBMIT:
                        take_submit(engine, CONTAINER(note, struct hf__exchange, note));
                        break;
                case HF__NOTE_CANCEL:
                        take_cancel(CONTAINER(note, struct hf__exchange, cancel_note));
                        break;
                case HF__NOTE_TIMER: {
                        struct timer *timer = CONTAINER(note, struct timer, note);
                        hf__timer_heap_add(&engine->due_timers, &timer->due, timer->when);
                        break;
                }
                case HF__NOTE_STOP: engine->stopping = true; break;
                }
        }
}

static void run_due(struct hf__http_engine *engine) {
        struct hf__timer *due;

        while ((due = engine->due_exchanges.first) && due->at <= engine->now)
                hf__exchange_due(CONTAINER(due, struct hf__exchange, due));
        while ((due = engine->due_timers.first) && (due->at <= engine->now || engine->stopping)) {
                hf__timer_heap_remove(&engine->due_timers, due);
                run_timer(CONTAINER(due, struct timer, due));
        }
}

/* How long epoll may wait; beforehand sets the timer for what comes sooner. */
static int prepare_wait(struct hf__http_engine *engine) {
        hf_nsec next = hf__lanes_due(engine);

        if (engine->due_exchanges.first && engine->due_exchanges.first->at < next)
                next = engine->due_exchanges.first->at;
        if (engine->due_timers.first && engine->due_timers.first->at < next)
                next = engine->due_timers.first->at;
        if (next <= engine->now)
                return 0;
        if (next < engine->armed_at) {
                hf_nsec rest = next - hf_now(engine->clock);
                if (rest <= 0)
                        return 0;
                struct itimerspec spec = {.it_value = {.tv_sec = (time_t)(rest / HF_NSEC_PER_SEC),
                                                       .tv_nsec = (long)(rest % HF_NSEC_PER_SEC)}};
                if (timerfd_settime(engine->timer_fd, 0, &spec, NULL) == 0)
                        engine->armed_at = next;
        }
        return MAX_WAIT_MS;
}

static void iteration(struct hf__http_engine *engine) {
        struct epoll_event events[N_EVENTS];
        int n = epoll_wait(engine->epoll_fd, events, N_EVENTS, prepare_wait(engine));
        bool messages = false;

        engine->now = hf_now(engine->clock);
        atomic_fetch_add_explicit(&engine->iterations, 1, memory_order_relaxed);
        for (int i = 0; i < n; i++) {
                int fd = events[i].data.fd;
                if (fd == engine->box.fd) {
                        messages = true;
                } else if (fd == engine->timer_fd) {
                        uint64_t count;
                        ssize_t n_read = read(fd, &count, sizeof count);
                        (void)n_read;
                        engine->armed_at = HF_NSEC_NEVER;
                } else {
                        hf__lanes_socket_event(engine, fd, events[i].events);
                }
        }
        if (messages)
                take_messages(engine);
        hf__lanes_run(engine);
        run_due(engine);
        hf__lanes_flush(engine);
}

static void *loop(void *ctx) {
        struct hf__http_engine *engine = ctx;

        while (!engine->stopping)
                iteration(engine);
        take_messages(engine); /* nothing is posted any more: the last of them was the stop, or came
                                 before it */
        while (engine->exchanges)
                hf__exchange_abort(engine->exchanges, HF_E_CANCELED);
        run_due(engine);
        return NULL;
}

/* ---- life ---- */

/* The thread has ended, or never began. */
static void destroy(struct hf__http_engine *engine) {
        hf__options_done(engine);
        hf__lanes_done(engine);
        if (engine->timer_fd >= 0)
                close(engine->timer_fd);
        if (engine->epoll_fd >= 0)
                close(engine->epoll_fd);
        hf__mailbox_done(&engine->box);
        pthread_mutex_destroy(&engine->mu);
        free(engine);
}

static int watch(struct hf__http_engine *engine, int fd) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        return epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_fds(struct hf__http_engine *engine) {
        engine->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (engine->epoll_fd < 0)
                return -errno;
        engine->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
        if (engine->timer_fd < 0)
                return -errno;
        int r = watch(engine, engine->timer_fd);
        return r < 0 ? r : watch(engine, engine->box.fd);
}

int hf__http_engine_new(const struct hf_host *host, const char *thread_name,
                        struct hf__http_engine **ret_engine) {
        struct hf__http_engine *engine = calloc(1, sizeof *engine);

        if (!engine)
                return -ENOMEM;
        engine->host = host;
        engine->clock = hf_host_clock(host);
        engine->needs_h2c_guard = curl_version_info(CURLVERSION_NOW)->version_num <
                                  0x080000; /* it prints texts each time it is asked */
        engine->epoll_fd = engine->timer_fd = -1;
        engine->armed_at = HF_NSEC_NEVER;
        engine->now = hf_now(engine->clock);
        int r = hf__mutex_init(&engine->mu);
        if (r < 0) {
                free(engine);
                return r;
        }
        r = hf__mailbox_init(&engine->box);
        if (r < 0) {
                pthread_mutex_destroy(&engine->mu);
                free(engine);
                return r;
        }
        r = open_fds(engine);
        if (r == 0)
                r = hf__lanes_init(engine);
        if (r == 0)
                r = hf__thread_start(host, thread_name, loop, engine, &engine->thread);
        if (r < 0) {
                destroy(engine);
                return r;
        }
        *ret_engine = engine;
        return 0;
}

void hf__http_engine_stop(struct hf__http_engine *engine) {
        pthread_mutex_lock(&engine->mu);
        if (!engine->closed)
                post_locked(engine, &engine->stop_note, HF__NOTE_STOP);
        engine->closed = true;
        pthread_mutex_unlock(&engine->mu);
}

struct hf__http_engine *hf__http_engine_free(struct hf__http_engine *engine) {
        if (!engine)
                return NULL;
        hf__http_engine_stop(engine);
        pthread_join(engine->thread, NULL);
        destroy(engine);
        return NULL;
}
