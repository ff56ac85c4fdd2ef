/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The addresses from which a request comes, as kube-apiserver's audit log has them. Pure. Thread:
 * owner of out. */

struct hf__strbuf;

/*
 * Appends a JSON array of addresses: the first 30 of X-Forwarded-For, that of X-Real-Ip unless it
 * is among them, and that of the connection unless it is the last one so far. Nothing is appended
 * if there are no addresses. forwarded and real are the headers, or NULL; remote is
 * "127.0.0.1:40112", "[::1]:40112", or not an address.
 */
void hfd_audit_source_ips(const char *forwarded, const char *real, const char *remote,
                          struct hf__strbuf *out);
