/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Health checks by name, enumerable without our HTTP server.
 *
 * A check is a function that says healthy or why not, at once (it reads a flag, it does no I/O). It
 * belongs to any of the three endpoints of the field. Checks are listed in the order they were
 * added.
 *
 * Thread: any. Check functions run on the asking thread, under no lock of ours but the registry's
 * read side: they must not add or remove checks.
 */
#include <stdbool.h>
#include <stddef.h>

#define HF_HEALTHZ 1u
#define HF_LIVEZ   2u
#define HF_READYZ  4u

struct hf_health;

/* Returns true when healthy; else writes one line into reason. */
typedef bool (*hf_health_fn)(void *ctx, char *reason, size_t max_reason);

int hf_health_new(struct hf_health **ret_health);
struct hf_health *hf_health_free(struct hf_health *health); /* accepts NULL */

/* endpoints: a sum of the above. name is copied. HF_E_EXISTS when the name is taken; health may be
 * NULL (nothing done). */
int hf_health_add(struct hf_health *health, const char *name, unsigned endpoints, hf_health_fn fn,
                  void *ctx);
/* After it returns fn is not running and will not run. Removing an unknown name does nothing. */
void hf_health_remove(struct hf_health *health, const char *name);

/* Calls each for every check of the endpoint. Returns how many were unhealthy. */
size_t hf_health_each(struct hf_health *health, unsigned endpoint,
                      void (*each)(void *ctx, const char *name, bool healthy, const char *reason),
                      void *ctx);
