/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 for libholdfast, which does not link OpenSSL: the bootstrap ledger records the hash of
 * each manifest. holdfastd uses this function too for most plain hashes, for example in ETags. For
 * signatures and encryption it uses OpenSSL, and also for the digest by which it finds a token that
 * it has verified before (server/jwt/verified.c).
 *
 * Invariant: the result is SHA-256 (FIPS 180-4). The ledger ConfigMap, the names of Events and the
 * key ids of tokens contain the hash or a part of it, so no other hash function can replace it.
 */
#include "base/sha256.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* FIPS 180-4, section 4.2.2: the first 32 bits of the fractional parts of the cube roots of the
 * first 64 primes. */
static const uint32_t constants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2,
};

static uint32_t rotate_right(uint32_t x, unsigned n) { return x >> n | x << (32 - n); }

/* Section 6.2.2: updates the hash with one block of 64 bytes. */
static void hash_block(uint32_t hash[8], const uint8_t *block) {
        uint32_t w[64], v[8];

        for (unsigned t = 0; t < 16; t++)
                w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
                       (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
        for (unsigned t = 16; t < 64; t++) {
                uint32_t s0 =
                        rotate_right(w[t - 15], 7) ^ rotate_right(w[t - 15], 18) ^ w[t - 15] >> 3;
                uint32_t s1 =
                        rotate_right(w[t - 2], 17) ^ rotate_right(w[t - 2], 19) ^ w[t - 2] >> 10;
                w[t] = w[t - 16] + s0 + w[t - 7] + s1;
        }
        memcpy(v, hash, sizeof v);
        for (unsigned t = 0; t < 64; t++) {
                uint32_t choose = (v[4] & v[5]) ^ (~v[4] & v[6]),
                         majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
                uint32_t t1 =
                        v[7] +
                        (rotate_right(v[4], 6) ^ rotate_right(v[4], 11) ^ rotate_right(v[4], 25)) +
                        choose + constants[t] + w[t];
                uint32_t t2 =
                        (rotate_right(v[0], 2) ^ rotate_right(v[0], 13) ^ rotate_right(v[0], 22)) +
                        majority;
                memmove(&v[1], &v[0], 7 * sizeof v[0]);
                v[4] += t1;
                v[0] = t1 + t2;
        }
        for (unsigned i = 0; i < 8; i++)
                hash[i] += v[i];
}

void hf__sha256(const void *data, size_t n, uint8_t ret_digest[32]) {
        uint32_t hash[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
        const uint8_t *bytes = data;
        uint8_t last[128] = {0};
        size_t whole = n / 64 * 64, rest = n - whole, n_last = rest < 56 ? 64 : 128;

        for (size_t at = 0; at < whole; at += 64)
                hash_block(hash, bytes + at);
        /* Section 5.1.1: the padding is a one bit, zeros, and the length in bits in the last eight
         * bytes. */
        if (rest > 0)
                memcpy(last, bytes + whole, rest);
        last[rest] = 0x80;
        for (unsigned i = 0; i < 8; i++)
                last[n_last - 1 - i] = (uint8_t)((uint64_t)n * 8 >> 8 * i);
        for (size_t at = 0; at < n_last; at += 64)
                hash_block(hash, last + at);
        for (unsigned i = 0; i < 32; i++)
                ret_digest[i] = (uint8_t)(hash[i / 4] >> (24 - 8 * (i % 4)));
}

void hf__sha256_text(const void *data, size_t n, size_t n_digits, char *text) {
        uint8_t digest[32];

        assert(n_digits % 2 == 0 && n_digits <= 2 * sizeof digest);
        hf__sha256(data, n, digest);
        for (size_t i = 0; i < n_digits / 2; i++)
                (void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
}
