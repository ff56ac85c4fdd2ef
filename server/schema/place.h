/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where a walk through a value is: a list of steps on the stack of the walk, from the innermost
 * step outwards. It costs nothing until a message needs the path. Thread: the owner of the
 * arguments.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__strbuf;
struct hfd_schema;

struct hfd_place {
        const struct hfd_place *up; /* NULL: the object itself, which is no step */
        const char *key;            /* of the member; NULL = the element `index` of a list */
        size_t index;
        const struct hfd_schema *in; /* the STRUCT of which this is a field; NULL = it is none */
};

/*
 * Appends the path with all steps: `rules[0].verbs`, `metadata.labels.app`. Keys come from clients,
 * and the path may go into a header: they are cut, and restricted to printable ASCII.
 */
void hfd_place_put_path(const struct hfd_place *place, struct hf__strbuf *out);
/* Appends the path as Go's JSON decoder names it: fields only, no keys of maps and no indices. */
void hfd_place_put_fields(const struct hfd_place *place, struct hf__strbuf *out);
/* The STRUCT that contains the innermost field; NULL: there is none. */
const struct hfd_schema *hfd_place_struct(const struct hfd_place *place);
