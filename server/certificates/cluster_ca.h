/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The certificates of the server for its controllers: implements
 * server/controllers/base/cluster_ca.h.
 *
 * Lock: a mutex guards the CA that is published. No callback or I/O happens under it.
 */
#include "server/config/config.h"
#include "server/controllers/base/cluster_ca.h"

struct hfd_cluster_ca;

/* config is borrowed. NULL: out of memory. */
struct hfd_cluster_ca *hfd_cluster_ca_new(const struct hfd_config *config);
/* No controller may run any more. Accepts NULL, returns NULL. */
struct hfd_cluster_ca *hfd_cluster_ca_free(struct hfd_cluster_ca *ca);

/*
 * Publishes the CA by which clients recognise this server. own_ca: the CA of --cert-dir, serving:
 * the certificates that are sent to clients, client_ca: the CA of clients; PEM. 0, or -ENOMEM: what
 * was published before stays. Thread: any.
 */
int hfd_cluster_ca_publish(struct hfd_cluster_ca *ca, const char *own_ca, const char *serving,
                           const char *client_ca);

struct hfd_cluster_ca_functions hfd_cluster_ca_functions(struct hfd_cluster_ca *ca);
