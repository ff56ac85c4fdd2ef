/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds term records and the compares of fences; term_record.h describes both.
 *
 * Invariant: the value of a record is an on-disk format. Instances of different versions share a
 * store, so the format must not change.
 */
#include "server/storage/term_record.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "server/storage/keys.h"

struct hf__buf *hfd_term_record_value(const char *holder, const char *acquire_time) {
        size_t n_holder, n_time;
        struct hf__buf *value;

        if (!holder)
                holder = "";
        if (!acquire_time || *acquire_time == 0)
                acquire_time = "-";
        n_holder = strlen(holder);
        n_time = strlen(acquire_time);
        value = hf__buf_new(n_holder + 1 + n_time);
        if (!value)
                return NULL;
        memcpy(value->data, holder, n_holder);
        value->data[n_holder] = '\n';
        memcpy(value->data + n_holder + 1, acquire_time, n_time);
        /* A client chooses the identity. A newline in it must not look like the separator. */
        for (size_t i = 0; i < value->n; i++)
                if (value->data[i] == '\n' && i != n_holder)
                        value->data[i] = ' ';
        return value;
}

static int add_lease(struct hfd_fence_compares *out, const char *prefix, const char *ns,
                     const char *name, uint64_t term) {
        char *key = out->key[out->n_leases];
        struct hfd_compare *compares = &out->compares[2 * out->n_leases];
        int r;

        assert(out->n_leases < HFD_FENCE_LEASES);
        r = hfd_key_term_record(key, prefix, ns, name);
        if (r != 0)
                return r;
        compares[0] = (struct hfd_compare){.kind = HFD_MOD_EQUALS, .key = key, .revision = term};
        compares[1] = (struct hfd_compare){.kind = HFD_VALUE_BEGINS,
                                           .key = key,
                                           .value = out->value,
                                           .n_value = strlen(out->value)};
        out->n_leases++;
        return 0;
}

int hfd_fence_compares(struct hfd_fence_compares *out, const char *prefix,
                       const struct hf_fence *fence) {
        /* The newline ends the identity, so that it does not match a longer one. */
        int n = snprintf(out->value, sizeof out->value, "%s\n", fence->identity);
        int r;

        if (n < 0 || (size_t)n >= sizeof out->value)
                return HF_E_TOO_LARGE;
        out->n_leases = 0;
        r = add_lease(out, prefix, fence->ns, fence->name, fence->term);
        if (r != 0 || fence->also_term == 0)
                return r;
        return add_lease(out, prefix, fence->also_ns, fence->also_name, fence->also_term);
}
