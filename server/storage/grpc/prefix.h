/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The five bytes before each gRPC message: a flag that says whether it is compressed, and its
 * length. Pure. Thread: any.
 */
#include <stddef.h>
#include <stdint.h>

#define HFD_GRPC_PREFIX 5 /* bytes */

/* Writes the prefix of an uncompressed message of n bytes. */
void hfd_grpc_prefix_write(void *prefix, uint32_t n);
/* Reads a prefix. 0, or -EPROTO: the message is compressed, although no request allows that. */
int hfd_grpc_prefix_read(const void *prefix, uint32_t *ret_n);
