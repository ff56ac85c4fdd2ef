/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One version of one object: the bytes that are served, made once, shared by replies, lists and
 * watch events.
 *
 * Stored bytes are `{"kind":K,"apiVersion":V,"metadata":{` and the rest, without resourceVersion;
 * served bytes have
 * `"resourceVersion":"N",` spliced in behind that head, whose length is the same for all objects of
 * a resource. So neither reading nor watching parses anything. Bytes that someone else stored in
 * another order are brought into this form once.
 *
 * Immutable after it was made, except for the three lazily made parts, which are published
 * atomically. Thread: any.
 */
#include <stdatomic.h>
#include <stdint.h>

#include <holdfast/client.h>

#include "base/buf.h"
#include "server/resources/resource.h"

struct hf__json;

struct hfd_object {
        atomic_int refs;
        const struct hfd_resource *resource;
        uint64_t revision;
        struct hf__buf *bytes;      /* owned; as served */
        size_t splice_at, n_splice; /* where the resourceVersion was put */
        const char *name;           /* points into path */
        size_t n_ns;                /* length of the namespace in path */
        _Atomic(struct hf__json *)
                meta; /* owned; lazily: {"labels":..., and what field selectors may name} */
        _Atomic(struct hf__buf *)
                frames[3]; /* owned; lazily: the watch frames ADDED, MODIFIED, DELETED */
        char path[];       /* "ns/name" or "name" */
};

/* Whether the store's bytes are an object at all: 0, HF_E_INVALID, -ENOMEM. */
int hfd_object_check(const struct hf__buf *stored);
/* Stands for stored bytes that are none: it has its key for a path, and a revision, and nothing to
 * serve. NULL: out of memory. */
struct hfd_object *hfd_object_unreadable(const struct hfd_resource *resource, const char *key,
                                         uint64_t revision);
/* stored: the store's bytes. NULL when memory ran out or they are no object at all. */
struct hfd_object *hfd_object_new(const struct hfd_resource *resource, const char *path,
                                  uint64_t revision, const struct hf__buf *stored);
/* The same object under another revision: what a DELETED event carries. */
struct hfd_object *hfd_object_at(const struct hfd_object *object, uint64_t revision);
struct hfd_object *hfd_object_ref(struct hfd_object *object);
struct hfd_object *hfd_object_unref(struct hfd_object *object); /* accepts NULL, returns NULL */

/* Whether these stored bytes are this object's. */
bool hfd_object_is(const struct hfd_object *object, const struct hf__buf *stored);
/* Whether it has a deletionTimestamp. */
bool hfd_object_deleting(const struct hfd_object *object);
/* Parses it, resourceVersion included. NULL = out of memory. The caller frees. */
struct hf__json *hfd_object_parse(const struct hfd_object *object);
/* The parsed parts selectors look at; borrowed from the object. NULL = out of memory. */
const struct hf__json *hfd_object_meta(struct hfd_object *object);
/* `{"type":"ADDED","object":...}\n`, a new reference; NULL = out of memory. */
struct hf__buf *hfd_object_frame(struct hfd_object *object, enum hf_event_type type);
const char *hfd_event_type_name(enum hf_event_type type);

/* Prints an object in the stored order: kind, apiVersion, metadata, the rest; without
 * resourceVersion and selfLink. */
struct hf__buf *hfd_object_encode(const struct hfd_resource *resource,
                                  const struct hf__json *object);
