/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The plug-ins MutatingAdmissionPolicy and ValidatingAdmissionPolicy of the chain of admission.
 *
 * A small evaluation is done at once, on the calling thread. If it turns out to be large, it starts
 * over on the pool of threads, so that no policy blocks a thread that serves connections.
 *
 * Lock: a mutex guards the pointer to the index. It is held only to read or replace the pointer.
 * Thread: any.
 */
#include <stdbool.h>

#include "server/admission/admission.h"

struct hfd_cacher;
struct hfd_policy_plugin;
struct hfd_work_pool;

/* host outlives the plug-in; cacher and pool outlive all requests, and cacher also the feed of
 * admission (admission_feed.h). 0 or -errno. */
int hfd_policy_plugin_new(const struct hf_host *host, struct hfd_cacher *cacher,
                          struct hfd_work_pool *pool, bool mutating,
                          struct hfd_policy_plugin **ret_plugin);
/* Call it when no request is under way and the feed is stopped. Accepts NULL, returns NULL. */
struct hfd_policy_plugin *hfd_policy_plugin_free(struct hfd_policy_plugin *plugin);
/* The plug-in as an element of a chain. */
struct hfd_admission_plugin hfd_policy_plugin_of_chain(struct hfd_policy_plugin *plugin);
