/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The body of a write. If a function that returns bool returns false, it has filled response. None
 * of them sends the response: the caller still owns the write. Thread: that of the write (write.h).
 *
 * They use no other members of the write than request, body, strict_of_body, unknown_reported and
 * accepts_config. hfd_write_body_read also uses names_revision and awaiting, and
 * hfd_write_body_settle old. So parts/ makes a struct hfd_write of these for a body of another
 * kind.
 */
#include "server/registry/write/write.h"

/*
 * Parses the request's body, which must be a JSON object. type is its kind, for messages. *ret_json
 * is NULL before; the caller frees it, also after a failure.
 */
bool hfd_write_body_parse(const struct hfd_request *request, const char *type,
                          struct hf__json **ret_json, struct hfd_response *response);
/*
 * Parses the body into w->body, which must be NULL, and makes the checks that need no stored state.
 * A delete without a body leaves w->body NULL.
 */
bool hfd_write_body_read(struct hfd_write *w, struct hfd_response *response);
/* The type of a JSON value as Go's decoder names it: "object", "array", ... Static storage. */
const char *hfd_write_body_type_name(const struct hf__json *json);
/*
 * Converts an object from a client to the normal form of its kind, and refuses one that is not of
 * the kind, or that has mistakes if fieldValidation is Strict.
 */
bool hfd_write_body_decode(struct hfd_write *w, struct hf__json *object,
                           struct hfd_response *response);
/* Decodes the object as above, and makes the other checks that need no stored state. */
bool hfd_write_body_accept(struct hfd_write *w, struct hf__json *object,
                           struct hfd_response *response);
/*
 * Brings an object that admission has changed into the form of its kind again: decoded, pruned, and
 * with defaults. False: response is filled.
 */
bool hfd_write_body_settle(struct hfd_write *w, struct hf__json *object,
                           struct hfd_response *response);
