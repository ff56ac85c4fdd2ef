/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The texts of OpenSSL's errors. OpenSSL loads all of them when it is initialized. That takes 60 KB
 * of heap, and touches 190 KB of library pages that are mostly not used otherwise. A server needs
 * the texts only to report a failure.
 *
 * Thread: any.
 */

/* Initializes OpenSSL without the texts. Call it before anything else uses OpenSSL; afterwards it
 * has no effect, because the texts are loaded. */
void hfd_tls_reasons_defer(void);
/* Loads the texts if they were deferred. Call it before code that asks OpenSSL for texts itself,
 * such as libcurl. */
void hfd_tls_reasons_load(void);
/* The text of an error of OpenSSL's queue. Static. NULL: there is none, or code is 0. */
const char *hfd_tls_reason(unsigned long code);
