/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The form that the cached objects of each custom resource have. A form is what a definition makes
 * of stored bytes. It depends on the storage version and its schema, the selectable fields, and
 * what else hash_form in server/resources/custom/custom_kind.c reads: definitions that agree in all
 * of this have the same form. A custom resource has a slot, its place in the arrays of the cacher
 * (server/resources/custom/custom_table.h). The form of the slot is that of the struct
 * hfd_resource (a row) of the storage version of the kind that is served there. While there is no
 * such kind, the slot has no form: new objects are as stored, and cached ones keep their form.
 *
 * The cacher's lock guards the forms.
 */
#include "server/resources/custom/custom_kind.h"
#include "server/resources/objects/object.h"

struct hfd_cacher;
struct hfd_slot_forms;

/* Begins without any form. NULL: out of memory. */
struct hfd_slot_forms *hfd_slot_forms_new(void);
/* Accepts NULL; returns NULL. */
struct hfd_slot_forms *hfd_slot_forms_free(struct hfd_slot_forms *forms);
/*
 * Both return a reference to the row under which objects of this resource are made now: the form of
 * its slot or, if it has none, the resource itself. Thread: any. hfd_slot_form_get takes the
 * cacher's lock if the resource is a custom one.
 */
const struct hfd_resource *hfd_slot_form_get(struct hfd_cacher *cacher,
                                             const struct hfd_resource *resource);
const struct hfd_resource *hfd_slot_form_get_locked(const struct hfd_slot_forms *forms,
                                                    const struct hfd_resource *resource);
/*
 * Returns a reference to the row for a new object in the form of `stored`. If the form of its slot
 * is the same, this is the row of the slot: so objects do not keep in memory every kind under which
 * they were written. Otherwise it is `stored`.
 */
const struct hfd_resource *hfd_slot_form_of(struct hfd_cacher *cacher,
                                            const struct hfd_resource *stored);
/*
 * Before an object enters a tree of the cacher: makes it anew if the form has changed since it was
 * made, which is rare. Consumes the reference and returns one. NULL = out of memory, or not a valid
 * object. *ret_old: the object in its previous form, which the caller drops after it has released
 * the lock, also if NULL was returned; NULL = the object is returned as it was.
 */
struct hfd_object *hfd_slot_form_apply_locked(const struct hfd_slot_forms *forms,
                                              struct hfd_object *object,
                                              struct hfd_object **ret_old);

/*
 * Gives the slot of row, a storage row, the form of row: new objects have it from now on, and
 * cached objects of another form are made anew, unless they are not valid for row. Readers may get
 * an older form until this returns, and later too if the object is not valid for row, or if the
 * cache was filled meanwhile. So they check the form of each object (forms/conversion.h). Takes as
 * long as parsing all objects of the slot, unless they have the form already. One thread at a time;
 * not under the lock. 0 or -ENOMEM: call it again.
 */
int hfd_slot_form_set(struct hfd_cacher *cacher, const struct hfd_resource *row);
/* The slot has no form any more; its objects keep theirs. Thread: any; not under the lock. */
void hfd_slot_form_clear(struct hfd_cacher *cacher, const struct hfd_resource *slot);
/* The kind is not served any more: the watches of its slot end, and no new one begins with its
 * rows. Thread: any; not under the lock, because the ends of watches call their sinks. */
void hfd_slot_form_retire_kind(struct hfd_cacher *cacher, struct hfd_custom_kind *kind);
