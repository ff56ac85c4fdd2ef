/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resources/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"

#define HEAD_MAX 256

static size_t head_of(const struct hfd_resource *resource, char head[HEAD_MAX]) {
        char version[128];

        hfd_resource_api_version(resource, version);
        return hf__join(head, HEAD_MAX, "{\"kind\":\"", resource->kind, "\",\"apiVersion\":\"",
                        version, "\",\"metadata\":{", NULL);
}

struct hf__buf *hfd_object_encode(const struct hfd_resource *resource,
                                  const struct hf__json *object) {
        struct hf__strbuf s = {0};
        char head[HEAD_MAX];
        const char *comma = "";

        hf__strbuf_add(&s, head, head_of(resource, head));
        for (struct hf__json *m = hf__json_first(hf__json_get(object, "metadata")); m;
             m = hf__json_next(m)) {
                const char *key = hf__json_key(m);
                if (strcmp(key, "resourceVersion") == 0 || strcmp(key, "selfLink") == 0 ||
                    hf__json_is_null(m))
                        continue;
                hf__strbuf_puts(&s, comma);
                hf__strbuf_json(&s, key, strlen(key));
                hf__strbuf_putc(&s, ':');
                hf__json_print(m, &s);
                comma = ",";
        }
        hf__strbuf_putc(&s, '}');
        for (struct hf__json *m = hf__json_first(object); m; m = hf__json_next(m)) {
                const char *key = hf__json_key(m);
                if (strcmp(key, "kind") == 0 || strcmp(key, "apiVersion") == 0 ||
                    strcmp(key, "metadata") == 0)
                        continue;
                hf__strbuf_putc(&s, ',');
                hf__strbuf_json(&s, key, strlen(key));
                hf__strbuf_putc(&s, ':');
                hf__json_print(m, &s);
        }
        hf__strbuf_putc(&s, '}');
        struct hf__buf *buf = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return buf;
}

/* n_head bytes of stored, then the resourceVersion, then the rest, without n_old bytes of an
 * earlier splice. */
static struct hf__buf *splice(const struct hf__buf *stored, size_t n_head, size_t n_old,
                              uint64_t revision, size_t *ret_n_splice) {
        char digits[HF__U64_TEXT_MAX], text[48];
        bool empty = stored->n > n_head + n_old && stored->data[n_head + n_old] == '}';
        (void)hf__u64_text(revision, digits);
        size_t n = hf__join(text, sizeof text, "\"resourceVersion\":\"", digits,
                            empty ? "\"" : "\",", NULL);
        struct hf__buf *bytes = hf__buf_new(stored->n - n_old + n);

        if (!bytes)
                return NULL;
        memcpy(bytes->data, stored->data, n_head);
        memcpy(bytes->data + n_head, text, n);
        memcpy(bytes->data + n_head + n, stored->data + n_head + n_old, stored->n - n_head - n_old);
        *ret_n_splice = n;
        return bytes;
}

static struct hfd_object *object_alloc(const struct hfd_resource *resource, const char *path,
                                       uint64_t revision) {
        size_t n = strlen(path);
        struct hfd_object *object = calloc(1, sizeof *object + n + 1);

        if (!object)
                return NULL;
        atomic_init(&object->refs, 1);
        object->resource = resource;
        object->revision = revision;
        memcpy(object->path, path, n + 1);
        const char *slash = resource->namespaced ? strchr(object->path, '/') : NULL;
        object->n_ns = slash ? (size_t)(slash - object->path) : 0;
        object->name = slash ? slash + 1 : object->path;
        return object;
}

struct hfd_object *hfd_object_new(const struct hfd_resource *resource, const char *path,
                                  uint64_t revision, const struct hf__buf *stored) {
        char head[HEAD_MAX];
        size_t n_head = head_of(resource, head);
        struct hf__buf *normal = NULL;
        struct hfd_object *object;

        if (stored->n < n_head || memcmp(stored->data, head, n_head) != 0) {
                struct hf__json *json = NULL;
                if (hf__json_parse(stored->data, stored->n, &json, NULL) ||
                    !hf__json_is_object(json)) {
                        hf__json_free(json);
                        return NULL;
                }
                normal = hfd_object_encode(resource, json);
                hf__json_free(json);
                if (!normal)
                        return NULL;
                stored = normal;
        }
        object = object_alloc(resource, path, revision);
        if (object) {
                object->splice_at = n_head;
                object->bytes = splice(stored, n_head, 0, revision, &object->n_splice);
                if (!object->bytes)
                        object = hfd_object_unref(object);
        }
        hf__buf_unref(normal);
        return object;
}

int hfd_object_check(const struct hf__buf *stored) {
        struct hf__json *json = NULL;
        int r = hf__json_parse(stored->data, stored->n, &json, NULL);

        if (r == 0 && !hf__json_is_object(json))
                r = HF_E_INVALID;
        hf__json_free(json);
        return r != 0 && r != -ENOMEM ? HF_E_INVALID : r;
}

struct hfd_object *hfd_object_unreadable(const struct hfd_resource *resource, const char *key,
                                         uint64_t revision) {
        return object_alloc(resource, key, revision);
}

struct hfd_object *hfd_object_at(const struct hfd_object *object, uint64_t revision) {
        struct hfd_object *other = object_alloc(object->resource, object->path, revision);

        if (!other)
                return NULL;
        other->splice_at = object->splice_at;
        other->bytes = splice(object->bytes, object->splice_at, object->n_splice, revision,
                              &other->n_splice);
        return other->bytes ? other : hfd_object_unref(other);
}

struct hfd_object *hfd_object_ref(struct hfd_object *object) {
        if (object)
                atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
        return object;
}

struct hfd_object *hfd_object_unref(struct hfd_object *object) {
        if (!object || atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        for (size_t i = 0; i < 3; i++)
                hf__buf_unref(atomic_load(&object->frames[i]));
        hf__json_free(atomic_load(&object->meta));
        hf__buf_unref(object->bytes);
        free(object);
        return NULL;
}

bool hfd_object_is(const struct hfd_object *object, const struct hf__buf *stored) {
        const struct hf__buf *bytes = object->bytes;
        size_t rest = object->splice_at + object->n_splice;

        return bytes->n - object->n_splice == stored->n &&
               memcmp(bytes->data, stored->data, object->splice_at) == 0 &&
               memcmp(bytes->data + rest, stored->data + object->splice_at, bytes->n - rest) == 0;
}

bool hfd_object_deleting(const struct hfd_object *object) {
        static const char key[] = "\"deletionTimestamp\"";

        /* Most have the word nowhere; where it is, it may still be a label's key. */
        if (!memmem(object->bytes->data, object->bytes->n, key, sizeof key - 1))
                return false;
        struct hf__json *json = hfd_object_parse(object);
        bool deleting = !json || hf__json_string(json, "metadata.deletionTimestamp");
        hf__json_free(json);
        return deleting;
}

struct hf__json *hfd_object_parse(const struct hfd_object *object) {
        struct hf__json *json = NULL;

        return hf__json_parse(object->bytes->data, object->bytes->n, &json, NULL) ? NULL : json;
}

static int keep(struct hf__json *meta, const struct hf__json *whole, const char *key) {
        struct hf__json *part = hf__json_get(whole, key);
        struct hf__json *copy = part ? hf__json_dup(part) : NULL;

        return !part ? 0 : copy ? hf__json_set(meta, key, copy) : -1;
}

const struct hf__json *hfd_object_meta(struct hfd_object *object) {
        static const char *const kept[] = {"involvedObject",     "reason", "type",
                                           "reportingComponent", "source", "status"};
        struct hf__json *meta = atomic_load_explicit(&object->meta, memory_order_acquire),
                        *none = NULL;

        if (meta)
                return meta;
        struct hf__json *whole = hfd_object_parse(object);
        meta = hf__json_object();
        int r = !whole || !meta || keep(meta, hf__json_get(whole, "metadata"), "labels");
        for (size_t i = 0; r == 0 && i < sizeof kept / sizeof kept[0]; i++)
                r = keep(meta, whole, kept[i]);
        hf__json_free(whole);
        if (r != 0) {
                hf__json_free(meta);
                return NULL;
        }
        if (atomic_compare_exchange_strong(&object->meta, &none, meta))
                return meta;
        hf__json_free(meta);
        return none;
}

const char *hfd_event_type_name(enum hf_event_type type) {
        static const char *const names[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"};

        return names[type];
}

struct hf__buf *hfd_object_frame(struct hfd_object *object, enum hf_event_type type) {
        struct hf__buf *frame = atomic_load_explicit(&object->frames[type], memory_order_acquire),
                       *none = NULL;
        char head[48];

        if (frame)
                return hf__buf_ref(frame);
        size_t n_head = hf__join(head, sizeof head, "{\"type\":\"", hfd_event_type_name(type),
                                 "\",\"object\":", NULL);
        frame = hf__buf_new(n_head + object->bytes->n + 2);
        if (!frame)
                return NULL;
        memcpy(frame->data, head, n_head);
        memcpy(frame->data + n_head, object->bytes->data, object->bytes->n);
        memcpy(frame->data + n_head + object->bytes->n, "}\n", 2);
        hf__buf_ref(frame);
        if (atomic_compare_exchange_strong(&object->frames[type], &none, frame))
                return frame;
        hf__buf_unref(frame);
        hf__buf_unref(frame);
        return hf__buf_ref(none);
}
