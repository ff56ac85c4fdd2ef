/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The place that a walk through a value has reached: a linked list of steps, from the innermost
 * step outwards. Each step is on the stack of the function that visits it, so a place is valid
 * until that function returns. A walk prints no path until a message needs it. Pure. Thread: the
 * owner of the arguments.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__strbuf;
struct hfd_schema;

struct hfd_place {
        const struct hfd_place *up; /* NULL = the root object, which is not a step of the path */
        const char *key;            /* of the member; NULL = the element `index` of a list */
        size_t index;
        const struct hfd_schema *in; /* the STRUCT that has the field; NULL = it is not a field */
};

/*
 * Appends the path with all steps: `rules[0].verbs`, `metadata.labels.app`. Clients send the keys,
 * and the path may go into a header. So keys are cut, and only printable ASCII remains of them.
 */
void hfd_place_put_path(const struct hfd_place *place, struct hf__strbuf *out);
/* Appends the path as Go's JSON decoder names it: only fields, without keys of maps and indices,
 * and with the embedded structs that have fields: `spec.volumes.VolumeSource.nfs`. */
void hfd_place_put_fields(const struct hfd_place *place, struct hf__strbuf *out);
/* The STRUCT that has the innermost field of the path; NULL = there is no field in the path. */
const struct hfd_schema *hfd_place_struct(const struct hfd_place *place);
