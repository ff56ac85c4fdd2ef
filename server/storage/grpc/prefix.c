/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes and decodes gRPC's message prefix. The length in it is big-endian.
 *
 * Invariant: a compressed message is refused. The client offers no compression, so a server that
 * sends one is broken.
 */
#include "server/storage/grpc/prefix.h"

#include <errno.h>

void hfd_grpc_prefix_write(void *prefix, uint32_t n) {
        unsigned char *p = prefix;

        p[0] = 0; /* not compressed */
        for (int i = 0; i < 4; i++)
                p[1 + i] = (unsigned char)(n >> (24 - 8 * i) & 0xff);
}

int hfd_grpc_prefix_read(const void *prefix, uint32_t *ret_n) {
        const unsigned char *p = prefix;

        if (p[0] != 0)
                return -EPROTO;
        *ret_n = (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
        return 0;
}
