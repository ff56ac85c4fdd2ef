/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host with libuv's event loop. The loop runs all callbacks of libholdfast, except the log's, on
 * the main thread. Nothing blocks the loop, not even the stop. docs/embedding.md explains it.
 *
 *      cc loop_uv.c $(pkg-config --cflags --libs libholdfast libcurl libuv) -o counter
 *      ./counter NAME IDENTITY [KUBECONFIG]
 */
#include <unistd.h>

#include <uv.h>

#include "loop_counter.h"

static void on_holdfast(uv_poll_t *poll, int error, int events) {
        (void)hf_loop_dispatch((struct hf_loop *)poll->data);
}

static void on_tick(uv_timer_t *timer) { loop_counter_tick((struct loop_counter *)timer->data); }
static void on_stopped(void *ctx) { uv_stop((uv_loop_t *)ctx); }

static void on_signal(uv_signal_t *signal, int number) {
        loop_counter_stop((struct loop_counter *)signal->data, on_stopped, signal->loop);
}

int main(int argc, char **argv) {
        uv_loop_t *loop = uv_default_loop();
        struct loop_counter counter;
        struct hf_status status = {0};
        uv_poll_t poll = {.data = NULL};
        uv_timer_t timer = {.data = &counter};
        uv_signal_t signal = {.data = &counter};

        if (argc < 3) {
                fprintf(stderr, "usage: counter NAME IDENTITY [KUBECONFIG]\n");
                return 2;
        }
        if (loop_counter_start(&counter, argv[1], argv[2], argv[3], &status) != 0) {
                fprintf(stderr, "%s\n", status.message);
                return 1;
        }
        if (uv_poll_init(loop, &poll, hf_loop_fd(counter.loop)) != 0 ||
            uv_timer_init(loop, &timer) != 0 || uv_signal_init(loop, &signal) != 0)
                return 1;
        poll.data = counter.loop;
        timer.data = signal.data = &counter;
        if (uv_poll_start(&poll, UV_READABLE, on_holdfast) != 0 ||
            uv_timer_start(&timer, on_tick, 0, 100) != 0 ||
            uv_signal_start(&signal, on_signal, SIGTERM) != 0)
                return 1;
        (void)uv_run(loop, UV_RUN_DEFAULT); /* until uv_stop */
        if (counter.result == HF_E_STUCK)
                _exit(70);
        (void)uv_poll_stop(&poll);
        loop_counter_free(&counter);
        return counter.result != 0;
}
