/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The texts of IP addresses, as Go's net/netip reads them. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

struct hf__cel_address {
        unsigned n_bytes; /* 4 or 16 */
        unsigned char bytes[16];
        bool has_zone; /* "fe80::1%eth0" */
};

#define HF__CEL_ADDRESS_WHY_MAX 500 /* bytes of a message, with the NUL */

/* Reads the n bytes of text. False: it is no address, and reterr_why has Go's message, in which
 * long texts are cut. */
bool hf__cel_address_read(const char *text, size_t n, struct hf__cel_address *ret_address,
                          char reterr_why[HF__CEL_ADDRESS_WHY_MAX]);
