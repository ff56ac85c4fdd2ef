/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The identity of the store (server/cacher/requests/store_identity.h), with a view of its state. */
#include <stdbool.h>

struct hfd_cacher;

/* Whether a read that checks a sign of a replacement is running. */
bool watched_identity_is_confirming(struct hfd_cacher *cacher);
