/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The certificates that the server uses: those given by flags (--tls-cert-file,
 * --tls-private-key-file, --client-ca-file), and otherwise generated ones, in --cert-dir or, with
 * --storage=memory, in memory.
 */
#include <holdfast/error.h>

struct hfd_server;

/*
 * Reads the files and replaces server->pki, server_cert_pem, server_key_pem and client_ca_pem, and
 * what server->http uses, if it exists already. On an error the server keeps what it has, but if
 * memory has run out, server->http may use the new set already. Generates certificates that are
 * missing and, in --cert-dir, renews those that need it (pki.h). Blocks on files, and up to 30 s on
 * the lock of --cert-dir, or until the stop token fires. 0, -errno, HF_E_CANCELED, or another error
 * of hfd_pki_load_or_make or hfd_flag_read_pem. The message names the file, where there is one,
 * except when memory runs out. It also names the flag, if the user must correct something
 * (hfd_flag_is_mistake). Thread: that of hfd_assembly_make, before the sequence thread
 * (main/sequence.c) starts; later the reload's thread only.
 */
int hfd_certificates_read(struct hfd_server *server, struct hf_status *reterr_status);
/* Reads the keys of the tokens of service accounts, and makes server->service_accounts use them. On
 * an error nothing changes. Needs what hfd_certificates_read has read. Errors of
 * hfd_account_keys_read. Blocks on files. Thread: as hfd_certificates_read. */
int hfd_certificates_read_account_keys(struct hfd_server *server, struct hf_status *reterr_status);
/* Writes the administrator's kubeconfig (--write-kubeconfig), which contains the CA, the admin
 * certificate, and the other instances of this CA that are known. 0, or an error of
 * hfd_admin_kubeconfig_write, whose message names the file or its directory.
 * server->identity.endpoint must be set.
 * Thread: the one that boots, later the reload's. */
int hfd_certificates_write_kubeconfig(struct hfd_server *server, struct hf_status *reterr_status);
/* The same, unless the last attempt succeeded and the file already names the other instances that
 * are known now. */
int hfd_certificates_update_kubeconfig(struct hfd_server *server, struct hf_status *reterr_status);
/* Frees what hfd_certificates_read has set. Accepts a server without certificates. */
void hfd_certificates_done(struct hfd_server *server);
