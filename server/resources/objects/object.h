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
 * frames. Thread: any. No function blocks; the locks of the frames are held for a few instructions.
 *
 * A server may have a million objects, so the struct is small: it has no members that few objects
 * need or that can be computed.
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
        /* A counted reference. Of a custom resource in the cache: the storage row whose form the
         * object has (if a webhook converts the kind: the row of the object's version), or the
         * permanent row of its slot while its definition is not known. A copy for a client may
         * have the row of another version (hfd_object_as). */
        const struct hfd_resource *resource;
        uint64_t revision;
        /* Owned; the served bytes, which may be packed if the resource says so (hfd_object_plain).
         * In a placeholder (hfd_object_unreadable, hfd_object_sealed) it is NULL, or a text that is
         * no object. */
        struct hf__buf *bytes;
        /* Owned; built on first use: the labels, and the fields that field selectors may use. */
        _Atomic(struct hf__json *) selectable;
        struct hfd_object_frames *frames; /* owned; NULL = not shared; guarded by object.c's lock */
        atomic_int refs;
        uint16_t splice_at; /* where the resourceVersion begins in the unpacked bytes */
        uint8_t n_splice;   /* the length of that member, with a comma if others follow */
        /* The store has the object encrypted in another way than it would be encrypted now, so an
         * update that changes nothing writes it too. Set before other threads know the object. */
        bool stale;
        bool has_origin; /* see hfd_object_origin */
        uint16_t n_ns;   /* length of the namespace in path; 0 = none */
        /* "ns/name" or "name"; in a placeholder the key. A pointer may follow it (object.c). */
        char path[];
};

/* The object's name, borrowed from object. */
static inline const char *hfd_object_name(const struct hfd_object *object) {
        return object->path + (object->n_ns ? object->n_ns + 1u : 0u);
}

/* Whether the bytes begin with the head of the resource, which is not the permanent row of a
 * slot. */
bool hfd_object_has_head(const struct hfd_resource *resource, const struct hf__buf *bytes);
/* How many bytes precede the member `metadata`: the brace, kind and apiVersion. The object is no
 * placeholder. */
static inline size_t hfd_object_typed_bytes(const struct hfd_object *object) {
        return object->splice_at - (sizeof "\"metadata\":{" - 1);
}

/*
 * stored: the value from the store. A value that begins with the head of the resource (under the
 * permanent row of a slot: with any head) is taken as written by a holdfastd, so it is not parsed.
 * NULL = out of memory, or stored is not a valid object; hfd_object_check distinguishes the two.
 */
struct hfd_object *hfd_object_new(const struct hfd_resource *resource, const char *path,
                                  uint64_t revision, const struct hf__buf *stored);
/*
 * The same for bytes that were brought into the form of resource, from the stored bytes `origin`.
 * They begin with the head of resource. The object keeps a reference to `origin` if the two differ:
 * in another form it may have other members. NULL = out of memory.
 */
struct hfd_object *hfd_object_new_formed(const struct hfd_resource *resource, const char *path,
                                         uint64_t revision, const struct hf__buf *bytes,
                                         struct hf__buf *origin);
/* The bytes from which the object was formed, if it keeps them; otherwise its served bytes. Kept
 * bytes usually have no resourceVersion, because they come from the store. They have one if the
 * object was formed from the served bytes of another object. Borrowed from object. */
struct hf__buf *hfd_object_origin(const struct hfd_object *object);
/* Parses stored, which may be any bytes from the store, but not the packed bytes of an object. 0 =
 * it is a valid object of the resource; HF_E_INVALID = it is not; or -ENOMEM. */
int hfd_object_check(const struct hfd_resource *resource, const struct hf__buf *stored);
/*
 * A placeholder for a stored value that is not a valid object. Its path is the store's key, and its
 * bytes are NULL. So only its resource, path and revision can be used. NULL = out of memory.
 */
struct hfd_object *hfd_object_unreadable(const struct hfd_resource *resource, const char *key,
                                         uint64_t revision);
/*
 * The same for a value that could not be decrypted. Its bytes are the text `why`, which a caller
 * may read, but they are not an object. NULL = out of memory.
 */
struct hfd_object *hfd_object_sealed(const struct hfd_resource *resource, const char *key,
                                     uint64_t revision, const char *why);
/* A copy of a valid object with another revision, for a DELETED event. It is not packed, not stale,
 * and has no origin. NULL = out of memory. */
struct hfd_object *hfd_object_at(const struct hfd_object *object, uint64_t revision);
/* A copy with the kind and apiVersion of another row. The bytes of the object are not packed. The
 * copy is not stale, and has no origin. NULL = out of memory. */
struct hfd_object *hfd_object_as(const struct hfd_resource *resource,
                                 const struct hfd_object *object);
/* The object with bytes that are not packed: a new reference to it, or a copy (as that of
 * hfd_object_at) if its bytes are packed. Use the result to send the bytes to a client. The object
 * is no placeholder. NULL = out of memory. */
struct hfd_object *hfd_object_plain(struct hfd_object *object);
/* The number of served bytes when they are unpacked. The object is not a placeholder. */
size_t hfd_object_size(const struct hfd_object *object);
/* Accepts NULL. */
struct hfd_object *hfd_object_ref(struct hfd_object *object);
/* Accepts NULL, returns NULL. */
struct hfd_object *hfd_object_unref(struct hfd_object *object);

/*
 * Whether a write of `stored` would change nothing: whether the object's bytes without the
 * resourceVersion equal stored. If hfd_object_new has converted the object, or the object was
 * formed from other bytes (has_origin), these are the new bytes, not those in the store. False also
 * if the object is packed and memory runs out.
 */
bool hfd_object_has_bytes(const struct hfd_object *object, const struct hf__buf *stored);
/*
 * Whether the object has a deletionTimestamp. If that cannot be found out, because memory runs out
 * or the bytes are malformed: true, so that nothing is created in a Namespace that may be
 * terminating.
 */
bool hfd_object_deleting(const struct hfd_object *object);
/* Parses the served bytes, so the result has the resourceVersion. The caller frees it. NULL = out
 * of memory, or the bytes are malformed after the head. */
struct hf__json *hfd_object_parse(const struct hfd_object *object);
/* The same for an update: metadata.managedFields may be a raw value (json.h), because an update
 * seldom changes it by more than a time. It is one only if the object is not packed, and if it is a
 * list of values that need no parser (hf__json_skip_plain_value). */
struct hf__json *hfd_object_parse_for_update(const struct hfd_object *object);
/* The parts that selectors read: the labels and some fields; if the bytes are malformed, those of
 * an object without members. Borrowed from object, and valid as long as the object. NULL = out of
 * memory. */
const struct hf__json *hfd_object_selectable(struct hfd_object *object);
/* The same if they are there already, so that nothing is parsed. NULL = they are not. */
const struct hf__json *hfd_object_selectable_made(const struct hfd_object *object);
/*
 * What the code that uses objects of this kind has extracted from the bytes, so that it need not
 * read them again. Only for resources with keeps_extract. Borrowed from object, and valid as long
 * as the object. NULL = nothing yet.
 */
const void *hfd_object_extract(const struct hfd_object *object);
/* Keeps a block of memory as the extract, which the object frees with free, and returns it. If
 * another thread was first, frees the block and returns that of the other thread. */
const void *hfd_object_keep_extract(struct hfd_object *object, void *extract);
/*
 * The watch event `{"type":"ADDED","object":...}\n`, as a new reference; NULL = out of memory. type
 * must not be BOOKMARK, which has no stored object. The object is no placeholder. Each call builds
 * the event, unless frames are shared and an earlier call has built it.
 */
struct hf__buf *hfd_object_frame(struct hfd_object *object, enum hf_event_type type);
/* The same in protobuf (protobuf_response.h). NULL also if the stored bytes are malformed. */
struct hf__buf *hfd_object_protobuf_frame(struct hfd_object *object, enum hf_event_type type);
/*
 * The cacher calls share before it delivers an event to the watches, and unshare afterwards. In
 * between, the object keeps each frame that is built, so that usually all watches send the same
 * bytes. A frame is as large as the object, so the object does not keep it for longer. If memory
 * runs out, frames are not shared. The caller has a reference to the object, and calls unshare once
 * before it or another thread calls share again.
 */
void hfd_object_share_frames(struct hfd_object *object);
void hfd_object_unshare_frames(struct hfd_object *object);
/* An estimate of the bytes of memory that the object uses, without its shared frames, and without
 * what hfd_object_selectable and hfd_object_keep_extract have kept. */
size_t hfd_object_memory(const struct hfd_object *object);
/* "ADDED", "MODIFIED", "DELETED" or "BOOKMARK". */
const char *hfd_event_type_name(enum hf_event_type type);

/*
 * Prints json in the stored order: kind, apiVersion, metadata, the rest. kind and apiVersion are
 * taken from resource; under the permanent row of a slot, from json. Of the metadata, three things
 * are left out: resourceVersion, selfLink, and every member that is null. NULL = out of memory; or,
 * under the permanent row of a slot, json has no valid kind and apiVersion.
 */
struct hf__buf *hfd_object_encode(const struct hfd_resource *resource, const struct hf__json *json);
