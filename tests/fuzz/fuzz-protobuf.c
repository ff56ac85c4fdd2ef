/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes bodies in protobuf, each as a body of every kind. What the decoder accepts is encoded, and
 * the result must be decoded and encoded to the same bytes: the encoder writes each object in one
 * form only.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/handlers/protobuf_body.h"
#include "server/resources/objects/protobuf_response.h"
#include "server/resources/rows/resource_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* As server/handlers/rest/rest_body.c does with a body. NULL: refused. */
static struct hf__buf *decode(const struct hfd_resource *resource, const void *data, size_t n) {
        struct hf__json *json = NULL;
        struct hf__strbuf s = {0};
        char version[HFD_API_VERSION_MAX];

        int r = hfd_protobuf_to_json(resource, false, data, n, &json);
        assert(r == 0 || r == HF_E_INVALID || r == -ENOMEM);
        if (r != 0 || hf__json_check_unique(json, NULL) != 0) {
                hf__json_free(json);
                return NULL;
        }
        /* The registry checks these before anything is answered. */
        hfd_resource_api_version(resource, version);
        assert(hf__json_set_string(json, "kind", resource->kind) == 0);
        assert(hf__json_set_string(json, "apiVersion", version) == 0);
        hf__json_print(json, &s);
        hf__json_free(json);
        struct hf__buf *text = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return text;
}

static struct hf__buf *encode(const struct hfd_resource *resource, struct hf__buf *text) {
        struct hf__buf *answer = NULL;

        assert(hfd_protobuf_convert(resource, text, &answer) == 0);
        hf__buf_unref(text);
        return answer;
}

static void try_kind(const struct hfd_resource *resource, const void *data, size_t n) {
        struct hf__buf *text = decode(resource, data, n);

        if (!text)
                return;
        assert(hfd_protobuf_has_form(resource));
        struct hf__buf *once = encode(resource, text);
        text = decode(resource, once->data, once->n);
        assert(text);
        struct hf__buf *twice = encode(resource, text);
        assert(once->n == twice->n && memcmp(once->data, twice->data, once->n) == 0);
        hf__buf_unref(once);
        hf__buf_unref(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        for (size_t i = 0; i < hfd_resources_count(); i++)
                try_kind(hfd_resource_at(i), data, n);
        return 0;
}
