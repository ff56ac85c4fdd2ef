/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The certificates of the server for its controllers: implements
 * server/controllers/base/cluster_ca.h.
 *
 * Lock: a mutex guards the CA that is published, and the key of a CA that is in memory only. No
 * callback or I/O happens under it.
 */
#include "server/config/config.h"
#include "server/controllers/base/cluster_ca.h"

struct hfd_cluster_ca;
struct hfd_pki;

/* config is borrowed. NULL: out of memory, or no mutex. */
struct hfd_cluster_ca *hfd_cluster_ca_new(const struct hfd_config *config);
/* Requires that no controller runs any more. Accepts NULL, returns NULL. */
struct hfd_cluster_ca *hfd_cluster_ca_free(struct hfd_cluster_ca *ca);

/*
 * Publishes the CA by which clients recognise this server. own: the CA and the certificates in
 * --cert-dir, or those in memory if there is no such directory. serving: the certificate that this
 * server sends to clients, and its chain; client_ca: the CA of the clients' certificates; both PEM.
 * Each text has a certificate; only certificates are published, also if the text has a key. Copies
 * what it keeps. 0, or -ENOMEM: the previous CA stays published. Thread: any.
 */
int hfd_cluster_ca_publish(struct hfd_cluster_ca *ca, const struct hfd_pki *own,
                           const char *serving, const char *client_ca);

/* The functions for the controllers; they use ca, which must outlive the controllers. */
struct hfd_cluster_ca_functions hfd_cluster_ca_functions(struct hfd_cluster_ca *ca);
