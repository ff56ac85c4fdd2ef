/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds and shares objects. object.h has the form of their bytes. Invariants:
 *
 *  - bytes, once unpacked, begin with a head, and the resourceVersion follows at splice_at. The
 *    head is that of the resource; under the permanent row of a slot it is the object's own. The
 *    bytes before and after the resourceVersion are the stored bytes, normalized if another program
 *    stored them, or what a definition has made of them (custom_object.h). hfd_object_at and
 *    hfd_object_has_bytes rely on this. A placeholder has no such bytes.
 *  - selectable and the extract are set once, by a compare-and-exchange. A thread that loses the
 *    race frees its own copy and uses the published one. So they need no lock, and remain valid as
 *    long as the object.
 *  - frames is guarded by a lock that many objects share. The lock is held only to read or set a
 *    pointer and to take a reference, never while a frame is built or freed, and never together
 *    with another lock.
 */
#include "server/resources/objects/object.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/objects/protobuf_response.h"
#include "server/resources/objects/selectable_values.h"
#include "server/resources/packed.h"

#define HEAD_MAX 640 /* bytes of the longest head (object.h), with the NUL */

#define ENCODED_USUAL 1000 /* bytes that most objects fit in */

#define N_FRAMES 3   /* ADDED, MODIFIED, DELETED */
#define N_LOCKS  16  /* of frames */
#define OVERHEAD 112 /* bytes beside the struct and its texts: malloc's, and a node in a tree */

_Static_assert((int)HF_EVENT_BOOKMARK == N_FRAMES, "each other event type has a frame");
_Static_assert(HEAD_MAX < UINT16_MAX && HF_NAME_MAX < UINT16_MAX, "they fit in the object");

struct hfd_object_frames {
        /* Owned; NULL = not built yet. The frames in JSON come first, then those in protobuf. */
        struct hf__buf *of[2 * N_FRAMES];
};

/* Whether resource is the permanent row of a slot, whose objects may have any kind. */
static bool has_any_kind(const struct hfd_resource *resource) { return !*resource->kind; }

/* The names of a row need no escapes, and fit: those of a custom resource are checked when its kind
 * is made (custom/custom_kind.c). */
static size_t write_head(const struct hfd_resource *resource, char head[HEAD_MAX]) {
        char version[HFD_API_VERSION_MAX];

        hfd_resource_api_version(resource, version);
        size_t n = hf__join(head, HEAD_MAX, "{\"kind\":\"", resource->kind, "\",\"apiVersion\":\"",
                            version, "\",\"metadata\":{", NULL);
        assert(n > 0); /* 0 = too long: the code that has made the row is wrong */
        return n;
}

bool hfd_object_has_head(const struct hfd_resource *resource, const struct hf__buf *bytes) {
        char head[HEAD_MAX];
        size_t n = write_head(resource, head);

        return bytes->n >= n && memcmp(bytes->data, head, n) == 0;
}

/* The length of the head that the bytes begin with, whatever its kind; 0 = they begin with no head,
 * or with one that is too long. */
static size_t find_head(const struct hf__buf *bytes) {
        static const char *const parts[] = {"{\"kind\":\"", "\",\"apiVersion\":\"",
                                            "\",\"metadata\":{"};
        const char *at = bytes->data;
        size_t n;

        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
                n = strlen(parts[i]);
                if (strncmp(at, parts[i], n) != 0)
                        return 0;
                at += n;
                if (i < 2)
                        at += strcspn(at, "\"\\");
        }
        n = (size_t)(at - bytes->data);
        return n < HEAD_MAX ? n : 0;
}

/* Whether the text needs no escapes in JSON. */
static bool is_plain(const char *text) {
        for (; *text; text++)
                if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\')
                        return false;
        return true;
}

/* Writes the head for an object that has the members of json. 0 = kind or apiVersion is missing,
 * too long or needs escapes: json is not a valid object. */
static size_t make_head(const struct hfd_resource *resource, const struct hf__json *json,
                        char head[HEAD_MAX]) {
        if (!has_any_kind(resource))
                return write_head(resource, head);
        const char *kind = hf__json_string(json, "kind"),
                   *version = hf__json_string(json, "apiVersion");
        if (!kind || !version || !is_plain(kind) || !is_plain(version))
                return 0;
        return hf__join(head, HEAD_MAX, "{\"kind\":\"", kind, "\",\"apiVersion\":\"", version,
                        "\",\"metadata\":{", NULL);
}

static void put_member(struct hf__strbuf *s, const char *comma, const struct hf__json *member) {
        const char *key = hf__json_key(member);

        hf__strbuf_puts(s, comma);
        hf__strbuf_json(s, key, strlen(key));
        hf__strbuf_putc(s, ':');
        hf__json_print(member, s);
}

struct hf__buf *hfd_object_encode(const struct hfd_resource *resource,
                                  const struct hf__json *json) {
        struct hf__strbuf s = {0};
        char head[HEAD_MAX];
        const char *comma = "";

        size_t n_head = make_head(resource, json, head);
        if (n_head == 0)
                return NULL;
        hf__strbuf_reserve(&s, ENCODED_USUAL);
        hf__strbuf_add(&s, head, n_head);
        for (struct hf__json *m = hf__json_first(hf__json_get(json, "metadata")); m;
             m = hf__json_next(m)) {
                const char *key = hf__json_key(m);
                if (strcmp(key, "resourceVersion") == 0 || strcmp(key, "selfLink") == 0 ||
                    hf__json_is_null(m))
                        continue;
                put_member(&s, comma, m);
                comma = ",";
        }
        hf__strbuf_putc(&s, '}');
        for (struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m)) {
                const char *key = hf__json_key(m);
                if (strcmp(key, "kind") == 0 || strcmp(key, "apiVersion") == 0 ||
                    strcmp(key, "metadata") == 0)
                        continue;
                put_member(&s, ",", m);
        }
        hf__strbuf_putc(&s, '}');
        struct hf__buf *buf = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return buf;
}

/*
 * Copies bytes and inserts the resourceVersion after the first n_head bytes. An earlier
 * resourceVersion there, of n_old bytes, is replaced; n_old 0 = there is none.
 */
static struct hf__buf *make_spliced(const struct hf__buf *bytes, size_t n_head, size_t n_old,
                                    uint64_t revision, uint8_t *ret_n_splice) {
        char digits[HF__U64_TEXT_MAX], text[48];
        const char *rest = bytes->data + n_head + n_old;

        assert(bytes->n >= n_head + n_old); /* the rest may be "", then *rest is the NUL */
        size_t n_rest = bytes->n - n_head - n_old;
        (void)hf__u64_text(revision, digits);
        /* Metadata without any other member needs no comma. */
        size_t n = hf__join(text, sizeof text, "\"resourceVersion\":\"", digits,
                            *rest == '}' ? "\"" : "\",", NULL);
        struct hf__buf *spliced = hf__buf_new(n_head + n + n_rest);

        if (!spliced)
                return NULL;
        memcpy(spliced->data, bytes->data, n_head);
        memcpy(spliced->data + n_head, text, n);
        memcpy(spliced->data + n_head + n, rest, n_rest);
        *ret_n_splice = (uint8_t)n; /* less than sizeof text */
        return spliced;
}

/* The offset of the pointer that follows the path and its NUL in some objects, rounded up to the
 * alignment of a pointer. It leads to the origin or to the extract; no object has both. */
static size_t pointer_offset(size_t n_path) {
        size_t end = offsetof(struct hfd_object, path) + n_path + 1, n = sizeof(void *);

        return (end + n - 1) / n * n;
}

static void *pointer_of(const struct hfd_object *object) {
        return (char *)(uintptr_t)object + pointer_offset(strlen(object->path));
}

static struct hf__buf **origin_of(const struct hfd_object *object) {
        assert(object->has_origin);
        return pointer_of(object);
}

static _Atomic(void *) *extract_of(const struct hfd_object *object) {
        assert(object->resource->keeps_extract);
        return pointer_of(object);
}

/* The object, its path and the pointer after the path are one allocation. A pointer in the struct
 * would cost each of a million objects 8 bytes, and few have an origin or a place for an extract.
 */
static struct hfd_object *alloc_object_with(const struct hfd_resource *resource, const char *path,
                                            uint64_t revision, struct hf__buf *origin) {
        size_t n = strlen(path);
        bool has_pointer = origin || resource->keeps_extract;
        struct hfd_object *object =
                calloc(1, has_pointer ? pointer_offset(n) + sizeof(void *)
                                      : offsetof(struct hfd_object, path) + n + 1);

        assert(!origin || !resource->keeps_extract);
        if (!object)
                return NULL;
        atomic_init(&object->refs, 1);
        object->resource = hfd_resource_ref(resource);
        object->revision = revision;
        memcpy(object->path, path, n + 1);
        const char *slash = resource->namespaced ? strchr(object->path, '/') : NULL;
        object->n_ns = slash ? (uint16_t)(slash - object->path) : 0;
        object->has_origin = origin != NULL;
        if (origin)
                *origin_of(object) = hf__buf_ref(origin);
        if (resource->keeps_extract)
                atomic_init(extract_of(object), NULL);
        return object;
}

static struct hfd_object *alloc_object(const struct hfd_resource *resource, const char *path,
                                       uint64_t revision) {
        return alloc_object_with(resource, path, revision, NULL);
}

/*
 * Converts bytes that another program has stored to the form that this server stores. NULL = out of
 * memory, or the bytes are not a valid object (hfd_object_check).
 */
static struct hf__buf *normalize_bytes(const struct hfd_resource *resource,
                                       const struct hf__buf *foreign) {
        struct hf__json *json = NULL;
        struct hf__buf *normal = NULL;

        if (hf__json_parse(foreign->data, foreign->n, &json, NULL) == 0 && hf__json_is_object(json))
                normal = hfd_object_encode(resource, json);
        hf__json_free(json);
        return normal;
}

/* An object that hfd_pack refuses, or for which memory has run out, stays as it is: packing only
 * saves memory. */
static void pack_object(struct hfd_object *object) {
        struct hf__buf *packed = hfd_pack(object->bytes);

        if (!packed)
                return;
        hf__buf_unref(object->bytes);
        object->bytes = packed;
}

HF__CLEANUP_DEFINE(object_cleanup, struct hfd_object *, hfd_object_unref)

struct hfd_object *hfd_object_new(const struct hfd_resource *resource, const char *path,
                                  uint64_t revision, const struct hf__buf *stored) {
        char head[HEAD_MAX];
        size_t n_head = has_any_kind(resource) ? find_head(stored) : write_head(resource, head);
        HF__CLEANUP(hf__buf_cleanup) struct hf__buf *normal = NULL;

        if (n_head == 0 || stored->n < n_head ||
            (!has_any_kind(resource) && memcmp(stored->data, head, n_head) != 0)) {
                normal = normalize_bytes(resource, stored);
                if (!normal)
                        return NULL;
                stored = normal;
                n_head = find_head(stored);
                assert(n_head > 0); /* hfd_object_encode has written it */
        }
        HF__CLEANUP(object_cleanup)
        struct hfd_object *object = alloc_object(resource, path, revision);
        if (!object)
                return NULL;
        object->splice_at = (uint16_t)n_head;
        object->bytes = make_spliced(stored, n_head, 0, revision, &object->n_splice);
        if (!object->bytes)
                return NULL;
        if (resource->is_packed)
                pack_object(object);
        return HF__TAKE(object);
}

struct hfd_object *hfd_object_new_formed(const struct hfd_resource *resource, const char *path,
                                         uint64_t revision, const struct hf__buf *bytes,
                                         struct hf__buf *origin) {
        char head[HEAD_MAX];
        bool same = bytes->n == origin->n && memcmp(bytes->data, origin->data, bytes->n) == 0;
        struct hfd_object *object =
                alloc_object_with(resource, path, revision, same ? NULL : origin);

        if (!object)
                return NULL;
        object->splice_at = (uint16_t)write_head(resource, head);
        object->bytes = make_spliced(bytes, object->splice_at, 0, revision, &object->n_splice);
        return object->bytes ? object : hfd_object_unref(object);
}

struct hf__buf *hfd_object_origin(const struct hfd_object *object) {
        return object->has_origin ? *origin_of(object) : object->bytes;
}

int hfd_object_check(const struct hfd_resource *resource, const struct hf__buf *stored) {
        struct hf__json *json = NULL;
        char head[HEAD_MAX];
        /* Not unpacked: a value in the store may begin like packed bytes and be anything. */
        int r = hf__json_parse(stored->data, stored->n, &json, NULL);

        if (r == 0 && (!hf__json_is_object(json) || make_head(resource, json, head) == 0))
                r = HF_E_INVALID;
        hf__json_free(json);
        if (r != 0 && r != -ENOMEM)
                r = HF_E_INVALID;
        return r;
}

struct hfd_object *hfd_object_unreadable(const struct hfd_resource *resource, const char *key,
                                         uint64_t revision) {
        return alloc_object(resource, key, revision); /* with bytes NULL */
}

struct hfd_object *hfd_object_sealed(const struct hfd_resource *resource, const char *key,
                                     uint64_t revision, const char *why) {
        struct hfd_object *object = alloc_object(resource, key, revision);

        if (object)
                object->bytes = hf__buf_copy(why, strlen(why));
        return object && object->bytes ? object : hfd_object_unref(object);
}

struct hfd_object *hfd_object_at(const struct hfd_object *object, uint64_t revision) {
        assert(object->bytes);
        struct hfd_object *other = alloc_object(object->resource, object->path, revision);
        if (!other)
                return NULL;
        other->splice_at = object->splice_at;
        struct hf__buf *bytes = hfd_unpack(object->bytes);
        if (bytes)
                other->bytes = make_spliced(bytes, object->splice_at, object->n_splice, revision,
                                            &other->n_splice);
        hf__buf_unref(bytes);
        return other->bytes ? other : hfd_object_unref(other);
}

struct hfd_object *hfd_object_plain(struct hfd_object *object) {
        return hfd_is_packed(object->bytes) ? hfd_object_at(object, object->revision)
                                            : hfd_object_ref(object);
}

size_t hfd_object_size(const struct hfd_object *object) { return hfd_unpacked_size(object->bytes); }

struct hfd_object *hfd_object_as(const struct hfd_resource *resource,
                                 const struct hfd_object *object) {
        char head[HEAD_MAX];
        size_t n_head = write_head(resource, head), n_rest = object->bytes->n - object->splice_at;
        struct hfd_object *other = alloc_object(resource, object->path, object->revision);

        assert(!hfd_is_packed(object->bytes));
        if (!other)
                return NULL;
        other->splice_at = (uint16_t)n_head;
        other->n_splice = object->n_splice;
        other->bytes = hf__buf_new(n_head + n_rest);
        if (!other->bytes)
                return hfd_object_unref(other);
        memcpy(other->bytes->data, head, n_head);
        memcpy(other->bytes->data + n_head, object->bytes->data + object->splice_at, n_rest);
        return other;
}

struct hfd_object *hfd_object_ref(struct hfd_object *object) {
        assert(!object || atomic_load_explicit(&object->refs, memory_order_relaxed) > 0);
        if (object)
                atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
        return object;
}

struct hfd_object *hfd_object_unref(struct hfd_object *object) {
        /* acq_rel: whoever drops the last reference must see all that others did before they
         * dropped theirs. */
        if (!object || atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        assert(!object->frames); /* the thread that shares them has a reference until unshare */
        hf__json_free(atomic_load(&object->selectable));
        if (object->resource->keeps_extract)
                free(atomic_load(extract_of(object)));
        hf__buf_unref(object->bytes);
        if (object->has_origin)
                hf__buf_unref(*origin_of(object));
        hfd_resource_unref(object->resource);
        free(object);
        return NULL;
}

/* The stored bytes are the served bytes without the inserted resourceVersion. */
bool hfd_object_has_bytes(const struct hfd_object *object, const struct hf__buf *stored) {
        assert(object->bytes);
        if (hfd_object_size(object) - object->n_splice != stored->n)
                return false;
        struct hf__buf *bytes = hfd_unpack(object->bytes);
        if (!bytes)
                return false;
        size_t rest = object->splice_at + object->n_splice;
        bool same =
                memcmp(bytes->data, stored->data, object->splice_at) == 0 &&
                memcmp(bytes->data + rest, stored->data + object->splice_at, bytes->n - rest) == 0;
        hf__buf_unref(bytes);
        return same;
}

bool hfd_object_deleting(const struct hfd_object *object) {
        static const char key[] = "\"deletionTimestamp\"";

        assert(object->bytes);
        /* Few objects contain the word, so most need no parsing. The word may also be the key of a
         * label, so an object that contains it must be parsed. */
        if (!hfd_is_packed(object->bytes) &&
            !memmem(object->bytes->data, object->bytes->n, key, sizeof key - 1))
                return false;
        struct hf__json *json = hfd_object_parse(object);
        bool deleting = !json || hf__json_string(json, "metadata.deletionTimestamp");
        hf__json_free(json);
        return deleting;
}

/* Parses the served bytes. 0 or an error of hf__json_parse. */
static int parse_object(const struct hfd_object *object, struct hf__json **ret_json) {
        struct hf__buf *bytes = hfd_unpack(object->bytes);
        int r = bytes ? hf__json_parse(bytes->data, bytes->n, ret_json, NULL) : -ENOMEM;

        hf__buf_unref(bytes);
        return r;
}

struct hf__json *hfd_object_parse(const struct hfd_object *object) {
        struct hf__json *json = NULL;

        assert(object->bytes);
        return parse_object(object, &json) == 0 ? json : NULL;
}

/* Copies a member of whole into selectable, if it exists. 0 or -ENOMEM. */
static int copy_member(struct hf__json *selectable, const struct hf__json *whole, const char *key) {
        const struct hf__json *part = hf__json_get(whole, key);

        if (!part)
                return 0;
        struct hf__json *copy = hf__json_dup(part);
        return copy ? hf__json_set(selectable, key, copy) : -ENOMEM;
}

/*
 * Extracts what selectors can read: the labels, and the fields that selectors may name. Malformed
 * bytes count as an object without members. NULL = out of memory.
 */
static struct hf__json *make_selectable(const struct hfd_object *object) {
        struct hf__json *whole = NULL, *selectable = hf__json_object();
        int r = parse_object(object, &whole);

        if (!selectable || r == -ENOMEM)
                r = -ENOMEM;
        else
                r = copy_member(selectable, hf__json_get(whole, "metadata"), "labels");
        if (r == 0)
                r = hfd_selectable_copy(object->resource, whole, selectable);
        hf__json_free(whole);
        return r == 0 ? selectable : hf__json_free(selectable);
}

/* acquire: a value that another thread has published is complete. The exchange below is
 * stronger. */
const struct hf__json *hfd_object_selectable_made(const struct hfd_object *object) {
        return atomic_load_explicit(&object->selectable, memory_order_acquire);
}

const struct hf__json *hfd_object_selectable(struct hfd_object *object) {
        const struct hf__json *made = hfd_object_selectable_made(object);
        struct hf__json *published = NULL;

        if (made)
                return made;
        struct hf__json *selectable = make_selectable(object);
        if (!selectable ||
            atomic_compare_exchange_strong(&object->selectable, &published, selectable))
                return selectable;
        hf__json_free(selectable);
        return published; /* another thread was first */
}

const void *hfd_object_extract(const struct hfd_object *object) {
        return atomic_load_explicit(extract_of(object), memory_order_acquire);
}

const void *hfd_object_keep_extract(struct hfd_object *object, void *extract) {
        void *published = NULL;

        if (atomic_compare_exchange_strong(extract_of(object), &published, extract))
                return extract;
        free(extract);
        return published; /* another thread was first */
}

const char *hfd_event_type_name(enum hf_event_type type) {
        static const char *const names[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"};

        assert((size_t)type < sizeof names / sizeof names[0]);
        return names[type];
}

static struct hf__buf *make_protobuf_frame(const struct hfd_object *object,
                                           enum hf_event_type type) {
        struct hf__json *json = hfd_object_parse(object);
        struct hf__strbuf s = {0};
        struct hf__buf *frame = NULL;

        if (json) {
                hfd_protobuf_put_frame(&s, hfd_event_type_name(type), object->resource, false,
                                       json);
                frame = hf__strbuf_to_buf(&s);
        }
        hf__json_free(json);
        hf__strbuf_done(&s);
        return frame;
}

static struct hf__buf *make_frame(const struct hfd_object *object, enum hf_event_type type) {
        char head[48];
        size_t n_head = hf__join(head, sizeof head, "{\"type\":\"", hfd_event_type_name(type),
                                 "\",\"object\":", NULL);
        struct hf__buf *bytes = hfd_unpack(object->bytes),
                       *frame = bytes ? hf__buf_new(n_head + bytes->n + 2) : NULL;

        if (frame) {
                memcpy(frame->data, head, n_head);
                memcpy(frame->data + n_head, bytes->data, bytes->n);
                memcpy(frame->data + n_head + bytes->n, "}\n", 2);
        }
        hf__buf_unref(bytes);
        return frame;
}

/* The lock of an object's frames. Objects are spread over the locks by their addresses, without the
 * lowest bits, which are alike. */
static pthread_mutex_t *frames_lock(const struct hfd_object *object) {
        static pthread_mutex_t locks[N_LOCKS] =
                {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                 PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                 PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                 PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                 PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                 PTHREAD_MUTEX_INITIALIZER};

        return &locks[((uintptr_t)object >> 6) % N_LOCKS];
}

void hfd_object_share_frames(struct hfd_object *object) {
        struct hfd_object_frames *frames = calloc(1, sizeof *frames);

        pthread_mutex_lock(frames_lock(object));
        assert(!object->frames);
        object->frames = frames;
        pthread_mutex_unlock(frames_lock(object));
}

void hfd_object_unshare_frames(struct hfd_object *object) {
        pthread_mutex_lock(frames_lock(object));
        struct hfd_object_frames *frames = object->frames;
        object->frames = NULL;
        pthread_mutex_unlock(frames_lock(object));
        for (size_t i = 0; frames && i < 2 * N_FRAMES; i++)
                hf__buf_unref(frames->of[i]);
        free(frames);
}

static struct hf__buf *get_frame(struct hfd_object *object, enum hf_event_type type,
                                 bool protobuf) {
        size_t i = (size_t)type + (protobuf ? N_FRAMES : 0);

        assert(object->bytes && (size_t)type < N_FRAMES);
        pthread_mutex_lock(frames_lock(object));
        struct hf__buf *frame = object->frames ? hf__buf_ref(object->frames->of[i]) : NULL;
        pthread_mutex_unlock(frames_lock(object));
        if (frame)
                return frame;
        frame = protobuf ? make_protobuf_frame(object, type) : make_frame(object, type);
        if (!frame)
                return NULL;
        pthread_mutex_lock(frames_lock(object));
        if (object->frames && !object->frames->of[i])
                object->frames->of[i] = hf__buf_ref(frame);
        pthread_mutex_unlock(frames_lock(object));
        return frame; /* if another thread was faster, both use their own copy, which is equal */
}

struct hf__buf *hfd_object_frame(struct hfd_object *object, enum hf_event_type type) {
        return get_frame(object, type, false);
}

struct hf__buf *hfd_object_protobuf_frame(struct hfd_object *object, enum hf_event_type type) {
        return get_frame(object, type, true);
}

size_t hfd_object_memory(const struct hfd_object *object) {
        return sizeof *object + strlen(object->path) + (object->bytes ? object->bytes->n : 0) +
               (object->has_origin ? hfd_object_origin(object)->n : 0) + OVERHEAD;
}
