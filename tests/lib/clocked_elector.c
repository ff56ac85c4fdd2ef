/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See clocked_elector.h. The elector's callbacks write `clocked` on its threads, and the test reads
 * it: both hold `clocked.mu`, and every write broadcasts `clocked.changed`.
 */
#undef NDEBUG
#include "clocked_elector.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "patience.h"

struct clocked_elector clocked;

/* ---- what the elector calls ---- */

static void on_log(void *ctx, enum hf_log_level level, const char *component, const char *message) {
        assert(message);
        if (strncmp(message, "kube-system/more-", 17) == 0)
                return;
        pthread_mutex_lock(&clocked.mu);
        size_t n = strlen(clocked.log);
        assert(n + strlen(message) + 8 < sizeof clocked.log);
        (void)snprintf(clocked.log + n, sizeof clocked.log - n, "%d %s\n", (int)level, message);
        if (strstr(message, ": leading, term "))
                clocked.leading_was_told =
                        clocked.n_changes > 0 &&
                        clocked.changes[clocked.n_changes - 1].state == HF_LEADING;
        pthread_cond_broadcast(&clocked.changed);
        pthread_mutex_unlock(&clocked.mu);
}

static void on_change(void *ctx, const struct hf_leader_info *info) {
        pthread_mutex_lock(&clocked.mu);
        assert(clocked.n_changes < sizeof clocked.changes / sizeof *clocked.changes);
        struct clocked_change *change = &clocked.changes[clocked.n_changes++];
        change->state = info->state;
        (void)snprintf(change->holder, sizeof change->holder, "%.63s", info->holder);
        pthread_cond_broadcast(&clocked.changed);
        pthread_mutex_unlock(&clocked.mu);
        if (clocked.in_change)
                clocked.in_change(info->state);
}

static int wait_for_end(struct hf_term *term) {
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        pthread_mutex_lock(&clocked.mu);
        PATIENCE_AWAIT_LOCKED(&clocked.changed, &clocked.mu, clocked.may_end);
        pthread_mutex_unlock(&clocked.mu);
        return 0;
}

static void count_run(unsigned running) {
        pthread_mutex_lock(&clocked.mu);
        clocked.n_running += running;
        clocked.n_runs += running == 1;
        pthread_cond_broadcast(&clocked.changed);
        pthread_mutex_unlock(&clocked.mu);
}

static int run(struct hf_term *term, void *ctx) {
        count_run(1);
        int r = clocked.run ? clocked.run(term) : wait_for_end(term);
        count_run(-1U);
        return r;
}

/* ---- from start to end ---- */

void clocked_elector_init(void) {
        memset(&clocked, 0, sizeof clocked);
        hand_clock_reset();
        assert(pthread_mutex_init(&clocked.mu, NULL) == 0);
        assert(hf_cond_init(&clocked.changed) == 0);
        clocked.api = fake_api_new();
        clocked.client = fake_api_client_new(clocked.api);
        clocked.host = (struct hf_host){.size = sizeof clocked.host,
                                        .clock = &hand_clock,
                                        .log = {.write = on_log, .max_level = HF_LOG_DEBUG}};
        assert(hf_health_new(&clocked.host.health) == 0);
        assert(hf_metrics_new(&clocked.host.metrics) == 0);
}

static void add_more(struct hf_elector_config config, unsigned n) {
        char name[16];

        config.name = name;
        config.n_controllers = 0;
        config.on_change = NULL;
        for (unsigned i = 0; i < n; i++) {
                (void)snprintf(name, sizeof name, "more-%u", i);
                assert(hf_electors_add(clocked.electors, &config, &clocked.more[i], NULL) == 0);
        }
}

void clocked_elector_start(const struct clocked_options *options) {
        const struct hf_controller controllers[] = {
                {.size = sizeof(struct hf_controller), .name = "worker", .run = run},
                {.size = sizeof(struct hf_controller),
                 .name = "local",
                 .runs = HF_EVERY_INSTANCE,
                 .run = options->local},
        };
        const struct hf_leader_timing usual = {.lease_duration = 100 * SEC,
                                               .renew_deadline = 60 * SEC,
                                               .retry_period = 10 * SEC,
                                               .request_timeout = 30 * SEC,
                                               .stop_grace = 20 * SEC,
                                               .drain_deadline = 40 * SEC};
        const struct hf_elector_config config = {.size = sizeof config,
                                                 .ns = "kube-system",
                                                 .name = "lead",
                                                 .identity = "a",
                                                 .client = &clocked.client->base,
                                                 .timing =
                                                         options->timing ? *options->timing : usual,
                                                 .controllers = controllers,
                                                 .n_controllers = options->local ? 2 : 1,
                                                 .events = options->events,
                                                 .unfenced = options->unfenced,
                                                 .cluster = options->cluster,
                                                 .on_change = on_change};
        clocked.client->ignores_fences = options->unfenced;
        fake_api_client_hold_requests(clocked.client, options->held);
        assert(hf_electors_new(&clocked.host, &clocked.electors) == 0);
        if (options->lock_file)
                assert(hf_electors_use_lock_file(clocked.electors, options->lock_file, NULL) == 0);
        assert(hf_electors_add(clocked.electors, &config, &clocked.elector, NULL) == 0);
        add_more(config, options->n_more);
        if (options->hooks) {
                assert(hf_controllers_install(options->hooks, clocked.electors, NULL, 0, NULL) ==
                       0);
                assert(hf_hooks_start(options->hooks, NULL) == 0);
        } else {
                assert(hf_electors_start(clocked.electors, NULL) == 0);
        }
}

static void ignore(void *ctx, const struct hf_response *response) {}

int clocked_begin_write(struct hf_term *term, enum hf_verb verb) {
        static const char body[] = "{\"metadata\":{\"name\":\"x\"}}";
        const struct hf_request request = {.size = sizeof request,
                                           .verb = verb,
                                           .resource = {"", "v1", "things"},
                                           .ns = "default",
                                           .name = "x",
                                           .body = body,
                                           .n_body = sizeof body - 1};

        return hf_client_request(hf_term_client(term), &request, ignore, NULL, NULL);
}

void clocked_elector_let_end(void) {
        pthread_mutex_lock(&clocked.mu);
        clocked.may_end = true;
        pthread_cond_broadcast(&clocked.changed);
        pthread_mutex_unlock(&clocked.mu);
}

void clocked_elector_stop(void) {
        struct hf_status status = {0};

        clocked_elector_let_end();
        int r = hf_electors_stop(clocked.electors, &status);
        if (r != 0)
                (void)fprintf(stderr, "stop: %s\n", status.message);
        assert(r == 0 && clocked.n_running == 0);
}

void clocked_elector_free(void) {
        assert(!hf_electors_free(clocked.electors));
        hf_client_free(&clocked.client->base);
        fake_api_free(clocked.api);
        hf_health_free(clocked.host.health);
        hf_metrics_free(clocked.host.metrics);
        pthread_cond_destroy(&clocked.changed);
        pthread_mutex_destroy(&clocked.mu);
}

/* ---- what a test does ---- */

void clocked_put_lease(const char *holder, const char *spec) {
        char text[600];

        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"name\":\"lead\"},\"spec\":{\"holderIdentity\":\"%s\","
                       "\"leaseDurationSeconds\":100,\"acquireTime\":\"" HAND_CLOCK_REAL_Z "\","
                       "\"renewTime\":\"" HAND_CLOCK_REAL_Z "\"%s}}",
                       holder, spec);
        fake_api_put(clocked.api, CLOCKED_LEASE, text);
}

/* Waits until the loop has completed an iteration that began after the call. The loop counts an
 * iteration when it begins, so the first of two has ended when the second one is counted. */
static void await_iteration(void) {
        for (int i = 0; i < 2; i++) {
                uint64_t n = hf_electors_iterations(clocked.electors);
                hf__elector_wake(clocked.elector);
                PATIENCE_AWAIT(hf_electors_iterations(clocked.electors) > n);
        }
}

bool clocked_is_request_under_way(void) {
        pthread_mutex_lock(&clocked.api->mu);
        bool is_under_way = (clocked.api->requests && !clocked.client->holds_requests) ||
                            clocked.client->n_callbacks > 0;
        pthread_mutex_unlock(&clocked.api->mu);
        return is_under_way;
}

void clocked_settle(void) {
        unsigned n;

        do {
                await_iteration();
                n = fake_api_n_requests(clocked.api);
                PATIENCE_AWAIT(!clocked_is_request_under_way());
                await_iteration();
        } while (clocked_is_request_under_way() || fake_api_n_requests(clocked.api) != n);
}

void clocked_await_term(void) {
        pthread_mutex_lock(&clocked.mu);
        PATIENCE_AWAIT_LOCKED(&clocked.changed, &clocked.mu, clocked.n_running > 0);
        pthread_mutex_unlock(&clocked.mu);
        CLOCKED_AWAIT(clocked_is(HF_LEADING));
}

void clocked_move(hf_nsec by) {
        hand_clock_move(by);
        clocked_settle();
}

/* ---- what a test sees ---- */

struct hf_leader_info clocked_info(void) {
        struct hf_leader_info info = {.size = sizeof info};

        assert(hf_elector_info(clocked.elector, &info) == 0);
        return info;
}

bool clocked_is(enum hf_leader_state state) { return clocked_info().state == state; }

bool clocked_logged(const char *text) {
        pthread_mutex_lock(&clocked.mu);
        bool logged = strstr(clocked.log, text) != NULL;
        pthread_mutex_unlock(&clocked.mu);
        return logged;
}

static void add_text(void *ctx, const char *text, size_t n) { hf__strbuf_add(ctx, text, n); }

double clocked_metric(const char *series) {
        struct hf__strbuf text = {0};
        double value = -1;

        hf_metrics_write(clocked.host.metrics, add_text, &text);
        hf__strbuf_putc(&text, '\0');
        for (const char *line = text.data; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (strncmp(line, series, strlen(series)) == 0) {
                        value = strtod(strchr(line, ' '), NULL);
                        break;
                }
        }
        hf__strbuf_done(&text);
        return value;
}
