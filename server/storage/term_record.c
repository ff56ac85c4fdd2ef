/* SPDX-License-Identifier: Apache-2.0 */
#include "server/storage/term_record.h"

#include <stdio.h>
#include <string.h>

#include "server/storage/keys.h"

struct hf__buf *hfd_term_record_value(const char *holder, const char *acquire_time) {
        size_t n_holder, n_time;
        struct hf__buf *value;

        if (!holder)
                holder = "";
        if (!acquire_time || !*acquire_time)
                acquire_time = "-";
        n_holder = strlen(holder);
        n_time = strlen(acquire_time);
        value = hf__buf_new(n_holder + 1 + n_time);
        if (!value)
                return NULL;
        memcpy(value->data, holder, n_holder);
        value->data[n_holder] = '\n';
        memcpy(value->data + n_holder + 1, acquire_time, n_time);
        for (size_t i = 0; i < value->n; i++)
                if (value->data[i] == '\n' && i != n_holder)
                        value->data[i] = ' ';
        return value;
}

int hfd_fence_compares(struct hfd_fence_compares *out, const char *prefix, const struct hf_fence *fence) {
        int n, r;

        r = hfd_key_terms(out->key, prefix, fence->ns, fence->name);
        if (r)
                return r;
        n = snprintf(out->value, sizeof(out->value), "%s\n", fence->identity);
        if (n < 0 || (size_t)n >= sizeof(out->value))
                return HF_E_TOO_LARGE;
        out->compares[0] = (struct hfd_compare){.kind = HFD_MOD_EQUALS, .key = out->key, .revision = fence->term};
        out->compares[1] = (struct hfd_compare){.kind = HFD_VALUE_BEGINS, .key = out->key, .value = out->value, .n_value = (size_t)n};
        return 0;
}
