/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The list requests of a reflector: the one that fills the store before a watch, and the probe,
 * which runs in parallel to a watch. reflector_list.c describes both. Thread: the reflector's,
 * without the informer's lock.
 */
#include <holdfast/clock.h>

struct hf_informer;
struct hf__reflector_source;

/* Starts a list, or its next page. A failure to start counts as a failure of the list. */
void hf__reflector_list_start(struct hf_informer *informer);
/* Called when the list request has ended. Clears reflector.list. Stores the page or counts
 * the failure, but ignores a probe if need_list is set. The caller still owns the source. */
void hf__reflector_list_ended(struct hf_informer *informer,
                              const struct hf__reflector_source *source);
/* Requires a list before the next watch; list_at becomes `at`. Cancels the current probe, if there
 * is one. */
void hf__reflector_need_list(struct hf_informer *informer, hf_nsec at);
/* Abandons the watch and requires a list at once. */
void hf__reflector_relist(struct hf_informer *informer);
/* Records that the store and the handlers have all changes up to resource_version. The next watch
 * begins after it. */
void hf__reflector_set_last_sync(struct hf_informer *informer, const char *resource_version);
/* Discards the token of the next page, so that the next list starts from the first page. */
void hf__reflector_forget_pages(struct hf_informer *informer);
