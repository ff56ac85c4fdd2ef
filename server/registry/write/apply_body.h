/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The body of a server-side apply. Thread: that of the write (write.h); computes only. */
#include "server/registry/write/write.h"

/*
 * Brings the configuration in w->body into the form of its kind, and removes the fields that a
 * request to the subresource of w does not write. False: response is filled.
 */
bool hfd_write_apply_body_accept(struct hfd_write *w, struct hfd_response *response);
/* Whether the configuration that was read has no duplicate fields, or may have them: only
 * fieldValidation=Strict refuses them. False: response is filled. */
bool hfd_write_apply_body_is_strict(const struct hfd_write *w, struct hfd_response *response);
