/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work queue: threads add keys, now and later, workers take them, and the queue ends.
 *
 * Promised: no two workers have the same key; a key that was added is handed out after that, unless
 * the queue was dropped; a worker whose token fires returns and takes nothing from the others; each
 * call of hf_workqueue_take ends with the queue.
 */
#include <string.h>

#include <holdfast/error.h>
#include <holdfast/workqueue.h>

#include "threads.h"

enum { N_KEYS = 3, N_ADDERS = 2, N_ALL = N_KEYS + N_ADDERS, N_WORKERS = 3 };

static struct {
        struct hf_workqueue *queue;
        struct hf_cancel *tokens[N_WORKERS];
        bool has_key[N_ALL]; /* a worker has it */
        int n_added[N_ALL];  /* since the key was last taken */
        hf_nsec due[N_ALL];  /* not to be taken earlier; 0 = at any time */
        bool is_aborted[N_WORKERS], has_returned[N_WORKERS], is_dropped, is_draining;
} q;

static const char *const keys[N_ALL] = {"a", "b", "c", "d", "e"};

/* Adds a key with a delay. Each adder does this once, with a key of its own: if a key had two
 * delays, only the shorter one would count. */
static void add_later(int key) {
        hf_nsec delay = (hf_nsec)baton_random(4) * HF_NSEC_PER_SEC;

        q.due[key] = hf_now(hf_clock_system()) + delay;
        q.n_added[key]++;
        BATON_CHECK(hf_workqueue_add_after(q.queue, keys[key], delay) == 0);
}

static void *add_keys(void *ctx) {
        int delayed = N_KEYS + *(int *)ctx;

        for (uint64_t n = baton_random(6); n > 0; n--) {
                uint64_t key = baton_random(N_KEYS);
                q.n_added[key]++;
                BATON_CHECK(hf_workqueue_add(q.queue, keys[key]) == 0);
                if (baton_random(2) == 0)
                        scenario_sleep(HF_NSEC_PER_SEC);
                if (q.due[delayed] == 0 && baton_random(2) == 0)
                        add_later(delayed);
        }
        return NULL;
}

static void work_on(const char *name) {
        int key = name[0] - 'a';

        BATON_CHECK(!q.has_key[key] && hf_now(hf_clock_system()) >= q.due[key]);
        q.has_key[key] = true;
        baton_point();
        /* The queue promises that a key is handed out again if it is added after it was taken. A
         * worker reads the object only now, so an add before this moment needs no second turn. */
        q.n_added[key] = 0;
        baton_point();
        if (baton_random(4) == 0)
                scenario_sleep(HF_NSEC_PER_SEC);
        if (baton_random(4) == 0)
                BATON_CHECK(hf_workqueue_retry(q.queue, name) == 0);
        else
                hf_workqueue_forget(q.queue, name);
        q.has_key[key] = false;
        hf_workqueue_done(q.queue, name);
}

static void *work(void *ctx) {
        struct hf_cancel **token = ctx;
        const char *name;
        int r;

        while ((r = hf_workqueue_take(q.queue, *token, &name)) == 0)
                work_on(name);
        BATON_CHECK(r == HF_E_CLOSED ? q.is_draining : r == HF_E_CANCELED);
        BATON_CHECK(r == HF_E_CLOSED || q.is_dropped || q.is_aborted[token - q.tokens]);
        q.has_returned[token - q.tokens] = true;
        return NULL;
}

/* Fires the token of one worker, at any moment. The first worker is never aborted, so that one is
 * left. */
static void *abort_worker(void *ctx) {
        unsigned i = 1 + (unsigned)baton_random(N_WORKERS - 1);

        scenario_sleep((hf_nsec)baton_random(8) * HF_NSEC_PER_SEC);
        q.is_aborted[i] = true;
        hf_cancel_fire(q.tokens[i], HF_CANCEL_STOPPING);
        return NULL;
}

/* Ends the queue in one of three ways. */
static void end_queue(void) {
        uint64_t how = baton_random(4);

        if (how == 0) {
                q.is_dropped = true;
                hf_workqueue_drop(q.queue);
                return;
        }
        if (how <= 2) {
                /* The remaining workers must take all that is there, although nothing is added and
                 * nobody wakes them any more. */
                baton_be_quick();
                scenario_sleep(100 * HF_NSEC_PER_SEC);
                for (int i = 0; i < N_ALL; i++)
                        BATON_CHECK(q.n_added[i] == 0);
                for (int i = 0; i < N_WORKERS; i++)
                        BATON_CHECK(q.is_aborted[i] == q.has_returned[i]);
        }
        q.is_draining = true;
        hf_workqueue_drain(q.queue);
}

/* One worker may have a deadline. */
static void begin_workers(pthread_t workers[N_WORKERS]) {
        if (baton_random(2) == 0)
                q.is_aborted[N_WORKERS - 1] = true;
        for (int i = 0; i < N_WORKERS; i++) {
                BATON_CHECK(hf_cancel_new(NULL, NULL, &q.tokens[i]) == 0);
                if (q.is_aborted[i])
                        hf_cancel_set_deadline(q.tokens[i],
                                               hf_now(hf_clock_system()) + HF_NSEC_PER_SEC);
                workers[i] = scenario_thread("worker", work, &q.tokens[i]);
        }
}

/* All keys must have been taken, with one exception: an aborted worker gives its key back, and that
 * key is queued again if it was added meanwhile. The other workers may have found the draining
 * queue empty before. */
static void check_end(void) {
        bool aborts = false;

        for (int i = 0; i < N_WORKERS; i++)
                aborts = aborts || q.is_aborted[i];
        for (int i = 0; i < N_KEYS; i++)
                BATON_CHECK(q.is_dropped || aborts || q.n_added[i] == 0);
}

void queue_keys(void) {
        int numbers[N_ADDERS] = {0, 1};
        pthread_t adders[N_ADDERS], workers[N_WORKERS], aborter;
        bool has_aborter = baton_random(2) == 0;

        memset(&q, 0, sizeof q);
        BATON_CHECK(hf_workqueue_new(&scenario_host, "q", &q.queue) == 0);
        begin_workers(workers);
        for (int i = 0; i < N_ADDERS; i++)
                adders[i] = scenario_thread("adder", add_keys, &numbers[i]);
        if (has_aborter)
                aborter = scenario_thread("aborter", abort_worker, NULL);
        for (int i = 0; i < N_ADDERS; i++)
                (void)hf__thread_join(adders[i]);
        end_queue();
        for (int i = 0; i < N_WORKERS; i++)
                (void)hf__thread_join(workers[i]);
        if (has_aborter)
                (void)hf__thread_join(aborter);
        check_end();
        hf_workqueue_free(q.queue);
        for (int i = 0; i < N_WORKERS; i++)
                hf_cancel_unref(q.tokens[i]);
}
