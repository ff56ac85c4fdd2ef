/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes patches. The first byte of the input selects the kind of patch and object; an object and a
 * patch follow, separated by a NUL. The result must be a valid tree: it prints, parses to the same
 * value, and is not too deep for the parser.
 */
#undef NDEBUG
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "server/patch/json_patch.h"
#include "server/patch/merge_patch.h"
#include "server/patch/strategic_patch.h"
#include "server/resources/rows/resource_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct hf__json *parse(const char *text, size_t n) {
        struct hf__json *json = NULL;

        if (!hf__utf8_valid(text, n) || hf__json_parse(text, n, &json, NULL))
                return NULL;
        return hf__json_check_unique(json, NULL) ? hf__json_free(json) : json;
}

static void check(const struct hf__json *document) {
        struct hf__strbuf s = {0};
        struct hf__json *again = NULL;

        hf__json_print(document, &s);
        assert(!s.error);
        assert(hf__json_parse(s.data, s.n, &again, NULL) == 0);
        assert(hf__json_equal(document, again));
        hf__json_free(again);
        hf__strbuf_done(&s);
}

static int apply(unsigned which, struct hf__json **document, const struct hf__json *patch) {
        static const char *const plurals[] = {"serviceaccounts", "namespaces", "configmaps"};
        struct hfd_patch_outcome outcome = {0};

        if (which % 4 == 0 && hf__json_is_array(patch) &&
            hf__json_count(patch) <= HFD_PATCH_OPS_MAX)
                return hfd_json_patch_apply(document, patch, &outcome);
        if (which % 4 == 1 && hf__json_is_object(patch))
                return hfd_merge_patch_apply(document, patch, &outcome);
        if (which % 4 > 1 && hf__json_is_object(patch))
                return hfd_strategic_patch_apply(hfd_resource_find("", "v1",
                                                                   plurals[which / 4 % 3]),
                                                 document, patch, &outcome);
        return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        const uint8_t *cut = n > 1 ? memchr(data + 1, 0, n - 1) : NULL;

        if (!cut)
                return 0;
        struct hf__json *document = parse((const char *)data + 1, (size_t)(cut - data) - 1);
        struct hf__json *patch = parse((const char *)cut + 1, n - (size_t)(cut - data) - 1);
        if (patch && hf__json_is_object(document)) {
                struct hf__json *before = hf__json_dup(patch);
                if (!apply(data[0], &document, patch))
                        check(document);
                assert(hf__json_equal(before, patch)); /* it is applied again after a conflict */
                hf__json_free(before);
        }
        hf__json_free(patch);
        hf__json_free(document);
        return 0;
}
