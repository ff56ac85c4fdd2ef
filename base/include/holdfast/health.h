/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Health checks by name. hf_health_each runs them, so any HTTP server can serve the result.
 *
 * A check is a function that returns at once whether its subject is healthy: it reads state in
 * memory and does no I/O. Each check belongs to one or more of the endpoints of Kubernetes
 * (healthz, livez, readyz). Checks are listed in the order in which they were added.
 *
 * Thread: any, for every function here. Check functions run on the thread that calls
 * hf_health_each, which holds a read lock on the registry while they run. So neither a check nor
 * `each` may add or remove checks.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Endpoints, as bits. */
#define HF_HEALTHZ 1u
#define HF_LIVEZ   2u
#define HF_READYZ  4u

struct hf_health;

/* Returns true when healthy; otherwise writes one line into reason, which has room for max_reason
 * bytes with the NUL. Must not block. */
typedef bool (*hf_health_fn)(void *ctx, char *reason, size_t max_reason);

/* 0 or -errno. The caller owns the registry. */
HF_MUST_CHECK int hf_health_new(struct hf_health **ret_health);
/* Frees the registry. No other thread may be using it. Accepts NULL, returns NULL. */
struct hf_health *hf_health_free(struct hf_health *health);

/*
 * Adds a check to each endpoint whose bit is set. name is copied. Returns 0, HF_E_EXISTS when the
 * name is taken, -EINVAL (no name, no function, no endpoint, or an unknown bit in endpoints) or
 * -ENOMEM. Blocks while checks run. If health is NULL (the host has no registry), does nothing and
 * returns 0.
 */
HF_MUST_CHECK int hf_health_add(struct hf_health *health, const char *name, unsigned endpoints,
                                hf_health_fn fn, void *ctx);
/* Removes a check. Blocks while checks run, so the caller holds no lock that a check takes; the
 * same applies to hf_health_add. Once it has returned, fn is not called again. An unknown name is
 * ignored, and health may be NULL. */
void hf_health_remove(struct hf_health *health, const char *name);

/*
 * Runs the checks of an endpoint, or of several whose bits are set, and passes each result to
 * `each` (may be NULL); reason is "" for a healthy check, and valid only during the call. Returns
 * the number of unhealthy checks; 0 if health is NULL.
 */
size_t hf_health_each(struct hf_health *health, unsigned endpoint,
                      void (*each)(void *ctx, const char *name, bool healthy, const char *reason),
                      void *ctx);

#ifdef __cplusplus
}
#endif
