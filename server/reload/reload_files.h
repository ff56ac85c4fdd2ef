/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The work of a reload (reload.h). ctx is the struct hfd_server. Thread: the reload's. Both
 * functions block on files, and log what they have done or why they could not.
 */

/* Reads certificates, tokens, keys and the audit policy again. If a file cannot be read or is
 * invalid, what was read from it before stays in use. */
void hfd_reload_files(void *ctx);
/* Writes a kubeconfig that names the other instances. */
void hfd_reload_kubeconfig(void *ctx);
