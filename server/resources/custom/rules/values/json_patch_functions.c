/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a key as a part of a JSON pointer (RFC 6901): "~" becomes "~0", and "/" becomes "~1".
 *
 * Invariant: the reader of the pointer gets the same key back.
 */
#include "server/resources/custom/rules/values/json_patch_functions.h"

#include "cel/values/run.h"

/* The work is charged before the key is read, because the argument may be long. */
static struct hf__cel_value escape_key(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        size_t n_escaped = 0;
        char *text;
        char *at;

        if (!hf__cel_work(run, args[0].n / 8))
                return hf__cel_failure(run);
        for (size_t i = 0; i < args[0].n; i++)
                n_escaped += args[0].as.text[i] == '/' || args[0].as.text[i] == '~';
        if (n_escaped == 0)
                return args[0];
        at = text = hf__cel_alloc(run, args[0].n + n_escaped + 1);
        if (!text)
                return hf__cel_failure(run);
        for (size_t i = 0; i < args[0].n; i++) {
                char c = args[0].as.text[i];

                *at++ = c == '/' ? '~' : c;
                if (c == '/' || c == '~')
                        *at++ = c == '/' ? '1' : '0';
        }
        return hf__cel_string(text, (size_t)(at - text));
}

const struct hf__cel_row hfd_json_patch_functions[] = {
        {"jsonpatch.escapeKey", "(string) -> string", escape_key, HF__CEL_COST_FIRST},
        {NULL, NULL, NULL, HF__CEL_COST_ONE},
};
