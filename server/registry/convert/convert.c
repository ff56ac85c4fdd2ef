/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts objects by webhooks (convert.h).
 *
 *      start -> batch -> (wait) -> call .. response -> (pool, if it is large) -> next batch
 *                  ^                                                               |
 *                  +---------------------------------------------------------------+-> done
 *
 * A job has a list of the objects that need a conversion, by their index. Invariants: a job belongs
 * to one thread at a time, and is freed before done is called. The objects of the caller get
 * another version only when all conversions have succeeded; before that, list_sources may replace
 * one by the same version in the form of the current definition.
 */
#include "server/registry/convert/convert.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/outbound/https_url.h"
#include "server/outbound/outbound.h"
#include "server/outbound/service_resolver.h"
#include "server/outbound/status_text.h"
#include "server/pool/work_pool.h"
#include "server/registry/base/large_work.h"
#include "server/registry/convert/convert_metrics.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/custom/webhook_config.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/forms/conversion_review.h"
#include "server/resources/meta.h"
#include "server/resources/objects/custom_object.h"

/* The limits of a batch, the objects of one call. The object that reaches BATCH_BYTES ends it. */
#define BATCH_OBJECTS 500
#define BATCH_BYTES   ((size_t)2 << 20)

struct job {
        struct hfd_work_task task; /* first member; runs the job when its turn has come */
        struct hfd_registry *registry;
        struct hfd_convert convert;
        char uid[HFD_UID_MAX]; /* of the call */
        hf_nsec began, took;   /* boot time; how long the webhook took to respond */
        /* Owned references: the objects to convert, and the converted ones. */
        struct hfd_object **sources, **results;
        size_t *index;         /* the place of each source in convert.objects */
        size_t n, at, n_batch; /* at: the first of the current batch */
        struct hf__buf *body;  /* owned; waits for the pool */
};

static struct hfd_custom_kind *kind_of(const struct job *job) {
        return job->convert.row->custom->kind;
}

/* ---- the end ---- */

static void free_job(struct job *job) {
        assert(job->n == 0 || (job->sources && job->results));
        for (size_t i = 0; i < job->n; i++) {
                hfd_object_unref(job->sources[i]);
                hfd_object_unref(job->results[i]);
        }
        hf__buf_unref(job->body);
        hfd_resource_unref(job->convert.row);
        free(job->sources);
        free(job->results);
        free(job->index);
        free(job);
}

/* Frees the job and calls done. Takes over what failure owns. */
static void end_job(struct job *job, struct hfd_response *failure) {
        const struct hfd_convert convert = job->convert;

        assert(failure || job->at == job->n);
        for (size_t i = 0; !failure && i < job->n; i++) {
                struct hfd_object **place = &convert.objects[job->index[i]];
                hfd_object_unref(*place);
                *place = job->results[i];
                job->results[i] = NULL;
        }
        free_job(job);
        convert.done(convert.ctx, failure);
        if (failure)
                hfd_response_done(failure);
}

static void end_no_memory(struct job *job) {
        struct hfd_response response = {0};

        hfd_response_no_memory(&response);
        end_job(job, &response);
}

/* Ends the job with a 500. error: for admission (forms.h). why: the rest of the message, after the
 * kind. */
static void end_failed_as(struct job *job, int error, const char *why) {
        const struct hfd_resource *row = job->sources[job->at]->resource;
        struct hfd_response response = {0};
        struct hf__strbuf text = {0};

        hf__strbuf_printf(&text, "conversion webhook for %s/%s, Kind=%s %s", row->group,
                          row->version, row->kind, why);
        if (text.error)
                hfd_response_no_memory(&response);
        else
                hfd_response_status(&response, error, 500, "", text.data, NULL);
        hf__strbuf_done(&text);
        end_job(job, &response);
}

static void end_failed(struct job *job, const char *why) {
        end_failed_as(job, HF_E_UNAVAILABLE, why);
}

/* Ends the job of a watch that has ended, with an empty failure: nobody reads it. */
static void end_canceled(struct job *job) {
        struct hfd_response none = {0};

        end_job(job, &none);
}

static void end_too_many(struct job *job) {
        const struct hfd_details details = {.retry_after_s = 1};
        struct hfd_response response = {0};

        hfd_response_status(&response, HF_E_TOO_MANY, 429, "TooManyRequests",
                            "too many objects wait for their conversion webhook, please try again "
                            "later",
                            &details);
        end_job(job, &response);
}

/* ---- the response of the webhook ---- */

static void send_batch(struct job *job);

static void read_response(struct job *job, const void *body, size_t n_response) {
        struct hf__strbuf why = {0};
        int r = hfd_conversion_review_read(body, n_response, job->uid, job->convert.row,
                                           job->sources + job->at, job->n_batch,
                                           job->results + job->at, &why);
        /* If memory has run out here, that says nothing about the webhook. */
        if (r == 0 || (r == HF_E_INVALID && !why.error))
                hfd_convert_metrics_called(job->registry->host, r == 0 ? NULL : why.data, true,
                                           job->took);

        if (r == 0) {
                job->at += job->n_batch;
                if (job->at < job->n)
                        send_batch(job);
                else
                        end_job(job, NULL);
        } else if (r == HF_E_INVALID && !why.error) {
                end_failed(job, why.data);
        } else {
                end_no_memory(job);
        }
        hf__strbuf_done(&why);
}

/* The task that reads a large response on the pool. It has memory of its own: while its step is
 * running, the job may go on to its next batch, where the job's own task is submitted, or be freed.
 */
struct turn {
        struct hfd_work_task task; /* first member */
        struct job *job;
};

static enum hfd_work_result run_turn(struct hfd_work_task *task) {
        struct job *job = ((struct turn *)task)->job;
        struct hf__buf *body = job->body;

        free(task);
        job->body = NULL;
        read_response(job, body->data, body->n);
        hf__buf_unref(body);
        return HFD_WORK_DONE;
}

/* Reading a large response here would delay the responses to other calls. */
static void defer_response(struct job *job, const struct hfd_outbound_result *result) {
        struct turn *turn = malloc(sizeof *turn);

        job->body = hf__buf_copy(result->body, result->n_body);
        if (!turn || !job->body) {
                free(turn);
                end_no_memory(job);
                return;
        }
        *turn = (struct turn){.task = {.step = run_turn,
                                       .owner = job->convert.owner,
                                       .long_step = true},
                              .job = job};
        if (!hfd_work_submit(job->registry->work, &turn->task)) {
                free(turn);
                end_failed(job, "failed: the server is stopping");
        }
}

static void end_call_failed(struct job *job, const struct hfd_outbound_result *result) {
        struct hf__strbuf why = {0};

        if (result->end == HFD_OUTBOUND_NO_MEMORY) { /* this says nothing about the webhook */
                end_no_memory(job);
                return;
        }
        hf__strbuf_puts(&why, "failed: ");
        if (result->end == HFD_OUTBOUND_ANSWERED)
                hfd_outbound_status_text(result->code, result->body, result->n_body, &why);
        else
                hf__strbuf_puts(&why, result->text);
        const char *shown = why.error ? "failed" : why.data;
        hfd_convert_metrics_called(job->registry->host, shown, false, job->took);
        /* Kubernetes has no limit for the response. */
        end_failed_as(job,
                      result->end == HFD_OUTBOUND_TOO_LARGE ? HF_E_TOO_LARGE : HF_E_UNAVAILABLE,
                      shown);
        hf__strbuf_done(&why);
}

static void leave_turn(struct job *job);

static void leave_call(struct job *job) {
        if (job->convert.turn) {
                leave_turn(job);
                return;
        }
        atomic_fetch_sub(&kind_of(job)->n_conversions, 1);
        atomic_fetch_sub(&job->registry->n_conversions, 1);
}

static void on_response(void *ctx, const struct hfd_outbound_result *result) {
        struct job *job = ctx;

        leave_call(job);
        job->took = hfd_registry_now(job->registry) - job->began;
        /* client-go, with which kube-apiserver calls webhooks, takes 200 to 206 for a success. */
        if (result->end != HFD_OUTBOUND_ANSWERED || result->code < 200 || result->code > 206)
                end_call_failed(job, result);
        else if (result->n_body > HFD_LARGE_BODY)
                defer_response(job, result);
        else
                read_response(job, result->body, result->n_body);
}

/* ---- the call ---- */

/* Counts a call. False: too many calls are under way. It counts first, so several threads never
 * exceed a limit together; at worst they all refuse. A watch is not counted here, because it has a
 * turn. */
static bool enter_call(struct job *job) {
        if (job->convert.turn)
                return true;
        bool of_kind = atomic_fetch_add(&kind_of(job)->n_conversions, 1) < HFD_CONVERT_MAX_OF_KIND,
             of_all = atomic_fetch_add(&job->registry->n_conversions, 1) < HFD_CONVERT_MAX;

        if (of_kind && of_all)
                return true;
        leave_call(job);
        return false;
}

static size_t measure_batch(const struct job *job) {
        size_t n = 0, bytes = 0;

        while (job->at + n < job->n && n < BATCH_OBJECTS && (n == 0 || bytes < BATCH_BYTES))
                bytes += job->sources[job->at + n++]->bytes->n;
        return n;
}

/* Appends the time limit to the URL, as Kubernetes does. */
static void put_url(struct hf__strbuf *s, const char *url) {
        hf__strbuf_puts(s, url);
        hf__strbuf_printf(s, "%stimeout=%ds", strchr(url, '?') ? "&" : "?",
                          (int)(HFD_CONVERT_TIMEOUT / HF_NSEC_PER_SEC));
}

/* Calls the webhook for the batch. 0; otherwise there is no call: -ENOMEM, or an error of
 * hfd_outbound_post_json. */
static int call_webhook(struct job *job, const struct hfd_webhook_config *config,
                        const struct hf__strbuf *body) {
        struct hfd_service_address address = {0};
        struct hf__strbuf url = {0};
        hf_nsec deadline = hfd_registry_now(job->registry) + HFD_CONVERT_TIMEOUT;
        int r = 0;

        if (config->url)
                r = hfd_https_url_clean(config->url, &address.url);
        else
                r = hfd_service_resolve(job->registry->services, config->service_ns,
                                        config->service_name, config->service_port,
                                        config->service_path, &address);
        size_t max_response =
                hfd_conversion_review_max_response(job->sources + job->at, job->n_batch);
        if (r == 0)
                put_url(&url, address.url);
        if (r == 0)
                r = url.error;
        const struct hfd_outbound_request request = {.url = url.data,
                                                     .connect_to = address.connect_to,
                                                     .ca_pem = config->ca_pem,
                                                     .body = body->data,
                                                     .n_body = body->n,
                                                     .deadline = job->convert.deadline < deadline
                                                                         ? job->convert.deadline
                                                                         : deadline,
                                                     .max_response = max_response,
                                                     .may_repeat = true,
                                                     .done = on_response,
                                                     .ctx = job};
        if (r == 0)
                r = hfd_outbound_post_json(job->registry->outbound, &request, NULL);
        hf__strbuf_done(&url);
        hfd_service_address_done(&address);
        return r;
}

/* Why no webhook can be called; NULL = it can. */
static const char *read_config(const struct job *job, struct hfd_webhook_config *config) {
        if (!job->registry->outbound || !hfd_webhook_config_read(kind_of(job), config))
                return "failed: there is no webhook that can be called";
        return config->takes_v1 ? NULL : "failed: no supported conversion review versions";
}

/* Calls the webhook for the next batch. A watch has its turn. The caller must not touch the job
 * afterwards: it may be freed, or belong to another thread. */
static void send_in_turn(struct job *job) {
        struct hfd_webhook_config config = {0};
        struct hf__strbuf body = {0};
        const char *fault = read_config(job, &config);

        if (fault) {
                free(config.ca_pem);
                if (job->convert.turn)
                        leave_turn(job);
                end_failed(job, fault);
                return;
        }
        job->n_batch = measure_batch(job);
        int r = hfd_meta_make_uid(job->uid);
        hfd_conversion_review_put(&body, job->uid, job->convert.row, job->sources + job->at,
                                  job->n_batch);
        if (r == 0)
                r = body.error;
        bool entered = r == 0 && enter_call(job);
        if (r == 0 && !entered)
                r = HF_E_TOO_MANY;
        job->began = hfd_registry_now(job->registry);
        if (r == 0)
                r = call_webhook(job, &config, &body);
        if (r != 0 && (entered || job->convert.turn))
                leave_call(job);
        hf__strbuf_done(&body);
        free(config.ca_pem);
        if (r == HF_E_TOO_MANY)
                end_too_many(job);
        else if (r == HF_E_CLOSED)
                end_failed(job, "failed: the server is stopping");
        else if (r == HF_E_INVALID)
                end_failed(job, "failed: the URL of the webhook is malformed");
        else if (r != 0)
                end_no_memory(job);
}

/* Runs on the pool: if each job that fails started the next one directly, many failures would
 * overflow the stack. */
static enum hfd_work_result run_waited(struct hfd_work_task *task) {
        send_in_turn((struct job *)task);
        return HFD_WORK_DONE;
}

/* Passes the turn of a job to the next job that waits, and continues that job on the pool. NULL:
 * the next job will continue, or none waits. If the pool is stopping, returns the next job, which
 * has the turn. */
static struct job *pass_turn(struct job *job) {
        struct hfd_registry *registry = job->registry;
        struct hfd_convert_turn *turn =
                hfd_convert_turns_leave(&registry->convert_turns, kind_of(job));

        if (!turn)
                return NULL;
        struct job *next = turn->job;
        next->task = (struct hfd_work_task){.step = run_waited, .owner = next->convert.owner};
        return hfd_work_submit(registry->work, &next->task) ? NULL : next;
}

/* Ends the turn of a job, and lets another job continue. If the pool is stopping, all jobs that
 * wait end here, in a loop: there may be as many as watches, too many for a recursion. */
static void leave_turn(struct job *job) {
        struct job *next = pass_turn(job);

        while (next) {
                struct job *refused = next;
                next = pass_turn(refused);
                end_failed(refused, "failed: the server is stopping");
        }
}

/* As send_in_turn, but a watch first waits for its turn. */
static void send_batch(struct job *job) {
        struct hfd_convert_turn *turn = job->convert.turn;
        enum hfd_convert_enter enter = HFD_CONVERT_BEGINS;

        if (turn) {
                turn->kind = kind_of(job);
                turn->job = job;
                enter = hfd_convert_turns_enter(&job->registry->convert_turns, turn);
        }
        if (enter == HFD_CONVERT_BEGINS)
                send_in_turn(job);
        else if (enter == HFD_CONVERT_CANCELED)
                end_canceled(job);
}

void hfd_convert_cancel(struct hfd_registry *registry, struct hfd_convert_turn *turn) {
        if (hfd_convert_turns_cancel(&registry->convert_turns, turn))
                end_canceled(turn->job);
}

/* ---- the start ---- */

/*
 * Lists the objects that must be converted. An object of an older definition is first brought into
 * the form of the current one. If it then needs no conversion, it replaces the caller's object. 0,
 * or -ENOMEM, also if the bytes of an object are malformed.
 */
static int list_sources(struct job *job) {
        const struct hfd_convert *convert = &job->convert;

        job->sources = calloc(convert->n, sizeof *job->sources);
        job->results = calloc(convert->n, sizeof *job->results);
        job->index = calloc(convert->n, sizeof *job->index);
        if (!job->sources || !job->results || !job->index)
                return -ENOMEM;
        for (size_t i = 0; i < convert->n; i++) {
                if (!hfd_conversion_is_pending(convert->row, convert->objects[i]))
                        continue;
                /* This cannot call the webhook: it only brings the object into the form of the
                 * current definition. */
                struct hfd_object *formed =
                        hfd_conversion_object(convert->row, convert->objects[i]);
                if (!formed)
                        return -ENOMEM;
                if (hfd_conversion_is_pending(convert->row, formed)) {
                        job->index[job->n] = i;
                        job->sources[job->n++] = formed;
                } else {
                        hfd_object_unref(convert->objects[i]);
                        convert->objects[i] = formed;
                }
        }
        return 0;
}

size_t hfd_convert_count_pending(const struct hfd_convert *convert) {
        size_t n = 0;

        for (size_t i = 0; i < convert->n; i++)
                n += hfd_conversion_is_pending(convert->row, convert->objects[i]);
        return n;
}

bool hfd_convert_fail_no_memory(const struct hfd_convert *convert) {
        struct hfd_response response = {0};

        hfd_response_no_memory(&response);
        convert->done(convert->ctx, &response);
        hfd_response_done(&response);
        return false;
}

bool hfd_convert_start(struct hfd_registry *registry, const struct hfd_convert *convert) {
        assert(convert->done);
        if (hfd_convert_count_pending(convert) == 0)
                return true;
        struct job *job = calloc(1, sizeof *job);
        if (!job)
                return hfd_convert_fail_no_memory(convert);
        job->registry = registry;
        job->convert = *convert;
        (void)hfd_resource_ref(convert->row);
        if (list_sources(job) != 0) {
                end_no_memory(job);
                return false;
        }
        if (job->n == 0) {
                free_job(job);
                return true;
        }
        send_batch(job);
        return false;
}
