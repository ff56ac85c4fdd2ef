/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The update of a Lease by changing its text. A renewal and a release change a few values, and a
 * tree for them would cost ten times as much. Pure. */
#include <stdbool.h>
#include <stddef.h>

#include "leader/record.h"

struct hf__strbuf;

/* The values to print: as for hf__lease_write, without labels and process. */
struct hf__lease_edit {
        const char *ns, *name;
        const struct hf__record *record;
};

/*
 * Prints the Lease to write. last: the text of the Lease as last seen, which must be JSON. True:
 * out, which was empty, has the object that hf__lease_write would print, or its error is set.
 * False: more must change than what a renewal or a release changes, or the text has one of these
 * members not exactly once, or an escape in the name of a member; out is empty.
 */
bool hf__lease_edit(const struct hf__lease_edit *edit, const char *last, size_t n,
                    struct hf__strbuf *out);
