/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes of a term whose answers come late.
 *
 * elector-late-refusal: the Lease is deleted while a write of its term is under way, several times.
 * The fence refuses that write, perhaps only when the elector has ended the term already and
 * acquires the Lease again. Promised: the refusal ends the term that it was about, and not the next
 * one.
 *
 * elector-last-answer: the server has no fences, and the controller returns at its drain while a
 * write is under way. The answer comes before, while or after the term is joined. Promised: the
 * Lease is released as soon as it has come.
 */
#include <string.h>

#include <holdfast/error.h>
#include <holdfast/leader.h>

#include "fake_api_client.h"
#include "leader/electors.h"
#include "threads.h"

enum { N_TERMS = 4 };

static struct {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_electors *electors;
        struct hf_elector *elector;
        uint64_t n_runs;  /* of the controller; a term may end before its run begins */
        bool has_written; /* in the current term */
        int n_unanswered; /* writes */
} l;

/* ---- a client whose writes of ConfigMaps are answered by threads of their own, a little late ----
 */

static struct answer {
        hf_response_fn done;
        void *ctx;
        struct hf_response response; /* without its body */
        pthread_t thread;
} answers[N_TERMS + 1];
static size_t n_answers;

static void *deliver(void *ctx) {
        struct answer *answer = ctx;

        answer->done(answer->ctx, &answer->response);
        return NULL;
}

static void on_answer(void *ctx, const struct hf_response *response) {
        struct answer *answer = ctx;

        answer->response = *response;
        answer->response.body = NULL;
        answer->response.n_body = 0;
        answer->thread = scenario_thread("answer", deliver, answer);
}

static int late_request(struct hf_client *self, const struct hf_request *request,
                        hf_response_fn done, void *ctx, uint64_t *ret_id) {
        struct answer *answer = &answers[n_answers];

        if (strcmp(request->resource.plural, "configmaps") != 0)
                return hf_client_request(&l.client->base, request, done, ctx, ret_id);
        BATON_CHECK(n_answers++ < sizeof answers / sizeof *answers);
        answer->done = done;
        answer->ctx = ctx;
        return hf_client_request(&l.client->base, request, on_answer, answer, ret_id);
}

static void late_cancel(struct hf_client *self, uint64_t id) {
        hf_client_cancel(&l.client->base, id);
}

static int late_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                      hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        return hf_client_watch(&l.client->base, spec, on_event, on_end, ctx, ret_id);
}

static void late_watch_cancel(struct hf_client *self, uint64_t id) {
        hf_client_watch_cancel(&l.client->base, id);
}

static const struct hf_client_ops late_ops = {.size = sizeof late_ops,
                                              .request = late_request,
                                              .cancel = late_cancel,
                                              .watch = late_watch,
                                              .watch_cancel = late_watch_cancel};
static struct hf_client late = {.ops = &late_ops, .host = &scenario_host};

/* ---- the controller ---- */

static void on_written(void *ctx, const struct hf_response *response) {
        BATON_CHECK(l.n_unanswered-- > 0);
}

/* Does not wait for the response, so the term can be joined before. */
static void begin_write(struct hf_term *term) {
        const char *body = "{\"metadata\":{\"name\":\"a\"}}";
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_UPDATE,
                                     .resource = {"", "v1", "configmaps"},
                                     .ns = "default",
                                     .name = "a",
                                     .body = body,
                                     .n_body = strlen(body)};

        l.n_unanswered++;
        l.has_written = true;
        BATON_CHECK(hf_client_request(hf_term_client(term), &request, on_written, NULL, NULL) == 0);
}

/* Every other run writes. */
static bool writes(uint64_t run) { return run % 2 == 1; }

/* A run that writes does so twice: at its beginning, to learn that the server has fences, and when
 * its Lease is gone. In between it leads long enough that the elector contends again without a
 * backoff. */
static int work(struct hf_term *term, void *ctx) {
        uint64_t n = ++l.n_runs;

        if (writes(n))
                begin_write(term);
        if (n > N_TERMS ||
            hf_cancel_wait(hf_term_drain(term), hf_now(hf_clock_system()) + 20 * HF_NSEC_PER_SEC) !=
                    HF_E_TIMEOUT)
                return 0;
        (void)fake_api_delete(l.api, "leases/kube-system/lead");
        if (writes(n))
                begin_write(term);
        return 0;
}

static int write_at_the_end(struct hf_term *term, void *ctx) {
        l.n_runs++;
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        begin_write(term);
        return 0;
}

/* A term is joined before the elector follows again. */
static void on_change(void *ctx, const struct hf_leader_info *info) {
        BATON_CHECK(info->state != HF_ABORTING || l.has_written ||
                    !strstr(info->last_end, "stale"));
        if (info->state == HF_FOLLOWING)
                l.has_written = false;
}

/* ---- the scenarios ---- */

static void begin(int (*run)(struct hf_term *term, void *ctx), bool unfenced) {
        const struct hf_controller controller = {.size = sizeof controller,
                                                 .name = "worker",
                                                 .runs = HF_LEADER_ONLY,
                                                 .run = run};
        memset(&l, 0, sizeof l);
        l.api = fake_api_new();
        l.client = fake_api_client_new(l.api);
        l.client->ignores_fences = unfenced;
        n_answers = 0;
        (void)fake_api_put(l.api, "configmaps/default/a", "{\"metadata\":{\"name\":\"a\"}}");
        const struct hf_elector_config config = {.size = sizeof config,
                                                 .ns = "kube-system",
                                                 .name = "lead",
                                                 .identity = "a",
                                                 .client = &late,
                                                 .controllers = &controller,
                                                 .n_controllers = 1,
                                                 .unfenced = unfenced,
                                                 .on_change = on_change};
        BATON_CHECK(hf_electors_new(&scenario_host, &l.electors) == 0);
        BATON_CHECK(hf_electors_add(l.electors, &config, &l.elector, NULL) == 0);
        BATON_CHECK(hf_electors_start(l.electors, NULL) == 0);
}

/* In a slow schedule the term may end before the Lease is deleted, or be too slow for the stop. */
static void end(void) {
        int r = hf_electors_stop(l.electors, NULL);

        BATON_CHECK(r == 0 || baton_is_slow());
        while (l.elector->term && !hf__term_is_joined(l.elector->term))
                scenario_sleep(HF_NSEC_PER_SEC);
        hf_electors_free(l.electors);
        hf_client_free(&l.client->base);
        while (n_answers > 0)
                (void)hf__thread_join(answers[--n_answers].thread);
        BATON_CHECK(l.n_unanswered == 0);
        fake_api_free(l.api);
}

void elector_late_refusal(void) {
        begin(work, false);
        for (int i = 0; i < 30 * N_TERMS && l.n_runs <= N_TERMS; i++)
                scenario_sleep(HF_NSEC_PER_SEC);
        baton_be_quick();
        BATON_CHECK(l.n_runs > N_TERMS || baton_is_slow());
        end();
}

void elector_last_answer(void) {
        begin(write_at_the_end, true);
        for (int i = 0; i < 30 && l.n_runs == 0; i++)
                scenario_sleep(HF_NSEC_PER_SEC);
        baton_be_quick();
        BATON_CHECK(l.n_runs == 1 || baton_is_slow());
        end();
}
