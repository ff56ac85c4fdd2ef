/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Knows which fields of built-in kinds selectors may name, and reads the values that an object has
 * in them. The names of fields are those of the stored form. Pure. Thread: any. */
#include <stdbool.h>

struct hf__json;
struct hfd_resource;

/* Whether the resource is that of Events, in either version. The fields of Events are event_fields
 * in selection/selectable_fields.c. */
bool hfd_selectable_is_event(const struct hfd_resource *resource);
/* Whether selectors of this built-in kind may name other fields than name and namespace. */
bool hfd_selectable_has_own(const struct hfd_resource *resource);
/* Whether name is one of these other fields of the built-in kind, which is not Event. */
bool hfd_selectable_has_value(const struct hfd_resource *resource, const char *name);
/*
 * The trigger of a kind: the field by which its objects are divided among many clients, so that
 * each watches those with one value of it. NULL = the kind has none. Only built-in kinds have one.
 */
const char *hfd_selectable_trigger(const struct hfd_resource *resource);
/*
 * Copies what selectors of this resource can read to selectable. whole: the object in its stored
 * form. Each value becomes a string at the path that is the field's name ("spec.host"), even if
 * whole has the value elsewhere; of an Event, whole members are copied; of a custom kind, each
 * value gets the key that hfd_custom_selectable_text reads. Name and namespace are not copied,
 * because they are in the path of the object. A field that has no value is left out, unless it is a
 * boolean or a number of a built-in kind, which becomes "false" or "0". 0 or -ENOMEM.
 */
int hfd_selectable_copy(const struct hfd_resource *resource, const struct hf__json *whole,
                        struct hf__json *selectable);
