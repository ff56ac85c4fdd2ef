/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads certificates and private keys from PEM text with OpenSSL, for the TLS of both sides and for
 * the certificates that Holdfast creates.
 *
 * A key with a passphrase is refused. Every text may be NULL, which is refused too.
 *
 * After a failure OpenSSL's error queue, which belongs to the thread, has the reason if OpenSSL
 * gives one: the caller reports it and empties the queue. After a success the queue is empty.
 *
 * Threads: any. A context that is filled here must not be in use yet.
 */
#include <stdbool.h>

#include <openssl/ssl.h>

/* The first certificate, or the first private key, in the text. The caller frees it. NULL: there is
 * none, it is malformed, or memory has run out. */
X509 *hfd_pem_read_cert(const char *pem);
EVP_PKEY *hfd_pem_read_key(const char *pem);

/* Writes the certificates of the text to out, and nothing else of it: the text may have a key, too.
 * What is malformed and what follows it is left out. False: there is no certificate before that, or
 * memory has run out. */
bool hfd_pem_write_certs(const char *pem, BIO *out);

/* Uses the first certificate as that of ctx, and the others as the chain that is sent with it.
 * False also if one after the first is malformed. */
bool hfd_pem_use_chain(SSL_CTX *ctx, const char *pem);
/* Uses the first key as that of ctx. */
bool hfd_pem_use_key(SSL_CTX *ctx, const char *pem);
/* Makes ctx trust all certificates in the text, each by itself, as Go does: also one that another
 * CA has issued. False also if there is none, or if one of them is malformed. announce: a server
 * also sends their names to clients, so that these can choose a certificate. */
bool hfd_pem_trust(SSL_CTX *ctx, const char *pem, bool announce);
