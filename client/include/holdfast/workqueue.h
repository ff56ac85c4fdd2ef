/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A work queue of keys ("namespace/name"): a key waits at most once; a key added while it is being
 * worked on is handed out again when it is done; failures come back after an exponential delay per
 * key (5 ms doubling to 1000 s).
 *
 * Thread: any. A queue belongs to one term; make a new one for the next.
 */
#include <stddef.h>

#include <holdfast/cancel.h>
#include <holdfast/fence.h>
#include <holdfast/host.h>

struct hf_workqueue;

/*
 * name labels the metrics (copied), which have the field's names: workqueue_depth,
 * workqueue_adds_total, workqueue_retries_total, workqueue_queue_duration_seconds,
 * workqueue_work_duration_seconds, workqueue_unfinished_work_seconds and
 * workqueue_longest_running_processor_seconds.
 */
int hf_workqueue_new(const struct hf_host *host, const char *name, struct hf_workqueue **ret_queue);
struct hf_workqueue *
hf_workqueue_free(struct hf_workqueue *queue); /* accepts NULL; nobody may be in take */

int hf_workqueue_add(struct hf_workqueue *queue,
                     const char *key); /* 0, -ENOMEM; ignored after drain or drop */
int hf_workqueue_add_after(struct hf_workqueue *queue, const char *key, hf_nsec delay);
int hf_workqueue_retry(struct hf_workqueue *queue,
                       const char *key); /* add after the key's growing delay */
void hf_workqueue_forget(struct hf_workqueue *queue, const char *key); /* resets the key's delay */
/*
 * From now on retries of all keys together come back at most per_s a second after a first burst (0
 * = 1) of them; a retry waits for the longer of this and its key's own delay. per_s <= 0 lifts the
 * limit.
 */
void hf_workqueue_limit_retries(struct hf_workqueue *queue, double per_s, unsigned burst);

/*
 * Blocks for the next key; it is the caller's until hf_workqueue_done. HF_E_CANCELED: abort fired,
 * or the queue was dropped; HF_E_CLOSED: draining and empty. *ret_key is owned by the queue until
 * done.
 */
int hf_workqueue_take(struct hf_workqueue *queue, struct hf_cancel *abort, const char **ret_key);
void hf_workqueue_done(struct hf_workqueue *queue, const char *key);

void hf_workqueue_drain(struct hf_workqueue *queue); /* takes nothing new; takers finish what waits
                                                        (delayed keys are dropped) */
void hf_workqueue_drop(
        struct hf_workqueue *queue); /* takers return at once; what waits is forgotten */
size_t hf_workqueue_depth(struct hf_workqueue *queue);

/* ---- keys of objects ---- */

#define HF_KEY_MAX (2 * (HF_NAME_MAX + 1)) /* bytes of "namespace/name" with its NUL */

/* "namespace/name", or "name" when ns is NULL or "". 0, or -EINVAL: too long. */
int hf_key_make(char key[HF_KEY_MAX], const char *ns, const char *name);
/* The way back; ns becomes "" where there is none. 0, or -EINVAL: too long, or no name. */
int hf_key_split(const char *key, char ns[HF_NAME_MAX + 1], char name[HF_NAME_MAX + 1]);
