/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: its loop, and the functions that other threads call.
 *
 * One thread owns curl and all requests. Other threads send it commands through the mailbox.
 * Besides the mailbox they use only the members that mu guards, and the immutable ones.
 * Callbacks run on the engine's thread with no lock held.
 *
 * From its submission until its end a request is in the bucket for its id, so that a cancellation
 * finds it. Its cancel command is a member of its struct, so that canceling allocates nothing and
 * cannot fail. A request that ends while its cancel command is in the mailbox is kept until the
 * command is taken.
 *
 * The deadlines of requests come before their sockets: whenever curl may be about to send, the loop
 * first ends the requests whose deadline has passed. After a suspend of the machine a connection
 * may be ready for a request that must not be sent any more. The price is that a response that
 * arrived in time is lost if the loop reaches it after the deadline.
 *
 * The loop sleeps in epoll_wait until one of curl's sockets, the mailbox or a boot-time timer wakes
 * it. The timer expires no later than the earliest of the lanes' timers (hf__lanes_due), the
 * requests' timers and the scheduled calls. It is set again only if it is not armed or must expire
 * earlier. If it expires too early, that costs one empty iteration, which is cheaper than a system
 * call per request. If the host provides its own clock, that clock may jump when the system's does
 * not. So the loop reads such a clock once a second while a timer is set.
 *
 * After hf__http_engine_stop, submissions are refused. The thread takes the remaining commands from
 * the mailbox, ends every remaining request with HF_E_CANCELED, calls every remaining scheduled
 * function, and exits.
 */
#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/http/engine_private.h"
#include "base/http/exchange.h"
#include "base/thread.h"

#define N_EVENTS 64
/* How late the loop may notice that the host's own clock has jumped. */
#define CLOCK_JUMP_MS 1000

/* A call that hf__http_schedule has scheduled. The engine owns it. */
struct scheduled_call {
        struct hf__http_command command; /* HF__HTTP_SCHEDULE */
        struct hf__timer timer;
        hf_nsec when;
        void (*fn)(void *ctx);
        void *ctx;
};

#define CONTAINER_OF(pointer, type, member)                                                        \
        ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* ---- any thread ---- */

static struct hf__exchange **bucket_of_locked(struct hf__http_engine *engine, uint64_t id) {
        hf__mutex_assert_held(&engine->mu);
        return &engine->buckets[id % HF__HTTP_N_BUCKETS];
}

static void post_locked(struct hf__http_engine *engine, struct hf__http_command *command,
                        enum hf__http_command_kind kind) {
        hf__mutex_assert_held(&engine->mu);
        /* The thread may exit after the stop command, and would then miss this one. */
        assert(!engine->closed);
        command->kind = kind;
        hf__mailbox_post_lazily(&engine->mailbox, &command->message);
}

/* The newest request with this id; NULL = none. */
static struct hf__exchange *find_locked(struct hf__http_engine *engine, uint64_t id) {
        hf__mutex_assert_held(&engine->mu);
        struct hf__exchange *x = *bucket_of_locked(engine, id);
        while (x && x->id != id)
                x = x->next_in_bucket;
        return x;
}

/* Returns 0 if a request may be submitted now. previous_id: the id of the request that this one
 * retries; 0 = it is not a retry. */
static int check_submit_locked(struct hf__http_engine *engine, uint64_t previous_id) {
        hf__mutex_assert_held(&engine->mu);
        if (engine->closed)
                return HF_E_CLOSED;
        const struct hf__exchange *last_try = previous_id ? find_locked(engine, previous_id) : NULL;
        return last_try && last_try->cancel_posted ? HF_E_CANCELED : 0;
}

/* Submits a request, or a retry if previous_id is not 0. Copies the request outside the lock,
 * because the copy can be large. */
static int submit_request(struct hf__http_engine *engine, const struct hf__http_request *request,
                          uint64_t previous_id, uint64_t *ret_id) {
        if (!request->method || !request->url || !request->on_done ||
            request->lane >= HF__HTTP_N_LANES || (request->n_headers > 0 && !request->headers) ||
            (request->n_body > 0 && !request->body))
                return -EINVAL;
        struct hf__exchange *x = hf__exchange_new(engine, request);
        if (!x)
                return -ENOMEM;
        pthread_mutex_lock(&engine->mu);
        int r = check_submit_locked(engine, previous_id);
        if (r == 0) {
                x->id = previous_id ? previous_id : ++engine->last_id;
                if (ret_id) /* before the command is posted, because a callback may need the id */
                        *ret_id = x->id;
                /* Insert in front of the previous try, which stays in the bucket until its on_done
                 * has returned. So find_locked finds the new try. */
                struct hf__exchange **bucket = bucket_of_locked(engine, x->id);
                x->next_in_bucket = *bucket;
                *bucket = x;
                post_locked(engine, &x->submit_command, HF__HTTP_SUBMIT);
        }
        pthread_mutex_unlock(&engine->mu);
        if (r != 0)
                hf__exchange_free(x);
        return r;
}

int hf__http_submit(struct hf__http_engine *engine, const struct hf__http_request *request,
                    uint64_t *ret_id) {
        return submit_request(engine, request, 0, ret_id);
}

int hf__http_submit_again(struct hf__http_engine *engine, const struct hf__http_request *request,
                          uint64_t id) {
        hf__engine_assert_thread(engine);
        assert(id != 0);
        return submit_request(engine, request, id, NULL);
}

void hf__http_cancel(struct hf__http_engine *engine, uint64_t id) {
        pthread_mutex_lock(&engine->mu);
        struct hf__exchange *x = find_locked(engine, id);
        if (x && !x->cancel_posted && !engine->closed) {
                x->cancel_posted = true;
                post_locked(engine, &x->cancel_command, HF__HTTP_CANCEL);
        }
        pthread_mutex_unlock(&engine->mu);
}

int hf__http_schedule(struct hf__http_engine *engine, hf_nsec when, void (*fn)(void *ctx),
                      void *ctx) {
        assert(fn);
        struct scheduled_call *scheduled = calloc(1, sizeof *scheduled);
        if (!scheduled)
                return -ENOMEM;
        scheduled->when = when;
        scheduled->fn = fn;
        scheduled->ctx = ctx;
        pthread_mutex_lock(&engine->mu);
        bool closed = engine->closed;
        if (!closed)
                post_locked(engine, &scheduled->command, HF__HTTP_SCHEDULE);
        pthread_mutex_unlock(&engine->mu);
        if (closed)
                free(scheduled);
        return closed ? HF_E_CLOSED : 0;
}

/* ---- the engine's thread ---- */

void hf__engine_remove_exchange(struct hf__http_engine *engine, struct hf__exchange *x) {
        hf__engine_assert_thread(engine);
        assert(!x->ended && !x->pool && !x->easy && !x->timer.queued);
        assert(x->link);
        *x->link = x->next;
        if (x->next)
                x->next->link = x->link;
        pthread_mutex_lock(&engine->mu);
        struct hf__exchange **bucket = bucket_of_locked(engine, x->id);
        while (*bucket != x)
                bucket = &(*bucket)->next_in_bucket;
        *bucket = x->next_in_bucket;
        x->ended = true;
        bool keep = x->cancel_posted;
        pthread_mutex_unlock(&engine->mu);
        if (!keep)
                hf__exchange_free(x);
}

static void run_scheduled_call(struct scheduled_call *scheduled) {
        scheduled->fn(scheduled->ctx);
        free(scheduled);
}

static void handle_submit(struct hf__http_engine *engine, struct hf__exchange *x) {
        x->next = engine->exchanges;
        if (x->next)
                x->next->link = &x->next;
        x->link = &engine->exchanges;
        engine->exchanges = x;
        hf__exchange_start(x);
}

/* The submit command was posted earlier to the same mailbox, so x has been started already. */
static void handle_cancel(struct hf__exchange *x) {
        struct hf__http_engine *engine = x->engine;

        if (x->ended) {
                hf__exchange_free(x);
                return;
        }
        pthread_mutex_lock(&engine->mu);
        /* The command is no longer in the mailbox, so hf__engine_remove_exchange may free x. */
        x->cancel_posted = false;
        pthread_mutex_unlock(&engine->mu);
        hf__exchange_abort(x, HF_E_CANCELED);
}

static void handle_command(struct hf__http_engine *engine, struct hf__http_command *command) {
        switch (command->kind) {
        case HF__HTTP_SUBMIT:
                handle_submit(engine, CONTAINER_OF(command, struct hf__exchange, submit_command));
                break;
        case HF__HTTP_CANCEL:
                handle_cancel(CONTAINER_OF(command, struct hf__exchange, cancel_command));
                break;
        case HF__HTTP_SCHEDULE: {
                struct scheduled_call *scheduled =
                        CONTAINER_OF(command, struct scheduled_call, command);
                hf__timer_heap_add(&engine->scheduled_calls, &scheduled->timer, scheduled->when);
                break;
        }
        case HF__HTTP_STOP: engine->stopping = true; break;
        }
}

static void handle_messages(struct hf__http_engine *engine) {
        struct hf__message *message = hf__mailbox_take(&engine->mailbox);

        while (message) {
                /* Handling the command may free its struct. */
                struct hf__message *next = message->next;
                handle_command(engine, CONTAINER_OF(message, struct hf__http_command, message));
                message = next;
        }
}

/* Reads the clock, ends the requests that have reached a time limit, starts the delayed ones that
 * are due. */
static void run_exchange_timers(struct hf__http_engine *engine) {
        struct hf__timer *first;

        engine->now = hf_now(engine->clock);
        /* The loop ends, because each call removes its timer from the heap or sets it to a later
         * time. */
        while ((first = engine->exchange_timers.first) != NULL && first->at <= engine->now)
                hf__exchange_on_timer(CONTAINER_OF(first, struct hf__exchange, timer));
}

static void run_scheduled_calls(struct hf__http_engine *engine) {
        struct hf__timer *first;

        while ((first = engine->scheduled_calls.first) != NULL &&
               (first->at <= engine->now || engine->stopping)) {
                hf__timer_heap_remove(&engine->scheduled_calls, first);
                run_scheduled_call(CONTAINER_OF(first, struct scheduled_call, timer));
        }
}

/* Arms the timer if necessary. Returns the timeout for epoll_wait: milliseconds, or -1 to sleep
 * until something wakes it. */
static int prepare_wait(struct hf__http_engine *engine) {
        hf_nsec next = hf__lanes_due(engine);

        if (engine->exchange_timers.first && engine->exchange_timers.first->at < next)
                next = engine->exchange_timers.first->at;
        if (engine->scheduled_calls.first && engine->scheduled_calls.first->at < next)
                next = engine->scheduled_calls.first->at;
        if (next <= engine->now)
                return 0;
        if (next < engine->timer_expires_at) {
                hf_nsec rest = next - hf_now(engine->clock);
                if (rest <= 0)
                        return 0;
                struct itimerspec spec = {.it_value = {.tv_sec = (time_t)(rest / HF_NSEC_PER_SEC),
                                                       .tv_nsec = (long)(rest % HF_NSEC_PER_SEC)}};
                int r = timerfd_settime(engine->timer_fd, 0, &spec, NULL);
                assert(r == 0); /* the times are valid */
                (void)r;
                engine->timer_expires_at = next;
        }
        bool may_jump = next != HF_NSEC_NEVER && engine->clock != hf_clock_system();
        return may_jump ? CLOCK_JUMP_MS : -1;
}

/* One iteration of the loop. The flush comes after all calls of curl, so that it sends everything
 * that curl has written. Many responses may arrive together, and their callbacks often post to the
 * same thread, so the wake of that thread is delayed. */
static void run_iteration(struct hf__http_engine *engine) {
        struct epoll_event events[N_EVENTS];
        int n = epoll_wait(engine->epoll_fd, events, N_EVENTS, prepare_wait(engine));
        bool messages = false;

        hf__mailbox_delay_wakes();
        run_exchange_timers(engine);
        for (int i = 0; i < n; i++) {
                int fd = events[i].data.fd;
                if (fd == engine->mailbox.fd) {
                        messages = true;
                } else if (fd == engine->timer_fd) {
                        uint64_t count;
                        ssize_t n_read = read(fd, &count, sizeof count);
                        (void)n_read;
                        engine->timer_expires_at = HF_NSEC_NEVER;
                } else {
                        run_exchange_timers(engine);
                        hf__lanes_socket_event(engine, fd, events[i].events);
                }
        }
        if (messages)
                handle_messages(engine);
        run_exchange_timers(engine);
        hf__lanes_run(engine);
        run_scheduled_calls(engine);
        hf__lanes_flush(engine);
        hf__mailbox_wake_delayed();
}

static void *run_loop(void *ctx) {
        struct hf__http_engine *engine = ctx;

        engine->self = pthread_self();
        while (!engine->stopping)
                run_iteration(engine);
        /* No command can follow the stop command, so the mailbox is empty now. */
        while (engine->exchanges)
                hf__exchange_abort(engine->exchanges, HF_E_CANCELED);
        run_scheduled_calls(engine);
        return NULL;
}

/* ---- creating, stopping and freeing ---- */

/* Frees the engine. Its thread has ended or was never started. */
static void destroy_engine(struct hf__http_engine *engine) {
        assert(!engine->exchanges && !engine->exchange_timers.first &&
               !engine->scheduled_calls.first);
        for (size_t i = 0; i < HF__HTTP_N_BUCKETS; i++)
                assert(!engine->buckets[i]);
        hf__curl_options_done(engine);
        hf__lanes_done(engine);
        if (engine->timer_fd >= 0)
                close(engine->timer_fd);
        if (engine->epoll_fd >= 0)
                close(engine->epoll_fd);
        hf__mailbox_done(&engine->mailbox);
        pthread_mutex_destroy(&engine->mu);
        free(engine);
}

HF__CLEANUP_DEFINE(engine_cleanup, struct hf__http_engine *, destroy_engine)

/* Initialises the mutex and the mailbox, or after an error neither: destroy_engine cannot see
 * whether they are initialised. */
static int init_locks(struct hf__http_engine *engine) {
        int r = hf__mutex_init(&engine->mu);

        if (r < 0)
                return r;
        r = hf__mailbox_init(&engine->mailbox);
        if (r < 0)
                pthread_mutex_destroy(&engine->mu);
        return r;
}

static int add_to_epoll(struct hf__http_engine *engine, int fd) {
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
        int r = add_to_epoll(engine, engine->timer_fd);
        return r < 0 ? r : add_to_epoll(engine, engine->mailbox.fd);
}

int hf__http_engine_new(const struct hf_host *host, const char *thread_name,
                        struct hf__http_engine **ret_engine) {
        HF__CLEANUP(hf__free_cleanup) struct hf__http_engine *memory = calloc(1, sizeof *memory);

        if (!memory)
                return -ENOMEM;
        int r = init_locks(memory);
        if (r < 0)
                return r;
        HF__CLEANUP(engine_cleanup) struct hf__http_engine *engine = HF__TAKE(memory);
        engine->host = host;
        engine->clock = hf_host_clock(host);
        engine->epoll_fd = -1;
        engine->timer_fd = -1;
        engine->timer_expires_at = HF_NSEC_NEVER;
        engine->now = hf_now(engine->clock);
        r = open_fds(engine);
        if (r < 0)
                return r;
        r = hf__lanes_init(engine);
        if (r < 0)
                return r;
        r = hf__thread_start(host, thread_name, run_loop, engine, &engine->thread);
        if (r < 0)
                return r;
        *ret_engine = HF__TAKE(engine);
        return 0;
}

void hf__http_engine_stop(struct hf__http_engine *engine) {
        pthread_mutex_lock(&engine->mu);
        if (!engine->closed) {
                post_locked(engine, &engine->stop_command, HF__HTTP_STOP);
                engine->closed = true;
        }
        pthread_mutex_unlock(&engine->mu);
}

struct hf__http_engine *hf__http_engine_free(struct hf__http_engine *engine) {
        if (!engine)
                return NULL;
        assert(!pthread_equal(engine->thread, pthread_self()));
        hf__http_engine_stop(engine);
        hf__mailbox_wake_early(); /* the thread must learn of the stop */
        (void)hf__thread_join(engine->thread);
        destroy_engine(engine);
        return NULL;
}
