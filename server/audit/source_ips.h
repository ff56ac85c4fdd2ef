/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where a request comes from, as kube-apiserver's audit log has it. Pure. */

struct hf__strbuf;

/*
 * Appends a JSON array of addresses: those of X-Forwarded-For, that of X-Real-Ip, and that of the
 * connection, each unless it is a repetition. Nothing is appended if there is none. forwarded and
 * real may be NULL; remote is "127.0.0.1:40112", "[::1]:40112", or not an address.
 */
void hfd_audit_source_ips(const char *forwarded, const char *real, const char *remote,
                          struct hf__strbuf *out);
