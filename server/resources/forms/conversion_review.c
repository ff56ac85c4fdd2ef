/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the ConversionReviews that are sent to the webhook of a custom resource, and reads the
 * responses.
 *
 * Invariants: the values of a response are counted before it is parsed, because each value becomes
 * a struct, even one that is a single byte in the response. A webhook can change neither the
 * identity nor the metadata of an object, except labels and annotations. The messages are those of
 * kube-apiserver, except those about a response that is too large or not JSON, about an element
 * that is no object, and about a fraction in labels or annotations (type_name).
 */
#include "server/resources/forms/conversion_review.h"

#include <errno.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_envelope.h"
#include "base/utf8.h"
#include "server/resources/causes.h"
#include "server/resources/objects/custom_object.h"
#include "server/resources/validation/meta_validation.h"
#include "server/schema/strict.h"

#define API_VERSION "apiextensions.k8s.io/v1"
#define KIND        "ConversionReview"

/* The containers around an object: the review, its response, and convertedObjects. */
#define LEVELS 3
/* The values that a response may have: twice those of the objects, and this many more. */
#define MORE_VALUES ((size_t)256 << 10)
/* The bytes that a response may have: four times those of the objects, and this many more. */
#define MORE_BYTES ((size_t)4 << 20)
/* The largest message, in bytes. Kubernetes has no limit for it. */
#define WHY_MAX 4096

/* One object of the response, and the object that it was converted from. */
struct pair {
        const struct hfd_resource *row;
        const struct hfd_object *source;
        size_t index;
        struct hf__json *original;  /* owned; parsed by read_object, which also frees it */
        struct hf__json *converted; /* borrowed from the response, and changed in place */
};

/* The bytes of an object always contain a resourceVersion, at splice_at. It has no meaning before
 * the object is stored (revision 0), so these bytes are left out then. */
static void put_object(struct hf__strbuf *s, const struct hfd_object *object) {
        size_t end = object->splice_at;

        if (object->revision != 0) {
                hf__strbuf_add(s, object->bytes->data, object->bytes->n);
                return;
        }
        hf__strbuf_add(s, object->bytes->data, end);
        end += object->n_splice;
        hf__strbuf_add(s, object->bytes->data + end, object->bytes->n - end);
}

void hfd_conversion_review_put(struct hf__strbuf *s, const char *uid,
                               const struct hfd_resource *row, struct hfd_object *const *objects,
                               size_t n) {
        char version[HFD_API_VERSION_MAX];

        hfd_resource_api_version(row, version);
        hf__strbuf_printf(s,
                          "{\"kind\":\"" KIND "\",\"apiVersion\":\"" API_VERSION
                          "\",\"request\":{\"uid\":\"%s\",\"desiredAPIVersion\":\"%s\","
                          "\"objects\":[",
                          uid, version);
        for (size_t i = 0; i < n; i++) {
                if (i > 0)
                        hf__strbuf_putc(s, ',');
                put_object(s, objects[i]);
        }
        hf__strbuf_puts(s, "]}}");
}

/* ---- the response ---- */

/* "group/version, Kind=Kind" of an apiVersion, as Go prints a GroupVersionKind. */
static void put_type(struct hf__strbuf *why, const struct hf__json *json) {
        const char *version = hf__json_string_or_empty(json, "apiVersion");

        hf__strbuf_printf(why, "%s%s, Kind=%s", strchr(version, '/') ? "" : "/", version,
                          hf__json_string_or_empty(json, "kind"));
}

/* The list of converted objects, or another value, which the caller counts as an empty list. NULL:
 * why says what is wrong. */
static const struct hf__json *check_response(const struct hf__json *review, const char *uid,
                                             struct hf__strbuf *why) {
        const struct hf__json *response = hf__json_get(review, "response");

        if (!hf__json_has_text(review, "apiVersion", API_VERSION) ||
            !hf__json_has_text(review, "kind", KIND)) {
                hf__strbuf_puts(why, "failed: expected webhook response of " API_VERSION
                                     ", Kind=" KIND ", got ");
                put_type(why, review);
                return NULL;
        }
        if (!hf__json_is_object(response)) {
                hf__strbuf_puts(why, "failed: no response provided");
                return NULL;
        }
        if (!hf__json_has_text(response, "uid", uid)) {
                hf__strbuf_printf(why, "failed: expected response.uid=\"%s\", got ", uid);
                hf__strbuf_json(why, hf__json_string_or_empty(response, "uid"),
                                strlen(hf__json_string_or_empty(response, "uid")));
                return NULL;
        }
        if (!hf__json_has_text(response, "result.status", "Success")) {
                const char *message = hf__json_string_or_empty(response, "result.message");
                if (*message)
                        hf__strbuf_printf(why, "failed: %s", message);
                else
                        hf__strbuf_printf(why,
                                          "failed: response.result.status was '%s', not "
                                          "'Success'",
                                          hf__json_string_or_empty(response, "result.status"));
                return NULL;
        }
        const struct hf__json *objects = hf__json_get(response, "convertedObjects");
        return objects ? objects : response; /* absent: a value that is no list */
}

/* ---- one object ---- */

/* Whether the webhook has changed a member that it must not change. name: for the message. */
static bool member_differs(const struct pair *pair, const char *path, const char *name,
                           struct hf__strbuf *why) {
        const char *in = hf__json_string_or_empty(pair->original, path),
                   *out = hf__json_string_or_empty(pair->converted, path);

        if (strcmp(in, out) == 0)
                return false;
        hf__strbuf_printf(why, "returned invalid object: must have the same %s: %s != %s", name, in,
                          out);
        return true;
}

/* Whether the converted object has the wanted version, and is still the same object. */
static bool is_identical(const struct pair *pair, struct hf__strbuf *why) {
        char version[HFD_API_VERSION_MAX];

        hfd_resource_api_version(pair->row, version);
        if (!hf__json_is_object(pair->converted)) {
                hf__strbuf_printf(why,
                                  "returned invalid converted object at index %zu: it is no object",
                                  pair->index);
                return false;
        }
        if (!hf__json_has_text(pair->converted, "apiVersion", version)) {
                hf__strbuf_printf(why,
                                  "returned invalid object at index %zu: invalid groupVersion "
                                  "(expected %s, received %s)",
                                  pair->index, version,
                                  hf__json_string_or_empty(pair->converted, "apiVersion"));
                return false;
        }
        if (!hf__json_has_text(pair->converted, "kind", pair->row->kind)) {
                hf__strbuf_printf(why,
                                  "returned invalid object at index %zu: invalid kind (expected "
                                  "%s, received %s)",
                                  pair->index, pair->row->kind,
                                  hf__json_string_or_empty(pair->converted, "kind"));
                return false;
        }
        return !member_differs(pair, "metadata.name", "name", why) &&
               !member_differs(pair, "metadata.namespace", "namespace", why) &&
               !member_differs(pair, "metadata.uid", "UID", why);
}

/* The Go type of a value, as %T prints it; but int64 for every number, also for a fraction, which
 * would be a float64. */
static const char *type_name(const struct hf__json *json) {
        if (hf__json_is_null(json))
                return "<nil>";
        if (hf__json_is_array(json))
                return "[]interface {}";
        if (hf__json_is_string(json))
                return "string";
        if (hf__json_is_bool(json))
                return "bool";
        return hf__json_is_number(json) ? "int64" : "map[string]interface {}";
}

/* Whether labels or annotations of the response can be accepted. */
static bool check_map(const struct hf__json *map, const struct hf__json *old, const char *name,
                      struct hf__strbuf *why) {
        struct hfd_causes causes;

        if (!hf__json_is_object(map)) {
                hf__strbuf_printf(why,
                                  "returned invalid metadata: invalid metadata.%s of type %s in "
                                  "converted object",
                                  name, type_name(map));
                return false;
        }
        for (const struct hf__json *m = hf__json_first(map); m; m = hf__json_next(m))
                if (!hf__json_is_string(m)) {
                        hf__strbuf_printf(why,
                                          "returned invalid metadata: metadata.%s[%s] must be a "
                                          "string, but is %s in converted object",
                                          name, hf__json_key(m), type_name(m));
                        return false;
                }
        if (old && hf__json_equal(map, old))
                return true;
        hfd_causes_init(&causes);
        if (strcmp(name, "labels") == 0)
                hfd_labels_validate(map, "metadata.labels", &causes);
        else
                /* The path has no s in kube-apiserver either. */
                hfd_annotations_validate(map, "metadata.annotation", &causes);
        if (causes.n == 0)
                return true;
        hf__strbuf_puts(why, "returned invalid metadata: ");
        for (size_t i = 0; i < causes.n; i++)
                hf__strbuf_printf(why, "%s%s%s: %s%s", i == 0 && causes.n > 1 ? "[" : "",
                                  i > 0 ? ", " : "", causes.items[i].field, causes.items[i].text,
                                  i + 1 == causes.n && causes.n > 1 ? "]" : "");
        return false;
}

/* Gives the converted object the metadata of the original, but keeps the labels and annotations
 * that the webhook has sent. 0, HF_E_INVALID or -ENOMEM. */
static int restore_metadata(const struct pair *pair, struct hf__strbuf *why) {
        static const char *const own[] = {"labels", "annotations"};
        struct hf__json *received = hf__json_get(pair->converted, "metadata"), *meta;
        int r = 0;

        if (!hf__json_is_object(received)) {
                hf__strbuf_puts(why, "returned invalid metadata: missing metadata in converted "
                                     "object");
                return HF_E_INVALID;
        }
        meta = hf__json_dup(hf__json_get(pair->original, "metadata"));
        if (!meta)
                return -ENOMEM;
        for (size_t i = 0; i < 2 && r == 0; i++) {
                struct hf__json *map = hf__json_get(received, own[i]);
                const struct hf__json *old = hf__json_get(meta, own[i]);
                if (map && hf__json_is_null(map))
                        map = NULL;
                if (map && !check_map(map, old, own[i], why))
                        r = HF_E_INVALID;
                else if (map)
                        r = hf__json_put(meta, own[i], hf__json_detach(received, map));
                else
                        hf__json_drop(meta, own[i]);
        }
        if (r == 0)
                return hf__json_put(pair->converted, "metadata", meta);
        hf__json_free(meta);
        return r;
}

/* 0, -ENOMEM, or HF_E_INVALID: `why` says what is wrong. */
static int read_object(struct pair *pair, struct hfd_object **ret_object, struct hf__strbuf *why) {
        int r = -ENOMEM;

        pair->original = hfd_object_parse(pair->source);
        if (pair->original)
                r = is_identical(pair, why) ? restore_metadata(pair, why) : HF_E_INVALID;
        hf__json_free(pair->original);
        if (r != 0)
                return r;
        *ret_object = hfd_custom_object_converted(pair->row, pair->source, pair->converted);
        return *ret_object ? 0 : -ENOMEM;
}

size_t hfd_conversion_review_max_response(struct hfd_object *const *objects, size_t n) {
        size_t bytes = MORE_BYTES;

        for (size_t i = 0; i < n; i++)
                bytes += 4 * objects[i]->bytes->n;
        return bytes;
}

/* Whether parsing the response takes memory in proportion to the objects. */
static bool has_fair_size(const void *review, size_t n_response, struct hfd_object *const *objects,
                          size_t n) {
        size_t max = MORE_VALUES;

        for (size_t i = 0; i < n; i++)
                max += 2 * hf__json_count_values(objects[i]->bytes->data, objects[i]->bytes->n);
        return hf__json_count_values(review, n_response) <= max;
}

/* Returns as hfd_conversion_review_read. After an error, all of `converted` is NULL again. */
static int read_response(const void *review, size_t n_response, const char *uid,
                         const struct hfd_resource *row, struct hfd_object *const *objects,
                         size_t n, struct hfd_object **converted, struct hf__strbuf *why) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *json = NULL;
        size_t offset = 0, i = 0;
        int r = HF_E_INVALID;

        if (!has_fair_size(review, n_response, objects, n)) {
                hf__strbuf_puts(why, "failed: the response has too many values");
                return HF_E_INVALID;
        }
        /* Stored objects are valid UTF-8 without duplicate keys, like the bodies of clients. */
        if (hf__utf8_valid(review, n_response))
                r = hf__json_parse_envelope(review, n_response, LEVELS, &json, &offset);
        if (r == 0)
                r = hfd_strict_drop_duplicates(json, NULL, NULL);
        if (r != 0 && r != -ENOMEM) {
                hf__strbuf_printf(why, "failed: the response is not JSON, at byte %zu", offset);
                return HF_E_INVALID;
        }
        if (r != 0)
                return r;
        const struct hf__json *list = check_response(json, uid, why);
        size_t n_list = hf__json_is_array(list) ? hf__json_count(list) : 0;
        if (!list) {
                r = HF_E_INVALID;
        } else if (n_list != n) {
                hf__strbuf_printf(why, "returned %zu objects, expected %zu", n_list, n);
                r = HF_E_INVALID;
        }
        for (struct hf__json *m = r == 0 ? hf__json_first(list) : NULL; m && r == 0;
             m = hf__json_next(m)) {
                struct pair pair = {.row = row, .source = objects[i], .index = i, .converted = m};
                r = read_object(&pair, &converted[i], why);
                if (r == 0)
                        i++;
        }
        while (r != 0 && i > 0) {
                i--;
                converted[i] = hfd_object_unref(converted[i]);
        }
        return r;
}

int hfd_conversion_review_read(const void *review, size_t n_response, const char *uid,
                               const struct hfd_resource *row, struct hfd_object *const *objects,
                               size_t n, struct hfd_object **converted, struct hf__strbuf *why) {
        size_t begin = why->n;
        int r = read_response(review, n_response, uid, row, objects, n, converted, why);

        if (why->n > begin + WHY_MAX) {
                why->n = begin + WHY_MAX;
                why->data[why->n] = '\0';
        }
        return r;
}
