/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The lists of a reflector. Thread: the reflector's, without the informer's lock. */
#include <holdfast/clock.h>

struct hf_informer;
struct hf__reflector_source;

/* Starts a list, or its next page. A failure to start counts as a failure of the list. */
void hf__reflector_list_start(struct hf_informer *informer);
/* The list request has ended: puts its page into the store, or counts the failure. The list is
 * forgotten; the source stays the caller's. */
void hf__reflector_list_ended(struct hf_informer *informer,
                              const struct hf__reflector_source *source);
/* From now on the store must be listed before a watch starts, not before boot time `at`. Cancels a
 * probe under way. */
void hf__reflector_need_list(struct hf_informer *informer, hf_nsec at);
/* Leaves the watch and lists at once. */
void hf__reflector_relist(struct hf_informer *informer);
/* The store has all changes up to resource_version, and so have the handlers. The next watch begins
 * after it. */
void hf__reflector_set_last_sync(struct hf_informer *informer, const char *resource_version);
/* Forgets the pages that were to come. */
void hf__reflector_forget_pages(struct hf_informer *informer);
