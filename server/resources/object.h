/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One version of one object. Its JSON is built once, and responses, lists and watch events share
 * the bytes.
 *
 * Stored bytes begin with `{"kind":K,"apiVersion":V,"metadata":{`, the head, which is the same for
 * all objects of a resource. They contain no resourceVersion. Served bytes are the stored bytes
 * with `"resourceVersion":"N",` inserted after the head. So a plain read or watch parses no JSON.
 * If another program has stored an object in another form, hfd_object_new converts it. Under the
 * permanent row of a slot (custom/custom_table.h), an object keeps the kind and apiVersion that it
 * has.
 *
 * An object is immutable, except for the parts that are built on first use, and for its shared
 * frames. Thread: any.
 *
 * A server may have a million of them, so the struct is small: what few objects need, and what can
 * be computed, is not in it.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/client.h>

#include "base/buf.h"
#include "server/resources/resource.h"

struct hf__json;
struct hfd_object_frames;

struct hfd_object {
        /* A counted reference. Of a custom resource: the storage row whose form the object has, or
         * the permanent row of its slot while its definition is not known. */
        const struct hfd_resource *resource;
        uint64_t revision;
        struct hf__buf *bytes; /* owned; the served bytes; NULL = see hfd_object_unreadable */
        /* Owned; built on first use: the labels, and the fields that field selectors may use. */
        _Atomic(struct hf__json *) selectable;
        struct hfd_object_frames *frames; /* owned; NULL = not shared; guarded by object.c's lock */
        atomic_int refs;
        uint16_t splice_at; /* offset of the resourceVersion in bytes */
        uint8_t n_splice;   /* its length */
        /* It is not encrypted in the store as it would be now, so a write that changes nothing
         * writes it too. Set before others know the object. */
        bool stale;
        bool has_origin; /* see hfd_object_origin */
        uint16_t n_ns;   /* length of the namespace in path; 0 = none */
        char path[];     /* "ns/name" or "name" */
};

/* The object's name, borrowed from object. */
static inline const char *hfd_object_name(const struct hfd_object *object) {
        return object->path + (object->n_ns ? object->n_ns + 1u : 0u);
}

/*
 * stored: the value from the store. A value that begins with the head of the resource is taken as
 * written by a holdfastd, so it is not parsed. NULL = out of memory, or stored is not a valid
 * object; hfd_object_check distinguishes the two.
 */
struct hfd_object *hfd_object_new(const struct hfd_resource *resource, const char *path,
                                  uint64_t revision, const struct hf__buf *stored);
/*
 * The same for bytes that were brought into the form of resource, from the stored bytes `origin`.
 * The object keeps a reference to these if they differ: in another form it may have other members.
 */
struct hfd_object *hfd_object_new_formed(const struct hfd_resource *resource, const char *path,
                                         uint64_t revision, const struct hf__buf *bytes,
                                         struct hf__buf *origin);
/* What the object was formed from; else its served bytes. Borrowed from object. */
struct hf__buf *hfd_object_origin(const struct hfd_object *object);
/* 0 = stored is a valid object; HF_E_INVALID = it is not; -ENOMEM. */
int hfd_object_check(const struct hfd_resource *resource, const struct hf__buf *stored);
/*
 * A placeholder for a stored value that is not a valid object. Its path is the store's key. It has
 * no bytes, so only its path and revision can be used. NULL = out of memory.
 */
struct hfd_object *hfd_object_unreadable(const struct hfd_resource *resource, const char *key,
                                         uint64_t revision);
/*
 * The same for a value that could not be decrypted: its bytes are `why`, a text, and no object. The
 * placeholder of an invalid value has none. NULL = out of memory.
 */
struct hfd_object *hfd_object_sealed(const struct hfd_resource *resource, const char *key,
                                     uint64_t revision, const char *why);
/* A copy with another revision, for a DELETED event. NULL = out of memory. */
struct hfd_object *hfd_object_at(const struct hfd_object *object, uint64_t revision);
/* A copy with the kind and apiVersion of another row. NULL = out of memory. */
struct hfd_object *hfd_object_as(const struct hfd_resource *resource,
                                 const struct hfd_object *object);
/* Accepts NULL. */
struct hfd_object *hfd_object_ref(struct hfd_object *object);
/* Accepts NULL, returns NULL. */
struct hfd_object *hfd_object_unref(struct hfd_object *object);

/* Whether the object was created from bytes equal to stored. False if they had to be converted. */
bool hfd_object_has_bytes(const struct hfd_object *object, const struct hf__buf *stored);
/*
 * Whether it has a deletionTimestamp. If memory runs out: true, so that nothing is created in a
 * Namespace that may be terminating.
 */
bool hfd_object_deleting(const struct hfd_object *object);
/* Parses it, resourceVersion included. The caller frees. NULL = out of memory, or the stored bytes
 * are malformed behind the head. */
struct hf__json *hfd_object_parse(const struct hfd_object *object);
/* What selectors can read: labels and some fields; nothing if the stored bytes are malformed.
 * Borrowed from object. NULL = out of memory. */
const struct hf__json *hfd_object_selectable(struct hfd_object *object);
/*
 * The watch event `{"type":"ADDED","object":...}\n`, a new reference; NULL = out of memory. type
 * must not be BOOKMARK, which has no stored object. Built at each call, unless frames are shared.
 */
struct hf__buf *hfd_object_frame(struct hfd_object *object, enum hf_event_type type);
/* The same in protobuf (protobuf_answer.h). NULL also if the stored bytes are malformed. */
struct hf__buf *hfd_object_protobuf_frame(struct hfd_object *object, enum hf_event_type type);
/*
 * From share to unshare, which is while one event is delivered, the object keeps the frames that
 * are asked for, so that the watches get the same bytes. A frame is as large as the object, so no
 * object keeps its frames for longer. If memory runs out, frames are not shared. The caller has a
 * reference, and calls unshare once after each share.
 */
void hfd_object_share_frames(struct hfd_object *object);
void hfd_object_unshare_frames(struct hfd_object *object);
/* About how many bytes of memory the object uses. */
size_t hfd_object_memory(const struct hfd_object *object);
/* "ADDED", "MODIFIED", "DELETED" or "BOOKMARK". */
const char *hfd_event_type_name(enum hf_event_type type);

/*
 * Prints json in the stored order: kind, apiVersion, metadata, the rest; without resourceVersion
 * and selfLink. kind and apiVersion are taken from resource. NULL = out of memory; or, under the
 * permanent row of a slot, json has no valid ones.
 */
struct hf__buf *hfd_object_encode(const struct hfd_resource *resource, const struct hf__json *json);
