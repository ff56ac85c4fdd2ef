/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and fills structs of callers that were compiled with another release.
 *
 * Invariant: nothing beyond the first `size` bytes of the caller's struct is read or written,
 * because the caller's struct may be smaller than ours.
 */
#include "base/sized_struct.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* The size of the struct, its first member. It is copied, because `at` may have any type. */
static size_t size_of(const void *at) {
        size_t size;

        memcpy(&size, at, sizeof size);
        return size;
}

static int check_size(const struct hf__sized *type, const void *at,
                      struct hf_status *reterr_status) {
        assert(type->min >= sizeof(size_t) && type->min <= type->n && type->n <= HF__SIZED_MAX);
        if (!at)
                return hf_fail(reterr_status, -EINVAL, "%s is missing", type->name);
        size_t size = size_of(at);
        if (size >= type->min && size <= HF__SIZED_MAX)
                return 0;
        return hf_fail(reterr_status, -EINVAL,
                       "the member size of %s is %zu; set it to sizeof(%s), which is %zu in this "
                       "library and has always been at least %zu",
                       type->name, size, type->name, type->n, type->min);
}

int hf__sized_check(const struct hf__sized *type, const void *from,
                    struct hf_status *reterr_status) {
        const unsigned char *bytes = from;
        int r = check_size(type, from, reterr_status);

        if (r != 0)
                return r;
        for (size_t i = type->n; i < size_of(from); i++)
                if (bytes[i] != 0)
                        return hf_fail(reterr_status, -EINVAL,
                                       "%s sets a member that this library does not know: its size "
                                       "is %zu here, and %zu in the program",
                                       type->name, type->n, size_of(from));
        return 0;
}

int hf__sized_copy(const struct hf__sized *type, void *to, const void *from,
                   struct hf_status *reterr_status) {
        int r = hf__sized_check(type, from, reterr_status);

        if (r != 0)
                return r;
        size_t size = size_of(from);
        memset(to, 0, type->n);
        memcpy(to, from, size < type->n ? size : type->n);
        memcpy(to, &type->n, sizeof type->n);
        return 0;
}

/* The distance between two elements is the size that the program knows, not ours. */
int hf__sized_copy_at(const struct hf__sized *type, void *to, const void *first, size_t i,
                      struct hf_status *reterr_status) {
        const char *bytes = first;

        if (i == 0)
                return hf__sized_copy(type, to, first, reterr_status);
        const void *from = bytes + i * size_of(first);
        if (size_of(from) != size_of(first))
                return hf_fail(reterr_status, -EINVAL,
                               "the member size of %s number %zu is %zu, and that of the first "
                               "one is %zu",
                               type->name, i, size_of(from), size_of(first));
        return hf__sized_copy(type, to, from, reterr_status);
}

int hf__sized_fill(const struct hf__sized *type, void *to, const void *from) {
        int r = check_size(type, to, NULL);

        if (r != 0)
                return r;
        size_t size = size_of(to);
        memset(to, 0, size);
        memcpy(to, from, size < type->n ? size : type->n);
        memcpy(to, &size, sizeof size);
        return 0;
}
