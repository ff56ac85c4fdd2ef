/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts the events of watches, each object once for all watches. A job is the conversion of one
 * batch of a watch:
 *
 *      claim -> call the webhook -> publish -> wait for the conversions of other jobs -> end
 *        ^                                          |
 *        +--- (one of these has ended without an attempt)
 *
 * A job claims each conversion that no other job has claimed, calls the webhook for these, and
 * publishes the results in the table. Invariant: a job publishes its own conversions before it
 * waits for those of others, so that no two jobs wait for each other.
 */
#include "server/registry/convert/shared_conversions.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/pool/work_pool.h"
#include "server/registry/base/shared_table.h"
#include "server/registry/convert/convert.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/forms/conversion.h"

struct hfd_shared_job {
        struct hfd_work_task task; /* first member; continues the job after it has waited */
        struct hfd_registry *registry;
        struct hfd_convert convert; /* the caller's; without a turn */
        struct hfd_shared_turn *turn;
        /* In the list of a conversion's waiters; waiter_link: the pointer to this job. */
        struct hfd_shared_job *next_waiter, **waiter_link;
        size_t n_mine;
        struct hfd_object **mine; /* owned references; claimed by this job, to be converted */
        struct place {
                /* Owned reference. NULL = no conversion is needed, or none was claimed yet. */
                struct hfd_shared_conversion *conversion;
                bool is_mine;    /* this job has claimed the conversion and not published it yet */
                bool is_pending; /* the object needs a conversion; immutable */
        } places[];
};

static struct hfd_shared_table *shared_of(const struct hfd_shared_job *job) {
        return &job->registry->shared;
}

/* ---- the end of a job ---- */

static void free_job(struct hfd_shared_job *job) {
        struct hfd_shared_conversion *garbage = NULL;

        pthread_mutex_lock(&shared_of(job)->mu);
        for (size_t i = 0; i < job->convert.n; i++)
                if (job->places[i].conversion)
                        hfd_shared_unref_locked(job->places[i].conversion, &garbage);
        pthread_mutex_unlock(&shared_of(job)->mu);
        hfd_shared_free_garbage(garbage);
        for (size_t i = 0; i < job->n_mine; i++)
                hfd_object_unref(job->mine[i]);
        free(job->mine);
        hfd_resource_unref(job->convert.row);
        free(job);
}

/* failure is copied. next_step has seen all results under the lock; a result does not change, and
 * the job has a reference to each conversion, so no lock is needed here. */
static void end_job(struct hfd_shared_job *job, const struct hfd_response *failure) {
        const struct hfd_convert convert = job->convert;
        struct hfd_response copy = failure ? *failure : (struct hfd_response){0};

        if (copy.body)
                hf__buf_ref(copy.body);
        for (size_t i = 0; !failure && i < convert.n; i++) {
                struct hfd_shared_conversion *c = job->places[i].conversion;
                if (!c)
                        continue;
                hfd_object_unref(convert.objects[i]);
                convert.objects[i] = hfd_object_ref(c->result);
        }
        free_job(job);
        convert.done(convert.ctx, failure ? &copy : NULL);
        hfd_response_done(&copy);
}

/* The watch has ended, so the failure is empty, as that of hfd_convert_cancel: nobody reads it. */
static void end_canceled(struct hfd_shared_job *job) {
        const struct hfd_response none = {0};

        end_job(job, &none);
}

static void end_no_memory(struct hfd_shared_job *job) {
        struct hfd_response response = {0};

        hfd_response_no_memory(&response);
        end_job(job, &response);
        hfd_response_done(&response);
}

/* ---- claiming ---- */

/* Finds or claims a conversion for each object that needs one and has none. False: out of memory;
 * the caller must publish a failure of the conversions that are claimed. */
static bool claim_conversions(struct hfd_shared_job *job) {
        struct hfd_shared_table *shared = shared_of(job);
        bool good = true;

        pthread_mutex_lock(&shared->mu);
        for (size_t i = 0; good && i < job->convert.n; i++) {
                struct place *place = &job->places[i];
                struct hfd_object *source = job->convert.objects[i];
                if (!place->is_pending || place->conversion)
                        continue;
                struct hfd_shared_conversion *c =
                        hfd_shared_find_locked(shared, source, job->convert.row);
                if (!c) {
                        c = hfd_shared_add_locked(shared, source, job->convert.row);
                        place->is_mine = c != NULL;
                        if (c)
                                job->mine[job->n_mine++] = hfd_object_ref(source);
                }
                good = c != NULL;
                assert(!good || c->refs > 0); /* the table has a reference */
                if (good)
                        c->refs++;
                place->conversion = c;
        }
        pthread_mutex_unlock(&shared->mu);
        return good;
}

/* ---- publishing ---- */

static struct hfd_response *copy_failure(const struct hfd_response *failure) {
        struct hfd_response *copy = malloc(sizeof *copy);

        if (copy) {
                *copy = *failure;
                if (copy->body)
                        hf__buf_ref(copy->body);
        }
        return copy;
}

static void wait_locked(struct hfd_shared_job *job, struct hfd_shared_conversion *c) {
        hf__mutex_assert_held(&job->registry->shared.mu);
        assert(!c->done && !job->turn->waiting);
        job->next_waiter = c->waiters;
        job->waiter_link = &c->waiters;
        if (c->waiters)
                c->waiters->waiter_link = &job->next_waiter;
        c->waiters = job;
        job->turn->waiting = job;
}

static void stop_waiting_locked(struct hfd_shared_job *job) {
        hf__mutex_assert_held(&job->registry->shared.mu);
        assert(*job->waiter_link == job && job->turn->waiting == job);
        *job->waiter_link = job->next_waiter;
        if (job->next_waiter)
                job->next_waiter->waiter_link = job->waiter_link;
        job->turn->waiting = NULL;
}

/* Ends one conversion, and moves the jobs that wait for it to the list `woken`. */
static void end_conversion_locked(struct hfd_shared_table *shared, struct hfd_shared_conversion *c,
                                  struct hfd_object *result, const struct hfd_response *failure,
                                  struct hfd_shared_job **woken,
                                  struct hfd_shared_conversion **garbage) {
        hf__mutex_assert_held(&shared->mu);
        c->done = true;
        if (result) {
                hfd_shared_keep_locked(shared, c, hfd_object_ref(result), garbage);
        } else {
                c->failure = failure->code != 0 ? copy_failure(failure) : NULL;
                hfd_shared_drop_locked(shared, c, garbage);
        }
        while (c->waiters) {
                struct hfd_shared_job *job = c->waiters;
                stop_waiting_locked(job);
                job->next_waiter = *woken;
                *woken = job;
        }
}

static void continue_job(struct hfd_shared_job *job);

static enum hfd_work_result run_woken(struct hfd_work_task *task) {
        continue_job((struct hfd_shared_job *)task);
        return HFD_WORK_DONE;
}

/* Continues jobs on the pool: there may be as many as watches, and each delivers its events. */
static void wake_jobs(struct hfd_shared_job *woken) {
        while (woken) {
                struct hfd_shared_job *job = woken;
                woken = job->next_waiter;
                job->task = (struct hfd_work_task){.step = run_woken, .owner = job->convert.owner};
                if (!hfd_work_submit(job->registry->work, &job->task))
                        continue_job(job);
        }
}

/* Ends the conversions that the job has claimed. failure NULL: job->mine are the results. */
static void publish_conversions(struct hfd_shared_job *job, const struct hfd_response *failure) {
        struct hfd_shared_table *shared = shared_of(job);
        struct hfd_shared_conversion *garbage = NULL;
        struct hfd_shared_job *woken = NULL;
        size_t k = 0;

        pthread_mutex_lock(&shared->mu);
        for (size_t i = 0; i < job->convert.n; i++) {
                struct place *place = &job->places[i];
                if (!place->is_mine)
                        continue;
                place->is_mine = false;
                end_conversion_locked(shared, place->conversion, failure ? NULL : job->mine[k],
                                      failure, &woken, &garbage);
                k++;
        }
        pthread_mutex_unlock(&shared->mu);
        assert(k == job->n_mine);
        for (size_t i = 0; i < k; i++)
                hfd_object_unref(job->mine[i]);
        job->n_mine = 0;
        hfd_shared_free_garbage(garbage);
        wake_jobs(woken);
}

static void on_mine(void *ctx, const struct hfd_response *failure) {
        struct hfd_shared_job *job = ctx;

        publish_conversions(job, failure);
        if (failure)
                end_job(job, failure);
        else
                continue_job(job);
}

/* Calls the webhook for what the job has claimed. False: the job goes on or ends in on_mine. */
static bool call_mine(struct hfd_shared_job *job) {
        const struct hfd_convert convert = {.row = job->convert.row,
                                            .objects = job->mine,
                                            .n = job->n_mine,
                                            .deadline = job->convert.deadline,
                                            .owner = job->convert.owner,
                                            .turn = &job->turn->turn,
                                            .done = on_mine,
                                            .ctx = job};

        if (job->n_mine == 0)
                return true;
        if (!hfd_convert_start(job->registry, &convert))
                return false;
        publish_conversions(job, NULL);
        return true;
}

/* ---- waiting ---- */

enum outcome { DONE, WAITS, AGAIN, FAILED, CANCELED };

/* Decides the job's next step if this conversion has no result. */
static enum outcome next_step_locked(struct hfd_shared_job *job, struct place *place,
                                     struct hfd_response **ret_failure,
                                     struct hfd_shared_conversion **garbage) {
        struct hfd_shared_conversion *c = place->conversion;

        hf__mutex_assert_held(&job->registry->shared.mu);
        if (!c->done) {
                wait_locked(job, c);
                return WAITS;
        }
        if (c->failure) {
                *ret_failure = copy_failure(c->failure);
                return FAILED;
        }
        /* There was no attempt, because the watch that had claimed the conversion ended before its
         * turn came; or there was no memory to keep the failure. */
        place->conversion = NULL;
        hfd_shared_unref_locked(c, garbage);
        return AGAIN;
}

/* Decides the job's next step. FAILED: *ret_failure is a copy of the failure; NULL = out of memory.
 */
static enum outcome next_step(struct hfd_shared_job *job, struct hfd_response **ret_failure) {
        struct hfd_shared_table *shared = shared_of(job);
        struct hfd_shared_conversion *garbage = NULL;
        enum outcome outcome = DONE;

        pthread_mutex_lock(&shared->mu);
        if (job->turn->canceled)
                outcome = CANCELED;
        for (size_t i = 0; i < job->convert.n && outcome == DONE; i++)
                if (job->places[i].conversion && !job->places[i].conversion->result)
                        outcome = next_step_locked(job, &job->places[i], ret_failure, &garbage);
        pthread_mutex_unlock(&shared->mu);
        hfd_shared_free_garbage(garbage);
        return outcome;
}

static void end_failed(struct hfd_shared_job *job, struct hfd_response *failure) {
        if (!failure) {
                end_no_memory(job);
                return;
        }
        end_job(job, failure);
        hfd_response_done(failure);
        free(failure);
}

/* Runs the steps of a job, until it has ended, or waits and another thread will continue it. */
static void continue_job(struct hfd_shared_job *job) {
        struct hfd_response *failure = NULL, no_memory = {0};
        enum outcome outcome = AGAIN;

        while (outcome == AGAIN) {
                if (!claim_conversions(job)) {
                        hfd_response_no_memory(&no_memory);
                        publish_conversions(job, &no_memory);
                        hfd_response_done(&no_memory);
                        end_no_memory(job);
                        return;
                }
                if (!call_mine(job))
                        return;
                outcome = next_step(job, &failure);
        }
        if (outcome == DONE)
                end_job(job, NULL);
        else if (outcome == FAILED)
                end_failed(job, failure);
        else if (outcome == CANCELED)
                end_canceled(job);
}

/* ---- the watch's side ---- */

bool hfd_shared_convert(struct hfd_registry *registry, const struct hfd_convert *convert,
                        struct hfd_shared_turn *turn) {
        size_t n_pending = hfd_convert_count_pending(convert);
        struct hfd_shared_job *job;

        if (n_pending == 0)
                return true;
        job = calloc(1, sizeof *job + convert->n * sizeof job->places[0]);
        if (job)
                job->mine = calloc(n_pending, sizeof(struct hfd_object *));
        if (!job || !job->mine) {
                free(job);
                return hfd_convert_fail_no_memory(convert);
        }
        job->registry = registry;
        job->convert = *convert;
        job->turn = turn;
        (void)hfd_resource_ref(convert->row);
        for (size_t i = 0; i < convert->n; i++)
                job->places[i].is_pending =
                        hfd_conversion_is_pending(convert->row, convert->objects[i]);
        continue_job(job);
        return false;
}

void hfd_shared_cancel(struct hfd_registry *registry, struct hfd_shared_turn *turn) {
        struct hfd_shared_table *shared = &registry->shared;

        pthread_mutex_lock(&shared->mu);
        struct hfd_shared_job *job = turn->waiting;
        turn->canceled = true;
        if (job)
                stop_waiting_locked(job);
        pthread_mutex_unlock(&shared->mu);
        if (job)
                end_canceled(job);
        else
                hfd_convert_cancel(registry, &turn->turn);
}
