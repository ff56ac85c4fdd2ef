/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the examples with an event loop share: a controller that counts in a ConfigMap while this
 * process leads. Everything here but the log callback runs on the loop's thread, so it needs no
 * lock.
 */
#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/loop_controller.h>

struct loop_counter {
        const char *name; /* of the Lease, and of the ConfigMap */
        struct hf_host host;
        struct hf_loop *loop;
        struct hf_client *client;
        struct hf_electors *electors;
        struct hf_loop_controller controller;
        /* one term */
        struct hf_loop_run *run; /* NULL = this process does not lead */
        struct hf_client *term_client;
        int writing, ending, exists;
        unsigned count;
        /* the stop */
        void (*stopped)(void *ctx);
        void *ctx;
        int result;
};

/* Ends the term, unless a write is under way or the term has ended already. */
static void loop_counter_end(struct loop_counter *counter) {
        struct hf_loop_run *run = counter->run;

        if (!run || counter->writing)
                return;
        counter->term_client = hf_client_free(counter->term_client);
        counter->run = NULL;
        hf_loop_run_done(run, 0);
}

/* A term that is ending ends at the next tick: a client must not be freed in its own callback. */
static void loop_counter_written(void *ctx, const struct hf_response *response) {
        struct loop_counter *counter = (struct loop_counter *)ctx;

        counter->writing = 0;
        if (response->error == 0 || response->error == HF_E_EXISTS)
                counter->exists = 1;
        else
                fprintf(stderr, "count: %s\n", response->status.message);
}

/* The host's timer calls this. */
static void loop_counter_tick(struct loop_counter *counter) {
        char body[512];
        struct hf_request request = {.size = sizeof request,
                                     .verb = counter->exists ? HF_VERB_UPDATE : HF_VERB_CREATE,
                                     .resource = {"", "v1", "configmaps"},
                                     .ns = "default",
                                     .name = counter->name,
                                     .body = body};

        if (counter->ending)
                loop_counter_end(counter);
        if (!counter->run || counter->writing)
                return;
        request.n_body = (size_t)snprintf(body, sizeof body,
                                          "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                                          "\"metadata\":{\"name\":\"%s\"},"
                                          "\"data\":{\"count\":\"%u\"}}",
                                          counter->name, ++counter->count);
        counter->writing = hf_client_request(counter->term_client, &request, loop_counter_written,
                                             counter, NULL) == 0;
}

static void loop_counter_begin(void *ctx, struct hf_loop_run *run) {
        struct loop_counter *counter = (struct loop_counter *)ctx;

        counter->ending = counter->exists = 0;
        counter->count = 0;
        if (hf_loop_client_new(counter->loop, hf_term_client(hf_loop_run_term(run)),
                               &counter->term_client) != 0)
                hf_loop_run_done(run, -ENOMEM); /* begin is called again after a pause */
        else
                counter->run = run;
}

static void loop_counter_drain(void *ctx, struct hf_loop_run *run) {
        struct loop_counter *counter = (struct loop_counter *)ctx;

        counter->ending = 1;
        loop_counter_end(counter);
}

static void loop_counter_change(void *ctx, const struct hf_leader_info *info) {
        static const char *const states[] = {"following", "leading", "draining", "aborting",
                                             "releasing", "stopped", "stuck"};

        printf("%s holder=%s\n", states[info->state], info->holder);
        fflush(stdout);
}

static void loop_counter_log(void *ctx, enum hf_log_level level, const char *component,
                             const char *message) {
        fprintf(stderr, "<%d>%s: %s\n", level, component, message);
}

/* Call it before any thread exists. Returns 0, or an error, whose message is in *status unless it
 * comes from hf_loop_new or hf_electors_new. */
static int loop_counter_start(struct loop_counter *counter, const char *name, const char *identity,
                              const char *kubeconfig, struct hf_status *status) {
        const struct hf_controller controller = {.size = sizeof controller,
                                                 .name = "count",
                                                 .run = hf_loop_controller_run,
                                                 .ctx = &counter->controller};
        struct hf_elector_config config = {.size = sizeof config,
                                           .ns = "default",
                                           .name = name,
                                           .identity = identity,
                                           .timing = {.lease_duration = 6 * HF_NSEC_PER_SEC,
                                                      .renew_deadline = 3 * HF_NSEC_PER_SEC,
                                                      .retry_period = 1 * HF_NSEC_PER_SEC},
                                           .controllers = &controller,
                                           .n_controllers = 1,
                                           .on_change = loop_counter_change};

        signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_ALL);
        *counter = (struct loop_counter){.name = name,
                                         .host = {.size = sizeof(struct hf_host),
                                                  .log = {.write = loop_counter_log}}};
        int r = hf_loop_new(&counter->loop);
        if (r == 0)
                r = hf_rest_client_from_kubeconfig(&counter->host, kubeconfig, &counter->client,
                                                   status);
        counter->controller = (struct hf_loop_controller){.size = sizeof counter->controller,
                                                          .loop = counter->loop,
                                                          .begin = loop_counter_begin,
                                                          .drain = loop_counter_drain,
                                                          .abort = loop_counter_drain,
                                                          .ctx = counter};
        config.client = counter->client;
        config.loop = counter->loop;
        if (r == 0)
                r = hf_electors_new(&counter->host, &counter->electors);
        if (r == 0)
                r = hf_electors_add(counter->electors, &config, NULL, status);
        if (r == 0)
                r = hf_electors_start(counter->electors, status);
        return r;
}

static void loop_counter_stopped(void *ctx, int result, const struct hf_status *status) {
        struct loop_counter *counter = (struct loop_counter *)ctx;

        counter->result = result;
        if (result != 0)
                fprintf(stderr, "stop: %s\n", status->message);
        counter->stopped(counter->ctx);
}

/* Begins the stop and returns. `stopped` is called when it has ended. If there is no thread for it,
 * only prints a message. */
static void loop_counter_stop(struct loop_counter *counter, void (*stopped)(void *ctx), void *ctx) {
        counter->stopped = stopped;
        counter->ctx = ctx;
        if (hf_electors_stop_begin(counter->electors, counter->loop, loop_counter_stopped,
                                   counter) < 0)
                fprintf(stderr, "stop: no thread, try again\n");
}

/* Do not call it after a stop with HF_E_STUCK, because a thread still uses the objects. */
static void loop_counter_free(struct loop_counter *counter) {
        counter->electors = hf_electors_free(counter->electors);
        counter->client = hf_client_free(counter->client);
        counter->loop = hf_loop_free(counter->loop);
        curl_global_cleanup();
}
