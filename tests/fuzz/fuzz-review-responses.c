/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes responses of webhooks: AdmissionReviews of mutating webhooks (the input begins with 'm')
 * and of validating ones ('v'), and ConversionReviews ('c'). What is accepted has the types that
 * its readers expect; notes stay within their bounds; a refusal never looks like a success; a
 * converted object keeps its identity; and what is refused is refused with a message.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/admission/notes.h"
#include "server/admission/webhooks/admission_review.h"
#include "server/admission/webhooks/refusal.h"
#include "server/resources/custom/custom_table.h"
#include "server/resources/forms/conversion_review.h"
#include "server/resources/objects/custom_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* ---- AdmissionReviews ---- */

static void check_refusal(const struct hf__json *status) {
        struct hfd_response response = {0};

        hfd_refusal_denied(&response, "x.example.com", status);
        assert(response.code >= 400 && response.code <= 599 && response.status.error != 0);
        hfd_response_done(&response);
}

static void check_notes(const struct hfd_admission_review_response *answer) {
        struct hfd_admission_notes notes = {0};

        for (const struct hf__json *m = hf__json_first(answer->warnings); m; m = hf__json_next(m)) {
                hfd_admission_warn(&notes, hf__json_text(m));
                size_t before = notes.warnings.n;
                hfd_admission_warn(&notes, hf__json_text(m));
                assert(notes.warnings.n == before);
        }
        for (const struct hf__json *m = hf__json_first(answer->annotations); m;
             m = hf__json_next(m))
                hfd_admission_annotate(&notes, hf__json_key(m), hf__json_text(m));
        assert(notes.warnings.n <= HFD_ADMISSION_WARNINGS_MAX);
        assert(notes.annotations.n <= HFD_ADMISSION_ANNOTATIONS_MAX);
        hfd_admission_notes_done(&notes);
}

static void check_admission(const uint8_t *data, size_t n, bool mutating) {
        struct hfd_admission_review_response answer = {0};
        char why[HFD_ADMISSION_REVIEW_WHY_MAX] = "";
        int r = hfd_admission_review_read(data, n, "u", mutating, &answer, why);

        assert(r == 0 || (r == HF_E_INVALID && *why) || r == -ENOMEM);
        if (r != 0)
                return;
        assert(!answer.patch || (mutating && hf__json_is_array(answer.patch)));
        for (const struct hf__json *m = hf__json_first(answer.patch); m; m = hf__json_next(m))
                assert(hf__json_is_object(m));
        check_notes(&answer);
        if (!answer.allowed)
                check_refusal(answer.status);
        hfd_admission_review_response_done(&answer);
}

/* ---- ConversionReviews ---- */

#define VERSION(name, is_stored)                                                                   \
        "{\"name\":\"" name "\",\"served\":true,\"storage\":" is_stored                            \
        ",\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"a\":{"            \
        "\"type\":\"string\",\"default\":\"d\"}}}}}"
static const char definition[] =
        "{\"metadata\":{\"name\":\"gates.example.com\",\"uid\":\"1\"},\"spec\":{\"group\":"
        "\"example.com\",\"scope\":\"Namespaced\",\"names\":{\"plural\":\"gates\",\"kind\":"
        "\"Gate\"},\"versions\":[" VERSION("v1", "true") "," VERSION(
                "v2",
                "false") "],\"conversion\":{\"strategy\":\"Webhook\",\"webhook\":{"
                         "\"conversionReviewVersions\":[\"v1\"],\"clientConfig\":{\"url\":"
                         "\"https://a/\"}}}},\"status\":{\"acceptedNames\":{\"plural\":\"gates\","
                         "\"kind\":\"Gate\"}}}";
static const char stored[] = "{\"kind\":\"Gate\",\"apiVersion\":\"example.com/v1\",\"metadata\":{"
                             "\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u\",\"labels\":{"
                             "\"a\":\"b\"}},\"a\":\"x\"}";

/* For the whole run. */
static const struct hfd_resource *wanted;
static struct hfd_object *source;
/* Nothing reads it, but the leak sanitizer must find it. */
__attribute__((used)) static struct hfd_custom_table *table;

static void make_source(void) {
        struct hfd_custom_kind *kind = NULL;
        const struct hfd_resource *slot;
        struct hf__json *json = NULL;

        table = hfd_custom_table_new();
        assert(table && hfd_custom_table_slot(table, "example.com", "gates", &slot) == 0);
        assert(hf__json_parse(definition, strlen(definition), &json, NULL) == 0);
        assert(hfd_custom_kind_new(json, NULL, slot, 1, &kind) == 0);
        hf__json_free(json);
        wanted = &hfd_custom_kind_version(kind, "v2")->row;
        struct hf__buf *bytes = hf__buf_copy(stored, strlen(stored));
        source = hfd_custom_object_new(&hfd_custom_kind_version(kind, "v1")->row, "ns/a", 5, bytes);
        hf__buf_unref(bytes);
        assert(source);
}

static void check_conversion(const uint8_t *data, size_t n) {
        struct hfd_object *objects[] = {source, source}, *converted[2] = {0};

        for (size_t n_objects = 1; n_objects <= 2; n_objects++) {
                struct hf__strbuf why = {0};
                int r = hfd_conversion_review_read(data, n, "u", wanted, objects, n_objects,
                                                   converted, &why);
                assert(r == 0 || (r == HF_E_INVALID && why.n > 0) || r == -ENOMEM);
                assert(why.n <= 4096);
                for (size_t i = 0; i < n_objects; i++) {
                        assert((r == 0) == (converted[i] != NULL));
                        if (r != 0)
                                continue;
                        struct hf__json *json = hfd_object_parse(converted[i]);
                        assert(json && hf__json_has_text(json, "metadata.name", "a") &&
                               hf__json_has_text(json, "metadata.uid", "u") &&
                               hf__json_has_text(json, "apiVersion", "example.com/v2") &&
                               hf__json_has_text(json, "kind", "Gate"));
                        hf__json_free(json);
                        converted[i] = hfd_object_unref(converted[i]);
                }
                hf__strbuf_done(&why);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        if (!source)
                make_source();
        if (n == 0)
                return 0;
        if (data[0] == 'm' || data[0] == 'v')
                check_admission(data + 1, n - 1, data[0] == 'm');
        else if (data[0] == 'c')
                check_conversion(data + 1, n - 1);
        return 0;
}
