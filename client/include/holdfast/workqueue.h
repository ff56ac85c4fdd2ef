/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A work queue of keys ("namespace/name"), with the semantics of client-go's workqueue: a key waits
 * at most once; a key that is added while a worker has it is handed out again after that worker is
 * done; a key that failed comes back after a delay of its own, 5 ms doubling to 1000 s.
 *
 * A worker loops: hf_workqueue_take, work on the key, then hf_workqueue_forget (success) or
 * hf_workqueue_retry (failure), then always hf_workqueue_done. Different workers never have the
 * same key at the same time.
 *
 * Thread: any, for every function but new and free. Only hf_workqueue_take blocks. A queue belongs
 * to one term of a leader; make a new one for the next term.
 */
#include <stddef.h>

#include <holdfast/cancel.h>
#include <holdfast/fence.h>
#include <holdfast/host.h>

struct hf_workqueue;

/*
 * Makes an empty queue; `host` is borrowed. `name` (copied) is the label of its metrics, which have
 * Kubernetes' names: workqueue_depth, workqueue_adds_total, workqueue_retries_total,
 * workqueue_queue_duration_seconds, workqueue_work_duration_seconds,
 * workqueue_unfinished_work_seconds and workqueue_longest_running_processor_seconds. 0, -EINVAL (an
 * argument is NULL) or -ENOMEM.
 */
int hf_workqueue_new(const struct hf_host *host, const char *name, struct hf_workqueue **ret_queue);
/* Frees the queue and the keys in it, also those that workers have. No thread may be in another
 * function of this queue. Accepts NULL; returns NULL. */
struct hf_workqueue *hf_workqueue_free(struct hf_workqueue *queue);

/* ---- adding; keys are copied; after drain or drop a key is ignored and the result is 0 ---- */

/* Adds the key now. 0 or -ENOMEM. */
int hf_workqueue_add(struct hf_workqueue *queue, const char *key);
/* Adds the key after `delay` nanoseconds (<= 0: now). If the key is delayed already, the earlier
 * time counts. 0 or -ENOMEM. */
int hf_workqueue_add_after(struct hf_workqueue *queue, const char *key, hf_nsec delay);
/* Adds the key after its own delay, which doubles with each retry. 0 or -ENOMEM. */
int hf_workqueue_retry(struct hf_workqueue *queue, const char *key);
/* Resets the delay of the key to its first value. The key need not be known. */
void hf_workqueue_forget(struct hf_workqueue *queue, const char *key);
/*
 * Limits the retries of all keys together to per_s a second, after a first burst of `burst` (0
 * counts as 1). A retry then waits for the longer of this limit and its key's own delay. per_s <= 0
 * removes the limit.
 */
void hf_workqueue_limit_retries(struct hf_workqueue *queue, double per_s, unsigned burst);

/* ---- taking ---- */

/*
 * Blocks until there is a key, and hands it to the caller, who has it until hf_workqueue_done. Keys
 * come in the order in which they were added. 0; HF_E_CANCELED: `abort` fired, or the queue was
 * dropped; HF_E_CLOSED: the queue drains and is empty. *ret_key is owned by the queue and valid
 * until done.
 */
int hf_workqueue_take(struct hf_workqueue *queue, struct hf_cancel *abort, const char **ret_key);
/* Gives back a key that hf_workqueue_take handed out. If it was added meanwhile, it waits again,
 * behind the others. */
void hf_workqueue_done(struct hf_workqueue *queue, const char *key);

/* ---- ending; both are final ---- */

/* Accepts no more keys, and drops the delayed ones. Workers get the keys that wait, then
 * HF_E_CLOSED. */
void hf_workqueue_drain(struct hf_workqueue *queue);
/* Accepts no more keys, and drops all that wait. Workers get HF_E_CANCELED at once. */
void hf_workqueue_drop(struct hf_workqueue *queue);
/* How many keys wait: without the delayed ones, and without those that workers have. */
size_t hf_workqueue_depth(struct hf_workqueue *queue);

/* ---- keys of objects; pure ---- */

#define HF_KEY_MAX (2 * (HF_NAME_MAX + 1)) /* bytes of "namespace/name" with its NUL */

/* Writes "namespace/name" into key, or "name" when ns is NULL or "". 0, or -EINVAL: namespace or
 * name is longer than HF_NAME_MAX. */
int hf_key_make(char key[HF_KEY_MAX], const char *ns, const char *name);
/* Splits a key; ns becomes "" when the key has none. 0, or -EINVAL: a part is too long, or the name
 * is empty. On failure ns and name are unchanged. */
int hf_key_split(const char *key, char ns[HF_NAME_MAX + 1], char name[HF_NAME_MAX + 1]);
