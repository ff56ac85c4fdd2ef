/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Records Kubernetes Events: what a controller did or could not do with an object, for the people
 * who look at it (`kubectl describe`). Best effort: nothing waits for a write, a write that fails
 * is not repeated, and memory is bounded. Do not decide anything by Events.
 *
 * The same Event (object, type, reason, message) has one object on the server. A repetition raises
 * the Event's count. The new count is written if the last write of this Event began at least 10 s
 * ago and has ended. Otherwise the repetition is only counted, and the server learns of it with the
 * next one that is written, if there is one. A recorder keeps 64 Events; a new one replaces the one
 * that has not been seen for longest. If all 64 are being written, the new one is not recorded. The
 * count starts at 1 again for an Event that was replaced, and in another recorder.
 *
 * Thread: any, for each function but new and free.
 */
#include <stddef.h>

#include <holdfast/api.h>
#include <holdfast/client.h>
#include <holdfast/host.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_recorder;

struct hf_recorder_config {
        size_t size; /* sizeof(struct hf_recorder_config) */
        /* required; usually from hf_term_client, so that only the leader writes. Borrowed. The
         * client's user needs permission to create and update `events` in the namespaces of the
         * objects. */
        struct hf_client *client;
        const char *component; /* required: the controller's name; copied */
        const char *instance;  /* required: this process, such as the elector's identity; copied */
};

/* `host` is borrowed until hf_recorder_free. The client is borrowed until the last response to the
 * recorder's requests, which hf_client_free waits for; a term's client ends them with the term.
 * Returns 0, -ENOMEM or -EINVAL. */
HF_MUST_CHECK int hf_recorder_new(const struct hf_host *host,
                                  const struct hf_recorder_config *config,
                                  struct hf_recorder **ret_recorder);
/* Requests under way continue. No other thread may be in a function with this recorder. Accepts
 * NULL; returns NULL. Never blocks. */
struct hf_recorder *hf_recorder_free(struct hf_recorder *recorder);

enum hf_recorder_type { HF_RECORDER_NORMAL = 0, HF_RECORDER_WARNING };

/*
 * Records an Event about an object: JSON of n bytes, with apiVersion, kind and metadata, as an
 * informer has it. reason: one word in CamelCase; cut after 128 bytes. The message is cut after
 * 1024 bytes. An Event about an object without a namespace is written in the namespace "default".
 * Does nothing if `object` is not JSON or has no metadata.name, or if memory is exhausted. Never
 * blocks.
 */
void hf_recorder_event(struct hf_recorder *recorder, const char *object, size_t n,
                       enum hf_recorder_type type, const char *reason, const char *format, ...)
        HF_PRINTF(6, 7);

#ifdef __cplusplus
}
#endif
