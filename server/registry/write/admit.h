/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Asks admission (server/admission) about an attempt of a write. If no plug-in wants the request,
 * this allocates nothing. Thread: that of the write. Nothing blocks: a write that waits for a
 * decision goes on later, on another thread.
 */
#include "server/registry/write/write.h"

/*
 * mutate, validate and delete ask one phase or both. True: admission is not asked, and nothing was
 * changed; the caller goes on. False: resume(w) is called, the response is sent, or another attempt
 * is started, now or later; the caller must not touch w.
 */
/* The phase mutate. w->object already has its defaults and managedFields; plug-ins may change it,
 * except the metadata that the server sets. */
bool hfd_write_admit_mutate(struct hfd_write *w, void (*resume)(struct hfd_write *w));
/* Whether a plug-in has changed w->object in this attempt. */
bool hfd_write_admit_has_mutated(const struct hfd_write *w);
/* The phase validate. w->object is complete and will be stored. */
bool hfd_write_admit_validate(struct hfd_write *w, void (*resume)(struct hfd_write *w));
/* Both phases of a delete of w->old; w->object is NULL. */
bool hfd_write_admit_delete(struct hfd_write *w, void (*resume)(struct hfd_write *w));
/* Whether admission is asked about this write. If so, even a delete needs w->old in the version of
 * the request. */
bool hfd_write_admit_wants(const struct hfd_write *w);
/* Frees w->refusal, also if it is NULL. */
void hfd_write_admit_forget(struct hfd_write *w);
/* Frees w->admission, also if it is NULL. */
void hfd_write_admit_done(struct hfd_write *w);
/* Called when the store has returned a version; NULL = no such object. True: admission has refused
 * this very version before, and the response was sent. False: no refusal is kept any more. */
bool hfd_write_admit_refused(struct hfd_write *w, const struct hfd_object *current);
