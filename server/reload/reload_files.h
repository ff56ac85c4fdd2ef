/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The work of a reload (reload.h). ctx is the struct hfd_server. Thread: the reload's. Both
 * functions block on files, and log their failures.
 */

/* Reads certificates, tokens, keys and the audit policy again, and makes the audit log be opened
 * again. If a file cannot be read or is invalid, what was read from it before stays in use. Logs
 * each success too. Also blocks on the lock of --cert-dir (certificates.h) and on the store
 * (object_encryption.h). */
void hfd_reload_files(void *ctx);
/* Writes a kubeconfig that names the other instances, unless the present one already names them. */
void hfd_reload_kubeconfig(void *ctx);
