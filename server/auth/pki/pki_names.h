/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The alternative names of a certificate request. Private to server/auth/pki/. A function may leave
 * entries in OpenSSL's error queue, which its caller empties. Threads: any, no lock.
 */
#include <stdbool.h>

#include <openssl/x509.h>

/* Why Go's library would not read the extensions of the request or its names; "" = it reads them.
 * Static storage. Without memory the result is any of these, and the error queue says so. */
const char *hfd_pki_names_fault(const X509_REQ *request);
/* Copies the names of the kinds that Kubernetes copies. False: OpenSSL failed, or the request has a
 * fault. */
bool hfd_pki_names_copy(X509 *cert, const X509_REQ *request);
