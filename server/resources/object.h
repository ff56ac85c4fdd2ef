/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One version of one object. Its JSON is built once, and responses, lists and watch events share
 * the bytes.
 *
 * Stored bytes begin with `{"kind":K,"apiVersion":V,"metadata":{`, the head, which is the same for
 * all objects of a resource. They contain no resourceVersion. Served bytes are the stored bytes
 * with `"resourceVersion":"N",` inserted after the head. So neither a read nor a watch parses JSON.
 * If another program has stored an object in another form, hfd_object_new converts it.
 *
 * An object is immutable, except for the parts that are built on first use. These are published
 * atomically. Thread: any.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/client.h>

#include "base/buf.h"
#include "server/resources/resource.h"

struct hf__json;

#define HFD_N_FRAMES 3 /* ADDED, MODIFIED, DELETED */

struct hfd_object {
        atomic_int refs;
        const struct hfd_resource *resource;
        uint64_t revision;
        struct hf__buf *bytes;      /* owned; the served bytes; NULL = see hfd_object_unreadable */
        size_t splice_at, n_splice; /* offset and length of the resourceVersion member in bytes */
        const char *name;           /* points into path */
        size_t n_ns;                /* length of the namespace in path; 0 = none */
        /* Owned; built on first use: the labels, and the fields that field selectors may use. */
        _Atomic(struct hf__json *) selectable;
        /* Owned; built on first use: the watch frame for each event type except BOOKMARK. */
        _Atomic(struct hf__buf *) frames[HFD_N_FRAMES];
        char path[]; /* "ns/name" or "name" */
};

/*
 * stored: the value from the store. A value that begins with the head of the resource was written
 * by this server or another holdfastd, so it is not parsed. NULL = out of memory, or stored is not
 * a valid object; hfd_object_check distinguishes the two.
 */
struct hfd_object *hfd_object_new(const struct hfd_resource *resource, const char *path,
                                  uint64_t revision, const struct hf__buf *stored);
/* 0 = stored is a valid object; HF_E_INVALID = it is not; -ENOMEM. */
int hfd_object_check(const struct hf__buf *stored);
/*
 * A placeholder for a stored value that is not a valid object. Its path is the store's key. It has
 * no bytes, so only its path and revision can be used. NULL = out of memory.
 */
struct hfd_object *hfd_object_unreadable(const struct hfd_resource *resource, const char *key,
                                         uint64_t revision);
/* A copy with another revision, for a DELETED event. NULL = out of memory. */
struct hfd_object *hfd_object_at(const struct hfd_object *object, uint64_t revision);
/* Accepts NULL. */
struct hfd_object *hfd_object_ref(struct hfd_object *object);
/* Accepts NULL, returns NULL. */
struct hfd_object *hfd_object_unref(struct hfd_object *object);

/* Whether the object was created from bytes equal to stored. */
bool hfd_object_has_bytes(const struct hfd_object *object, const struct hf__buf *stored);
/*
 * Whether it has a deletionTimestamp. If memory runs out: true, so that nothing is created in a
 * Namespace that may be terminating.
 */
bool hfd_object_deleting(const struct hfd_object *object);
/* Parses it, resourceVersion included. The caller frees. NULL = out of memory. */
struct hf__json *hfd_object_parse(const struct hfd_object *object);
/* What selectors can read: labels and some fields. Borrowed from object. NULL = out of memory. */
const struct hf__json *hfd_object_selectable(struct hfd_object *object);
/*
 * The watch event `{"type":"ADDED","object":...}\n`, a new reference; NULL = out of memory. type
 * must not be BOOKMARK, which has no stored object.
 */
struct hf__buf *hfd_object_frame(struct hfd_object *object, enum hf_event_type type);
/* "ADDED", "MODIFIED", "DELETED" or "BOOKMARK". */
const char *hfd_event_type_name(enum hf_event_type type);

/*
 * Prints json in the stored order: kind, apiVersion, metadata, the rest; without resourceVersion
 * and selfLink. kind and apiVersion are taken from resource. NULL = out of memory.
 */
struct hf__buf *hfd_object_encode(const struct hfd_resource *resource, const struct hf__json *json);
