/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The body of a write. Each function that returns false has filled response. None of them replies:
 * the write stays with the caller.
 */
#include "server/registry/write/write.h"

/*
 * Parses the request's body, which must be an object. type names it in messages. The caller frees
 * *ret_json, also after a failure.
 */
bool hfd_write_body_parse(const struct hfd_request *request, const char *type,
                          struct hf__json **ret_json, struct hfd_response *response);
/*
 * Parses the body into w->sent, which must be empty, and checks it as far as that needs no stored
 * state. A delete without a body leaves w->sent NULL.
 */
bool hfd_write_body_read(struct hfd_write *w, struct hfd_response *response);
/*
 * Brings an object that a client wants to store into the normal form of its kind, and checks what
 * does not depend on the stored state.
 */
bool hfd_write_body_accept(struct hfd_write *w, struct hf__json *object,
                           struct hfd_response *response);
