/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects of custom resources: what their definition adds to a write. For other kinds these do
 * nothing. Thread: that of the write (write.h). Nothing blocks.
 */
#include <stdbool.h>

#include "server/resources/causes.h"

struct hf__json;
struct hfd_write;

/* A create while the definition is being deleted. True: the response was sent. */
bool hfd_write_custom_refuse_create(struct hfd_write *w);
/* Fills in the defaults of w->object. False: the response was sent. */
bool hfd_write_custom_prepare(struct hfd_write *w);
/* Adds a cause for each violation of the schema and its rules. old NULL = a create. 0 or -ENOMEM.
 */
int hfd_write_custom_validate(struct hfd_write *w, const struct hf__json *old,
                              struct hfd_causes *causes);
