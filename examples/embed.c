/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest server that embeds libholdfast: it has its own event loop, its own signals and one
 * controller behind an election. docs/embedding.md explains it step by step.
 *
 *      cc embed.c $(pkg-config --cflags --libs libholdfast libcurl) -o embed
 *      ./embed NAME IDENTITY [KUBECONFIG]
 *
 * SIGUSR1 prints health and metrics; SIGTERM or SIGINT stops it.
 */
#include <curl/curl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <holdfast/health.h>
#include <holdfast/leader.h>
#include <holdfast/metrics.h>

static const char *name; /* of the Lease, and of the ConfigMap that the controller writes */

/* The controller: counts in a ConfigMap while this process leads, from 1 in each term. */
static int count(struct hf_term *term, void *ctx) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_CREATE,
                                     .resource = {"", "v1", "configmaps"},
                                     .ns = "default",
                                     .name = name};

        for (unsigned n = 1;; n++) {
                char body[512];
                struct hf_status status;

                request.body = body;
                request.n_body =
                        (size_t)snprintf(body, sizeof body,
                                         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                                         "\"metadata\":{\"name\":\"%s\"},"
                                         "\"data\":{\"term\":\"%llu\",\"count\":\"%u\"}}",
                                         name, (unsigned long long)hf_term_fence(term)->term, n);
                int r = hf_client_do(hf_term_client(term), &request, hf_term_abort(term), NULL,
                                     NULL, &status);
                if (r == 0 || r == HF_E_EXISTS)
                        request.verb = HF_VERB_UPDATE;
                else if (r != HF_E_CANCELED)
                        fprintf(stderr, "count: %s\n", status.message);
                /* The drain token fires on a planned stop, and also on an abort. Between two writes
                 * there is no work to finish. */
                if (hf_cancel_wait(hf_term_drain(term), hf_now(clock) + 100 * HF_NSEC_PER_MSEC) ==
                    HF_E_CANCELED)
                        return 0;
        }
}

/* The library calls on_change on one of its threads, on_log on any. They must not block. */
static void on_log(void *ctx, enum hf_log_level level, const char *component, const char *message) {
        fprintf(stderr, "<%d>%s: %s\n", level, component, message);
}
static void on_change(void *ctx, const struct hf_leader_info *info) {
        (void)eventfd_write(*(int *)ctx, 1);
}

/* The main thread calls these functions from its loop. */
static void print_state(struct hf_elector *elector) {
        static const char *const states[] = {"following", "leading", "draining", "aborting",
                                             "releasing", "stopped", "stuck"};
        struct hf_leader_info info = {.size = sizeof info};

        hf_elector_info(elector, &info);
        printf("%s holder=%s term=%llu may_act=%d\n", states[info.state], info.holder,
               (unsigned long long)info.term, hf_elector_may_act(elector));
}
static void print_check(void *ctx, const char *check, bool healthy, const char *reason) {
        printf("check %s %s\n", check, healthy ? "ok" : reason);
}
static void print_text(void *ctx, const char *text, size_t n) { printf("%.*s", (int)n, text); }

static void run_loop(const struct hf_host *host, struct hf_elector *elector, int signals,
                     int changes) {
        struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
                               {.fd = changes, .events = POLLIN}};
        struct signalfd_siginfo signal = {0};
        eventfd_t n;

        while (signal.ssi_signo != SIGTERM && signal.ssi_signo != SIGINT) {
                if (poll(fds, 2, -1) < 0)
                        continue;
                if (fds[1].revents && eventfd_read(changes, &n) == 0)
                        print_state(elector);
                if (fds[0].revents && read(signals, &signal, sizeof signal) > 0 &&
                    signal.ssi_signo == SIGUSR1) {
                        (void)hf_health_each(host->health, HF_LIVEZ, print_check, NULL);
                        hf_metrics_write(host->metrics, print_text, NULL);
                }
                fflush(stdout);
        }
}

/*
 * Call it before the first thread is created. Leaves SIGTERM, SIGINT and SIGUSR1 to the loop, and
 * returns a file descriptor that receives them.
 */
static int prepare_process(void) {
        sigset_t mask;

        /* The library leaves these two calls to the host. */
        signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_ALL);
        sigemptyset(&mask);
        sigaddset(&mask, SIGTERM);
        sigaddset(&mask, SIGINT);
        sigaddset(&mask, SIGUSR1);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

static const struct hf_controller controller = {.size = sizeof controller,
                                                .name = "count",
                                                .run = count};

/* The defaults are 15 s, 10 s and 2 s. */
static const struct hf_leader_timing timing = {.lease_duration = 6 * HF_NSEC_PER_SEC,
                                               .renew_deadline = 3 * HF_NSEC_PER_SEC,
                                               .retry_period = 1 * HF_NSEC_PER_SEC};

int main(int argc, char **argv) {
        struct hf_host host = {.size = sizeof host, .log = {.write = on_log}};
        struct hf_client *client = NULL;
        struct hf_electors *electors = NULL;
        struct hf_elector *elector;
        struct hf_status status = {0};

        if (argc < 3) {
                fprintf(stderr, "usage: embed NAME IDENTITY [KUBECONFIG]\n");
                return 2;
        }
        int signals = prepare_process();
        int changes = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);

        int r = hf_health_new(&host.health);
        if (r == 0)
                r = hf_metrics_new(&host.metrics);
        if (r == 0) /* without a third argument it is NULL: the default kubeconfig */
                r = hf_rest_client_from_kubeconfig(&host, argv[3], &client, &status);
        name = argv[1];
        const struct hf_elector_config config =
                {.size = sizeof config,
                 .ns = "default",
                 .name = name,
                 .identity = argv[2], /* must differ at each start, and from all other processes */
                 .client = client,
                 .timing = timing,
                 .controllers = &controller,
                 .n_controllers = 1,
                 .on_change = on_change,
                 .ctx = &changes};
        if (r == 0)
                r = hf_electors_new(&host, &electors);
        if (r == 0)
                r = hf_electors_add(electors, &config, &elector, &status);
        if (r == 0)
                r = hf_electors_start(electors, &status); /* returns at once */
        if (r == 0) {
                run_loop(&host, elector, signals, changes);
                r = hf_electors_stop(electors, &status); /* drains, joins, releases */
        }
        if (r != 0)
                fprintf(stderr, "embed: %s %s\n", hf_strerror(r), status.message);
        if (r == HF_E_STUCK)
                _exit(70); /* one of our functions still runs: nothing may be freed */
        hf_electors_free(electors);
        hf_client_free(client);
        hf_metrics_free(host.metrics);
        hf_health_free(host.health);
        curl_global_cleanup();
        return r != 0;
}
