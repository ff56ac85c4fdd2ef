/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host with systemd's event loop. The loop runs all callbacks of libholdfast, except the log's,
 * on the main thread. Nothing blocks the loop, not even the stop. docs/embedding.md explains it.
 *
 *      cc loop_sd_event.c $(pkg-config --cflags --libs libholdfast libcurl libsystemd) -o counter
 *      ./counter NAME IDENTITY [KUBECONFIG]
 */
#include <unistd.h>

#include <systemd/sd-event.h>

#include "loop_counter.h"

#define TICK_USEC 100000

static int on_holdfast(sd_event_source *source, int fd, uint32_t events, void *ctx) {
        (void)hf_loop_dispatch((struct hf_loop *)ctx);
        return 0;
}

static int on_tick(sd_event_source *source, uint64_t usec, void *ctx) {
        loop_counter_tick((struct loop_counter *)ctx);
        (void)sd_event_source_set_time(source, usec + TICK_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static sd_event *event;
static void on_stopped(void *ctx) { (void)sd_event_exit(event, 0); }

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *signal, void *ctx) {
        loop_counter_stop((struct loop_counter *)ctx, on_stopped, NULL);
        return 0;
}

int main(int argc, char **argv) {
        struct loop_counter counter;
        struct hf_status status = {0};
        sigset_t mask;
        uint64_t now;

        if (argc < 3) {
                fprintf(stderr, "usage: counter NAME IDENTITY [KUBECONFIG]\n");
                return 2;
        }
        sigemptyset(&mask);
        sigaddset(&mask, SIGTERM);
        sigprocmask(SIG_BLOCK, &mask, NULL); /* before the first thread; sd-event requires it */
        if (loop_counter_start(&counter, argv[1], argv[2], argv[3], &status) != 0) {
                fprintf(stderr, "%s\n", status.message);
                return 1;
        }
        if (sd_event_default(&event) < 0 ||
            sd_event_add_signal(event, NULL, SIGTERM, on_signal, &counter) < 0 ||
            sd_event_add_io(event, NULL, hf_loop_fd(counter.loop), EPOLLIN, on_holdfast,
                            counter.loop) < 0 ||
            sd_event_now(event, CLOCK_MONOTONIC, &now) < 0 ||
            sd_event_add_time(event, NULL, CLOCK_MONOTONIC, now, 0, on_tick, &counter) < 0 ||
            sd_event_loop(event) < 0)
                return 1;
        if (counter.result == HF_E_STUCK)
                _exit(70);
        loop_counter_free(&counter);
        (void)sd_event_unref(event);
        return counter.result != 0;
}
