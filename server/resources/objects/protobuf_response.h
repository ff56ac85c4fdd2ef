/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Responses in Kubernetes' protobuf format: what encloses the messages. An object is enclosed in
 * `k8s\0` and a runtime.Unknown: {1: {1: apiVersion, 2: kind}, 2: the object, 3: "", 4: ""}. An
 * event of a watch is a WatchEvent {1: type, 2: {1: the enclosed object}} after its length in four
 * bytes, the highest first.
 *
 * In all functions, resource is the kind of the objects. If `partial` is true, only the metadata of
 * an object is written, as PartialObjectMetadata. Otherwise the kind must have a protobuf form
 * (server/handlers/protobuf_body.h).
 *
 * The functions that append to a buffer keep errors in the buffer (strbuf.h). Pure. Thread: owner
 * of the arguments.
 */
#include <stdbool.h>

#include "base/strbuf.h"
#include "server/resources/resource.h"

struct hf__buf;
struct hf__json;

#define HFD_PROTOBUF_TYPE       "application/vnd.kubernetes.protobuf"
#define HFD_PROTOBUF_WATCH_TYPE HFD_PROTOBUF_TYPE ";stream=watch"

/* Appends an event of a watch. type: "ADDED", ... */
void hfd_protobuf_put_frame(struct hf__strbuf *s, const char *type,
                            const struct hfd_resource *resource, bool partial,
                            const struct hf__json *object);
/*
 * Append the parts of a list, in this order: what precedes the items, each item, and the end. meta:
 * the list's metadata. n_items: the bytes of all items as hfd_protobuf_put_item appends them, which
 * the caller must know first, because the length of the list precedes the list.
 */
void hfd_protobuf_put_list_head(struct hf__strbuf *s, const struct hfd_resource *resource,
                                bool partial, const struct hf__json *meta, size_t n_items);
void hfd_protobuf_put_item(struct hf__strbuf *s, const struct hfd_resource *resource, bool partial,
                           const struct hf__json *object);
void hfd_protobuf_put_list_end(struct hf__strbuf *s);
/*
 * Converts a response from JSON: an object or a list of the resource, a Status,
 * PartialObjectMetadata or a list of these. resource NULL: only a Status is converted.
 * *ret_response: a new reference. 0, -ENOMEM, or HF_E_INVALID: the response is something else, or
 * not JSON. The function parses the response, so the caller converts a large one on the pool of
 * threads.
 */
int hfd_protobuf_convert(const struct hfd_resource *resource, const struct hf__buf *json,
                         struct hf__buf **ret_response);
/* The same for an event of a watch, `{"type":...,"object":...}`. */
int hfd_protobuf_convert_frame(const struct hfd_resource *resource, const struct hf__buf *json,
                               struct hf__buf **ret_frame);
