/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Renders Table and PartialObjectMetadata, the response formats that kubectl and metadata clients
 * request. Pure, except that ages depend on the clock. Thread: any.
 *
 * A function that returns a buffer returns a new reference, or NULL if memory runs out, a Table
 * would exceed 512 MiB, or the bytes of an object are malformed. A function that returns a bool
 * returns false if memory runs out, s is full, or the bytes are malformed.
 */
#include "base/strbuf.h"
#include "server/registry/base/registry_state.h"
#include "server/registry/base/request.h"

/*
 * A Table with a row for each of the n objects, in the version that the request asks for. list_meta
 * contains the members of the Table's metadata ("resourceVersion":...).
 */
struct hf__buf *hfd_table_render(struct hfd_registry *registry, const struct hfd_request *request,
                                 struct hfd_object *const *objects, size_t n,
                                 const char *list_meta);
/* A Table with one row, for an object that is not stored, such as a Scale. */
struct hf__buf *hfd_table_render_json(struct hfd_registry *registry,
                                      const struct hfd_request *request,
                                      const struct hf__json *json);
/*
 * The parts of a Table, for one that is made piece by piece: everything up to `"rows":[`, and one
 * row. now_s is the time for ages. hfd_table_put_event appends a whole Table with one row, as in
 * the events of a watch: without columns, which only the first event has (hfd_table_with_columns).
 */
void hfd_table_put_head(struct hf__strbuf *s, const struct hfd_request *request,
                        const char *list_meta, bool with_columns);
bool hfd_table_put_row(struct hf__strbuf *s, const struct hfd_request *request,
                       struct hfd_object *object, int64_t now_s);
bool hfd_table_put_event(struct hf__strbuf *s, const struct hfd_request *request,
                         struct hfd_object *object, int64_t now_s);
/*
 * Appends the Table of a bookmark: its row is that of an object with nothing but a resourceVersion
 * and, if initial_end is set, the annotation that ends the initial events.
 */
void hfd_table_put_bookmark(struct hf__strbuf *s, const struct hfd_request *request,
                            uint64_t revision, bool initial_end, int64_t now_s);
/* frames: events of a watch whose Tables have no columns. Returns a copy in which the Table of the
 * first event has them. NULL = out of memory. */
struct hf__buf *hfd_table_with_columns(const struct hfd_request *request,
                                       const struct hf__buf *frames);
/* Appends the PartialObjectMetadata of one object. */
bool hfd_table_put_partial(struct hf__strbuf *s, const struct hfd_object *object);
/* The PartialObjectMetadata of one object. */
struct hf__buf *hfd_table_render_partial(const struct hfd_object *object);
