/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The alternative names of a certificate request. Private to server/auth/pki/. A function may leave
 * entries in OpenSSL's error queue, which its caller empties. Threads: any, no lock.
 */
#include <stdbool.h>

#include <openssl/x509.h>

/* Why Go's library would not read the extensions of the request or its names; "" = it reads them,
 * except perhaps a URI, of which only the characters are checked. Two attributes that request
 * extensions are a fault here, although Go accepts them if no extension occurs twice. Static
 * storage. If memory runs out, the result may be "" or any fault, and OpenSSL's error queue has an
 * entry that says so. */
const char *hfd_pki_names_fault(const X509_REQ *request);
/* Copies the names of the request to cert: DNS names, IP addresses, email addresses and URIs, as
 * Kubernetes does. If there are none, cert gets no extension for alternative names. False: OpenSSL
 * failed, or the extensions or names cannot be read. Only hfd_pki_names_fault looks for faults of a
 * single name. */
bool hfd_pki_names_copy(X509 *cert, const X509_REQ *request);
