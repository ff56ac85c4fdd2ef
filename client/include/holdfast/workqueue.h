/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A work queue of keys ("namespace/name"), with the semantics of client-go's workqueue. A key is in
 * the queue at most once. If a key is added while a worker processes it, it is handed out again
 * after that worker has called hf_workqueue_done. A key that failed is retried after a delay. Each
 * key has a separate delay, which starts at 5 ms and doubles with each retry up to 1000 s.
 *
 * A worker loops: it calls hf_workqueue_take, processes the key, calls hf_workqueue_forget
 * (success) or hf_workqueue_retry (failure), and then always hf_workqueue_done. Two workers never
 * have the same key at the same time.
 *
 * Memory: only the add of a key that the queue does not have needs memory and may return -ENOMEM.
 * The key is then not in the queue, and the caller must add it again, as hf_reconciler_run does for
 * the events of its informers. The queue has a key while it is ready or delayed, while a worker
 * processes it, and from hf_workqueue_retry to hf_workqueue_forget; adding or retrying it cannot
 * fail then. So a worker need not handle -ENOMEM for the key that it is processing.
 *
 * Thread: any, for every function except new and free. Only hf_workqueue_take waits for keys; the
 * others wait at most for mutexes that are held for a short time. hf_workqueue_free also waits for
 * a thread that is reading the metrics. A queue belongs to one term of a leader; create a new one
 * for the next term.
 */
#include <stddef.h>

#include <holdfast/api.h>
#include <holdfast/cancel.h>
#include <holdfast/fence.h>
#include <holdfast/host.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_workqueue;

/*
 * Creates an empty queue; `host` is borrowed. `name` is copied. It becomes the label of the queue's
 * metrics, which have the same names as in Kubernetes: workqueue_depth, workqueue_adds_total,
 * workqueue_retries_total, workqueue_queue_duration_seconds, workqueue_work_duration_seconds,
 * workqueue_unfinished_work_seconds and workqueue_longest_running_processor_seconds.
 *
 * Returns 0, -EINVAL (an argument is NULL, or the size in *host is wrong) or another -errno.
 */
HF_MUST_CHECK int hf_workqueue_new(const struct hf_host *host, const char *name,
                                   struct hf_workqueue **ret_queue);
/* Frees the queue and its keys, including those that workers still have. No other thread may be in
 * a function of this queue. Accepts NULL; returns NULL. */
struct hf_workqueue *hf_workqueue_free(struct hf_workqueue *queue);

/* ---- adding; keys are copied; after drain or drop, keys are ignored and the result is 0 ---- */

/* Adds the key now. 0 or -ENOMEM. */
HF_MUST_CHECK int hf_workqueue_add(struct hf_workqueue *queue, const char *key);
/* Adds the key after `delay` nanoseconds (<= 0: now). If the key is already delayed, the earlier
 * time counts. 0 or -ENOMEM. */
HF_MUST_CHECK int hf_workqueue_add_after(struct hf_workqueue *queue, const char *key,
                                         hf_nsec delay);
/* Adds the key after the delay of this key, which doubles with each retry, or later if
 * hf_workqueue_limit_retries says so. 0 or -ENOMEM. */
HF_MUST_CHECK int hf_workqueue_retry(struct hf_workqueue *queue, const char *key);
/* Resets the delay of the key to its first value. Ignores a key that the queue does not know. */
void hf_workqueue_forget(struct hf_workqueue *queue, const char *key);
/* Limits the retries of all keys together to per_s per second, after a burst of up to `burst`
 * retries (0 counts as 1; the burst is at most what 1000 s yield). Time without retries makes room
 * for another burst. A retry waits for the longer of this limit and the delay of its key. A per_s
 * of 0 or less removes the limit; less than one retry in 1000 s counts as one in 1000 s. */
void hf_workqueue_limit_retries(struct hf_workqueue *queue, double per_s, unsigned burst);

/* ---- taking ---- */

/*
 * Blocks until a key is ready, and hands it to the caller, who must give it back with
 * hf_workqueue_done. Keys are handed out in the order in which they were added. A delayed key
 * counts as added when this function or hf_workqueue_drain notices that its delay has elapsed. A
 * key that was added while a worker had it counts as added when that worker gives it back.
 *
 * Returns 0; HF_E_CANCELED: `abort` fired, or the queue was dropped; HF_E_CLOSED: the queue is
 * draining, and no key is ready. *ret_key is owned by the queue and valid until hf_workqueue_done.
 */
HF_MUST_CHECK int hf_workqueue_take(struct hf_workqueue *queue, struct hf_cancel *abort,
                                    const char **ret_key);
/* Gives back a key that hf_workqueue_take handed out. If the key was added in the meantime, it goes
 * to the end of the queue. */
void hf_workqueue_done(struct hf_workqueue *queue, const char *key);

/* ---- ending; both are final ---- */

/* Stops accepting keys, and discards those whose delay has not elapsed. Workers get the keys that
 * are ready, then HF_E_CLOSED. A key that was added while a worker had it becomes ready when that
 * worker gives it back. */
void hf_workqueue_drain(struct hf_workqueue *queue);
/* Stops accepting keys and discards all that are ready or delayed. hf_workqueue_take returns
 * HF_E_CANCELED from now on. */
void hf_workqueue_drop(struct hf_workqueue *queue);
/* The number of keys that are ready. Does not count delayed keys or keys that workers have. */
size_t hf_workqueue_depth(struct hf_workqueue *queue);

/* ---- keys of objects; pure ---- */

#define HF_KEY_MAX (2 * (HF_NAME_MAX + 1)) /* bytes of "namespace/name" with its NUL */

/* Writes "namespace/name" into key, or "name" when ns is NULL or "". 0, or -EINVAL: namespace or
 * name is longer than HF_NAME_MAX. */
HF_MUST_CHECK int hf_key_make(char key[HF_KEY_MAX], const char *ns, const char *name);
/* Splits a key; ns becomes "" when the key has none. 0, or -EINVAL: a part is too long, or the name
 * is empty. On failure ns and name are unchanged. */
HF_MUST_CHECK int hf_key_split(const char *key, char ns[HF_NAME_MAX + 1],
                               char name[HF_NAME_MAX + 1]);

#ifdef __cplusplus
}
#endif
