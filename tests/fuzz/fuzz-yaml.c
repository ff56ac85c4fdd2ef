/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes bodies in YAML. What is accepted must be JSON within the limits; a refusal has a
 * message. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "client/yaml_body.h"
#include "client/yaml_duplicates.h"

#define MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct hf__strbuf out = {.max = MAX};
        struct hf_status status = {0};
        struct hf__json *json = NULL;

        int r = hf__yaml_body_to_json((const char *)data, n, &out, &status);
        if (r == 0) {
                assert(out.n > 0 && out.n <= MAX);
                r = hf__json_parse(out.data, out.n, &json, NULL);
                /* A text with a NUL is YAML, but the registry does not take it. */
                assert(r == 0 || strstr(out.data, "\\u0000"));
                hf__json_free(json);
        } else {
                assert(r == HF_E_INVALID || r == HF_E_TOO_LARGE || r == -ENOMEM);
                assert(*status.message);
        }
        hf__strbuf_done(&out);
        out = (struct hf__strbuf){.max = MAX};
        r = hf__yaml_duplicates((const char *)data, n, 100, &out);
        assert(r == 0 || r == -ENOMEM);
        hf__strbuf_done(&out);
        return 0;
}
