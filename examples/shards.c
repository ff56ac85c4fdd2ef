/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that is divided over all instances: eight shards, each with a Lease, a term and a fence of
 * its own. docs/embedding.md explains it. The work of a shard is to count in a ConfigMap.
 *
 *      cc shards.c $(pkg-config --cflags --libs libholdfast libcurl) -o shards
 *      ./shards NAME IDENTITY [KUBECONFIG]
 *
 * SIGTERM or SIGINT stops it; the other instances take its shards.
 */
#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <holdfast/leader.h>
#include <holdfast/shards.h>

#define N_SHARDS 8

struct job {
        const char *name, *identity;
};

/* Runs while this process holds the shard. A controller of objects would run a reconciler here, and
 * ignore the keys for which hf_shard_of(key, N_SHARDS) is another shard. */
static int count(struct hf_term *term, unsigned shard, void *ctx) {
        const struct job *job = ctx;
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        char name[100], body[600];
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_CREATE,
                                     .resource = {"", "v1", "configmaps"},
                                     .ns = "default",
                                     .name = name,
                                     .body = body};

        (void)snprintf(name, sizeof name, "%.60s-%u", job->name, shard);
        for (unsigned n = 1;; n++) {
                struct hf_status status;

                request.n_body = (size_t)
                        snprintf(body, sizeof body,
                                 "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                                 "\"metadata\":{\"name\":\"%s\"},"
                                 "\"data\":{\"by\":\"%.200s\",\"term\":\"%llu\",\"count\":\"%u\"}}",
                                 name, job->identity, (unsigned long long)hf_term_fence(term)->term,
                                 n);
                int r = hf_client_do(hf_term_client(term), &request, hf_term_abort(term), NULL,
                                     NULL, &status);
                if (r == 0 || r == HF_E_EXISTS)
                        request.verb = HF_VERB_UPDATE;
                else if (r != HF_E_CANCELED)
                        fprintf(stderr, "count %u: %s\n", shard, status.message);
                if (hf_cancel_wait(hf_term_drain(term), hf_now(clock) + 100 * HF_NSEC_PER_MSEC) ==
                    HF_E_CANCELED)
                        return 0;
        }
}

static void on_log(void *ctx, enum hf_log_level level, const char *component, const char *message) {
        fprintf(stderr, "<%d>%s: %s\n", level, component, message);
}

static const struct hf_leader_timing timing = {.lease_duration = 6 * HF_NSEC_PER_SEC,
                                               .renew_deadline = 3 * HF_NSEC_PER_SEC,
                                               .retry_period = 1 * HF_NSEC_PER_SEC};

/* Blocks the signals that stop the program, for sigwait. */
static void block_signals(sigset_t *mask) {
        sigemptyset(mask);
        sigaddset(mask, SIGTERM);
        sigaddset(mask, SIGINT);
        sigprocmask(SIG_BLOCK, mask, NULL);
}

int main(int argc, char **argv) {
        struct hf_host host = {.size = sizeof host, .log = {.write = on_log}};
        struct hf_elector_config elector = {.size = sizeof elector,
                                            .ns = "default",
                                            .timing = timing};
        struct job job;
        const struct hf_shard_controller controller = {.size = sizeof controller,
                                                       .name = "count",
                                                       .run = count,
                                                       .ctx = &job};
        const struct hf_shards_config config = {.size = sizeof config,
                                                .elector = &elector,
                                                .n_shards = N_SHARDS,
                                                .controllers = &controller,
                                                .n_controllers = 1};
        struct hf_client *client = NULL;
        struct hf_electors *electors = NULL;
        struct hf_status status = {0};
        sigset_t mask;
        int number;

        if (argc < 3) {
                fprintf(stderr, "usage: shards NAME IDENTITY [KUBECONFIG]\n");
                return 2;
        }
        block_signals(&mask);
        signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_ALL);
        job = (struct job){.name = argv[1], .identity = argv[2]};

        int r = hf_rest_client_from_kubeconfig(&host, argv[3], &client, &status);
        elector.name = job.name;
        elector.identity = job.identity; /* must differ at each start, and from all others */
        elector.client = client;
        if (r == 0)
                r = hf_electors_new(&host, &electors);
        if (r == 0)
                r = hf_shards_add(electors, &config, NULL, &status);
        if (r == 0)
                r = hf_electors_start(electors, &status);
        if (r == 0) {
                (void)sigwait(&mask, &number);
                r = hf_electors_stop(electors, &status); /* drains, joins, releases every shard */
        }
        if (r != 0)
                fprintf(stderr, "shards: %s %s\n", hf_strerror(r), status.message);
        if (r == HF_E_STUCK)
                _Exit(70); /* a controller's thread still runs: nothing may be freed */
        hf_electors_free(electors);
        hf_client_free(client);
        return r != 0;
}
