/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The conversions of a write by the webhook of a custom resource (registry/convert):
 *
 *      current                 the version of the request, before an update or a patch changes it
 *      the new object          the version in which objects are stored, before the commit
 *      the response's object   the version of the request, before the reply
 *
 * For all other kinds nothing is converted, and nothing waits. A delete converts `current` only if
 * admission wants to see it. Thread: that of the write (write.h). A write that waits for a
 * conversion goes on later, on another thread. Nothing blocks.
 */
#include "server/registry/write/write.h"

/* Called at the start of an attempt: converts w->current to w->converted. True: go on. False: the
 * response was sent, or the attempt begins again after the conversion. */
bool hfd_write_convert_current(struct hfd_write *w);
/* Converts w->stored if necessary, and calls next, perhaps later; if that fails, sends the response
 * instead. If the result is what the store has already, w->stored becomes NULL and w->unchanged
 * true. The caller must not touch the write afterwards. */
void hfd_write_convert_stored(struct hfd_write *w, void (*next)(struct hfd_write *w));
/* Converts an object of the store to w->to_show, and calls next, perhaps later; if that fails,
 * sends the response instead. object: borrowed, only until this returns. The caller must not touch
 * the write afterwards. */
void hfd_write_convert_shown(struct hfd_write *w, struct hfd_object *object,
                             void (*next)(struct hfd_write *w));
/* If a webhook converts the kind: brings w->current into the form of the definition that is now in
 * force, in the same version. Calls no webhook. False: out of memory, and the response was sent. */
bool hfd_write_form_current(struct hfd_write *w);
/* Whether a webhook converts the kind, and w->current has another version than the one in which
 * objects are stored now, or the form of an older definition. Then an update writes the object even
 * if the update changes nothing. So clients can move all objects to a new storage version. */
bool hfd_write_moves_version(const struct hfd_write *w);
