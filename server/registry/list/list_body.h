/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The body of one list, in pieces that are made while the client reads: head, chunks of a rendering
 * that other bodies may share, and the end. However large the list is, the body itself holds only
 * its head, and a reference to the rendering, which keeps the objects alive. A body in protobuf
 * also holds the list's metadata and some of the first chunks. Thread: owner only; see rendering.h
 * for the cost of a piece.
 */
#include "server/registry/list/rendering.h"

struct hfd_list_body;

/*
 * meta: the members of the list's metadata. Consumes the reference to rendering, also on an error.
 * 0 or -ENOMEM.
 */
int hfd_list_body_new(const struct hfd_request *request, const char *meta,
                      struct hfd_rendering *rendering, struct hfd_list_body **ret_body);
/* Accepts NULL; returns NULL. */
struct hfd_list_body *hfd_list_body_free(struct hfd_list_body *body);
/*
 * Sets *ret_piece to a reference to the next piece. NULL: this step has found nothing to send, and
 * the caller continues, unless *ret_ended is set. 0 or -ENOMEM.
 */
int hfd_list_body_next(struct hfd_list_body *body, struct hf__buf **ret_piece, bool *ret_ended);
