/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The extra values of a user as text. Pure. Thread: any. */
#include <stdbool.h>

#include "server/auth/user.h"

struct hf__strbuf;

enum hfd_extra_form {
        HFD_EXTRA_JSON, /* {"key":["a","b"]} */
        HFD_EXTRA_GO    /* map[key:[a b]], as Go's %v prints it */
};

/* Appends the map of the extra values, sorted by its keys as Go sorts them; the values of a key
 * keep their order. A user without any has an empty map. */
void hfd_user_put_extra(struct hf__strbuf *out, const struct hfd_requester *user,
                        enum hfd_extra_form form);
