/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Encodes JSON as Kubernetes' protobuf by the schema of a kind. The decoder is in
 * server/handlers/protobuf_body.h. The bytes are those that Kubernetes' generated Go code writes
 * for the same object, so that clients and proxies may compare them.
 *
 * Errors are kept in the buffer (strbuf.h). Pure. Thread: owner of the arguments.
 */
#include <stddef.h>
#include <stdint.h>

#include "server/schema/schema.h"

struct hf__json;
struct hf__strbuf;

/* Every number of a field in a schema is less than this (asserted). */
#define HFD_PROTOBUF_TAGS 64

/*
 * Appends the fields of a message. schema is a STRUCT. A member of json that is null counts as
 * absent. If a member has another type than its field in the schema, the zero value of the field's
 * type is written, but nothing for a LIST, a MAP or a BYTES. Members that the schema does not have,
 * or whose fields have no number in protobuf, are left out.
 */
void hfd_protobuf_encode(struct hf__strbuf *s, const struct hfd_schema *schema,
                         const struct hf__json *json);

/* ---- for the envelopes of messages ---- */

/* Appends a number in protobuf's variable length. */
void hfd_protobuf_put_varint(struct hf__strbuf *s, uint64_t value);
/* Appends a field with a text. */
void hfd_protobuf_put_text(struct hf__strbuf *s, unsigned number, const char *text);
/* Makes the bytes from `start` to the end of s the contents of a field. */
void hfd_protobuf_wrap(struct hf__strbuf *s, unsigned number, size_t start);
