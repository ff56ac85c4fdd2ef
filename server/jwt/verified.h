/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Remembers the tokens whose signatures a set of keys has verified. A client sends the same token
 * with every request, and its verification would take most of the time of a small request. Only the
 * SHA-256 of each token is kept. The claims are not kept: every request checks them anew.
 *
 * Wrong tokens are not remembered. To remember them would save nothing, because an attacker changes
 * one character for each request. And OpenSSL reports a lack of memory like a wrong signature, so a
 * right token could be remembered as a wrong one.
 *
 * Thread: any. Lock: a mutex guards the digests, for a few comparisons.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many tokens are kept at most. A new one may replace an old one before that (verified.c). */
#define HFD_JWT_VERIFIED_MAX 1024

struct hfd_jwt_verified;

struct hfd_jwt_digest {
        unsigned char bytes[32];
};

/* NULL: out of memory. */
struct hfd_jwt_verified *hfd_jwt_verified_new(void);
/* Accepts NULL, returns NULL. */
struct hfd_jwt_verified *hfd_jwt_verified_free(struct hfd_jwt_verified *verified);

/* The digest of n bytes. False: OpenSSL failed. */
bool hfd_jwt_digest(const char *token, size_t n, struct hfd_jwt_digest *ret_digest);
bool hfd_jwt_verified_has(struct hfd_jwt_verified *verified, const struct hfd_jwt_digest *digest);
void hfd_jwt_verified_add(struct hfd_jwt_verified *verified, const struct hfd_jwt_digest *digest);
/* How many digests were ever added; it counts also those that others have replaced. */
uint64_t hfd_jwt_verified_added(struct hfd_jwt_verified *verified);
