/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a body (request_body.h). It doubles when it is full, so a sender of n bytes makes
 * the server reserve at most about 2 * n (or SPACE_MIN), of which a mapping uses only what was
 * written.
 *
 * Invariant: a body that was added to is followed by a NUL within its memory, and `space` alone
 * says where the memory comes from.
 */
#include "server/http/request/request_body.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <holdfast/error.h>

#define SPACE_MIN 512 /* bytes */

static bool is_mapped(const struct hfd_request_body *body) {
        return body->space >= HFD_REQUEST_BODY_MAPPED;
}

static void *new_mapping(size_t space) {
        void *memory =
                mmap(NULL, space, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return memory == MAP_FAILED ? NULL : memory;
}

/* From malloc's memory to a mapping. At most half of HFD_REQUEST_BODY_MAPPED is copied. NULL = out
 * of memory. */
static void *move_to_mapping(struct hfd_request_body *body, size_t space) {
        char *mapping = new_mapping(space);

        assert(!is_mapped(body));
        if (!mapping)
                return NULL;
        if (body->n > 0)
                memcpy(mapping, body->data, body->n);
        free(body->data);
        return mapping;
}

/* 0 or -ENOMEM. */
static int grow_body(struct hfd_request_body *body, size_t space) {
        void *memory;

        assert(space > body->space);
        if (is_mapped(body)) {
                memory = mremap(body->data, body->space, space, MREMAP_MAYMOVE);
                if (memory == MAP_FAILED)
                        return -ENOMEM;
        } else {
                memory = space >= HFD_REQUEST_BODY_MAPPED ? move_to_mapping(body, space)
                                                          : realloc(body->data, space);
                if (!memory)
                        return -ENOMEM;
        }
        body->data = memory;
        body->space = space;
        return 0;
}

int hfd_request_body_add(struct hfd_request_body *body, const void *data, size_t n, size_t max) {
        size_t space = body->space > 0 ? body->space : SPACE_MIN;

        if (n > max || body->n > max - n)
                return HF_E_TOO_LARGE;
        assert(body->n + n < SIZE_MAX / 2);
        while (space < body->n + n + 1)
                space *= 2;
        if (space > body->space) {
                int r = grow_body(body, space);
                if (r != 0)
                        return r;
        }
        memcpy(body->data + body->n, data, n);
        body->n += n;
        body->data[body->n] = '\0';
        return 0;
}

void hfd_request_body_done(struct hfd_request_body *body) {
        if (is_mapped(body))
                (void)munmap(body->data, body->space);
        else
                free(body->data);
        *body = (struct hfd_request_body){0};
}
