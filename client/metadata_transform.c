/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cache of metadata keeps of an object: {"apiVersion":..,"kind":..,"metadata":{..}}, the
 * last without managedFields, which are often larger than all the rest. The members are taken over
 * as the bytes they are. Pure.
 */
#include "client/informer_private.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "client/json_span.h"

#define SCRATCH 2048

/* Where the text goes; without a place it is only counted. */
struct out {
        char *at;
        size_t n;
};

static void add(struct out *out, const char *data, size_t n) {
        if (out->at)
                out->at = mempcpy(out->at, data, n);
        out->n += n;
}

static bool is(struct hf__span key, const char *name) {
        return key.n == strlen(name) && memcmp(key.data, name, key.n) == 0;
}

static void add_member(struct out *out, bool first, struct hf__span key, struct hf__span value) {
        if (!first)
                add(out, ",", 1);
        add(out, key.data - 1, key.n + 2); /* with its quotes */
        add(out, ":", 1);
        add(out, value.data, value.n);
}

static int add_metadata(struct out *out, struct hf__span metadata) {
        struct hf__span key, value;
        size_t at = 0;
        bool first = true;
        int r;

        add(out, "{", 1);
        while ((r = hf__span_next_member(metadata, &at, &key, &value)) > 0) {
                if (is(key, "managedFields"))
                        continue;
                add_member(out, first, key, value);
                first = false;
        }
        add(out, "}", 1);
        return r;
}

static int add_object(struct out *out, struct hf__span object) {
        struct hf__span key, value;
        size_t at = 0;
        bool first = true;
        int r;

        add(out, "{", 1);
        while ((r = hf__span_next_member(object, &at, &key, &value)) > 0) {
                bool metadata = is(key, "metadata");
                if (!metadata && !is(key, "apiVersion") && !is(key, "kind"))
                        continue;
                add_member(out, first, key, (struct hf__span){value.data, metadata ? 0 : value.n});
                first = false;
                if (metadata && (r = add_metadata(out, value)) < 0)
                        break;
        }
        add(out, "}", 1);
        return r;
}

int hf__metadata_transform(const char *object, size_t n, struct hf__buf **ret_cut) {
        const struct hf__span text = {object, n};
        char scratch[SCRATCH]; /* spares most objects the second look; a cut is never longer than
                                  its object, but for the ends of a broken one */
        struct out out = {.at = n + 4 <= sizeof scratch ? scratch : NULL};
        bool counted_only = !out.at;

        int r = add_object(&out, text);
        if (r < 0)
                return r;
        struct hf__buf *cut = hf__buf_new(out.n);
        if (!cut)
                return -ENOMEM;
        if (counted_only) {
                out = (struct out){.at = cut->data};
                (void)add_object(&out, text);
        } else {
                memcpy(cut->data, scratch, out.n);
        }
        *ret_cut = cut;
        return 0;
}

int hf__informer_keep(const struct hf_informer *informer, const char *object, size_t n,
                      struct hf__buf **ret_object) {
        if (informer->metadata_only)
                return hf__metadata_transform(object, n, ret_object);
        struct hf__buf *copy = hf__buf_copy(object, n);
        if (!copy)
                return -ENOMEM;
        *ret_object = copy;
        return 0;
}
