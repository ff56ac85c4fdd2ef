/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The update of a Lease by changing its text. A renewal and a release change a few values, and a
 * tree for them would cost ten times as much. Pure. */
#include <stdbool.h>
#include <stddef.h>

#include "leader/record.h"

struct hf__strbuf;

/* The values to print, as for hf__lease_write. A Lease that gets labels must be printed by
 * hf__lease_write. */
struct hf__lease_edit {
        const char *ns, *name;
        const struct hf__record *record;
};

/*
 * Prints the Lease to write. last: the text of the Lease as last seen, which must be JSON. True:
 * out, which was empty, has the object that hf__lease_write would print, or its error is set.
 * False: more must change than the revision and the spec, for example an annotation must go; a new
 * value needs an escape; or the text lacks a member that hf__lease_write sets, has such a member
 * twice, or has an escape in the name of a member of the Lease, its metadata, annotations or spec.
 * Then out is empty, and the caller uses hf__lease_write.
 */
bool hf__lease_edit(const struct hf__lease_edit *edit, const char *last, size_t n,
                    struct hf__strbuf *out);
