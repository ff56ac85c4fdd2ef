/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The certificates that the server uses: those given by flags (--tls-cert-file,
 * --tls-private-key-file, --client-ca-file), and otherwise generated ones in --cert-dir.
 */
#include <holdfast/error.h>

struct hfd_server;

/*
 * Reads the files and replaces server->pki, server_cert_pem, server_key_pem and client_ca_pem. On
 * an error nothing changes. Generates certificates that are missing, and again those that expire
 * soon. Blocks on files, and up to 30 s on the lock of --cert-dir, or until the stop token fires.
 * 0, -errno, HF_E_CANCELED, or another error of hfd_pki_load_or_make or hfd_read_file; the message
 * names the file or directory, except when memory runs out. Thread: main before the sequence thread
 * starts, later the reload's thread only.
 */
int hfd_certificates_read(struct hfd_server *server, struct hf_status *reterr_status);
/* Frees what hfd_certificates_read has set. Accepts a server without certificates. */
void hfd_certificates_done(struct hfd_server *server);
