/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A write of a role or binding: whether its user may grant what it grants. */
#include "server/registry/write/write.h"

struct hf__json;

/*
 * Checks w->object, which is valid. old NULL = a create. False: the response was sent, or another
 * attempt was started.
 */
bool hfd_write_may_grant(struct hfd_write *w, const struct hf__json *old);
/*
 * Whether the user may create the object that an apply is about to create: the request was
 * authorized as a patch only. False: the response was sent.
 */
bool hfd_write_may_create(struct hfd_write *w);
