/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Fills a status model over the network: the Leases from one API server, and the state of each
 * instance from that instance's own /debug/leader.
 *
 * Credentials. The endpoints of the instances come from Leases, so any client that may write Leases
 * in kube-system can make this process connect to a server which that client controls. An instance
 * is therefore queried only over https and only if its certificate verifies. An instance gets the
 * bearer token only if the kubeconfig names a CA, which must have issued the instance's
 * certificate. If the kubeconfig names none, the system's CAs verify certificates. Nearly anyone
 * can get a certificate of such a CA, so then only the servers that the kubeconfig names get the
 * token. A client certificate may be presented to any server, because a server cannot use it
 * without its key. If the kubeconfig has neither a CA nor a client certificate, no instance is
 * queried.
 *
 * Thread: one thread calls all functions. Only the callback of hfd_status_collector_watch runs on
 * others.
 */
#include <stdbool.h>

#include <holdfast/cancel.h>
#include <holdfast/error.h>
#include <holdfast/host.h>

struct hfd_status_collector;
struct hfd_status_model;

/* Reads the kubeconfig file at the path `kubeconfig` and prepares a client for its server; sends
 * nothing yet. Blocks on the file. Errors: those of hf__kubeconfig_load (-ENOENT: there is no
 * such file), HF_E_INVALID, or -errno, all with a message. host is borrowed until the collector is
 * freed. */
int hfd_status_collector_new(const struct hf_host *host, const char *kubeconfig,
                             struct hfd_status_collector **ret_collector,
                             struct hf_status *reterr_status);

/* Accepts NULL, returns NULL. Ends the watch; its callback is not called after this returns. */
struct hfd_status_collector *hfd_status_collector_free(struct hfd_status_collector *collector);

/*
 * Reads the Leases into the model. If the server does not respond, this function tries those
 * instances in the model that have responded to their last query, or, while the model has no
 * instances, the further servers of the kubeconfig. So the live mode continues after the server
 * that it used has died. Blocks until the list has been received, the requests time out (3 s for
 * each server) or the token fires. Fails like hf_client_do, or like hfd_status_model_set_leases,
 * with a message, and then leaves the model unchanged.
 */
int hfd_status_collector_read_leases(struct hfd_status_collector *collector,
                                     struct hf_cancel *token, struct hfd_status_model *model,
                                     struct hf_status *reterr_status);

/*
 * Queries the instances of the model in parallel, as far as the credentials allow (the opening of
 * this file), and stores their responses. Blocks for about 2 s at most. The next four calls skip an
 * instance that has not responded, so that the live mode does not wait for it every second.
 */
void hfd_status_collector_query_instances(struct hfd_status_collector *collector,
                                          struct hfd_status_model *model);

/* Whether the server that the Leases are read from is an instance of the model, and that instance
 * is in the state "unreachable". A watch on that server may then look open but deliver nothing, so
 * the caller must read the Leases again. */
bool hfd_status_collector_is_server_unreachable(const struct hfd_status_collector *collector,
                                                const struct hfd_status_model *model);

/*
 * Opens a watch of the Leases at the model's resourceVersion, unless one is open. Calls `changed`
 * when a Lease other than the heartbeat of a node has changed, when the watch has ended, and when
 * the watch could not be opened: then before this function returns. The callback runs on any thread
 * and must not block. It is not called after hfd_status_collector_free.
 */
void hfd_status_collector_watch(struct hfd_status_collector *collector,
                                const struct hfd_status_model *model, void (*changed)(void *ctx),
                                void *ctx);
