/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Converts values of expressions to JSON. Pure. Thread: any. */

#include <stddef.h>

#include "cel/values/value.h"

struct hf__json;
struct hf__strbuf;

/* What conversions may still make. Parts of a value may be shared, so a small value can stand for a
 * huge tree, and one long text for many: both are counted as often as they appear. */
struct hfd_value_room {
        size_t parts; /* values */
        size_t bytes; /* of texts and of keys */
};

/* The room for one change of an object. The bytes suffice for the largest body of a request
 * (3 MiB), and for the 3 MiB that the copies of a JSON patch may add. */
#define HFD_VALUE_ROOM ((struct hfd_value_room){.parts = 200000, .bytes = (size_t)6 << 20})

/* What the conversion makes is taken from the room, also if it fails. The caller owns the result.
 * 0; -ENOMEM; HF_E_INVALID: the value cannot be written as JSON; or HF_E_TOO_MANY: there is no room
 * for it, or it is nested too deeply. After the last two reterr_message says why. */
int hfd_value_to_json(struct hf__cel_value value, struct hfd_value_room *room,
                      struct hf__json **ret_json, struct hf__strbuf *reterr_message);
/* Checks that the type of each object within the value is named after its place: the field spec of
 * an Object must be an Object.spec. As in Kubernetes, a value that is no object itself, such as a
 * list of objects, is not checked. room: for the conversion that follows; the check refuses what
 * has more parts. 0; -ENOMEM; HF_E_INVALID, with the message of Kubernetes; or HF_E_TOO_MANY. */
int hfd_value_check_types(struct hf__cel_value value, struct hfd_value_room room,
                          struct hf__strbuf *reterr_message);
