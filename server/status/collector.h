/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Fills a status model over the network: the Leases from one API server, and the state of each
 * instance from that instance's own /debug/leader.
 *
 * Credentials. Every client that may write Leases chooses the endpoints of the instances, so an
 * instance is asked only over https with verification, and a bearer token is sent to a verified
 * server only. A client certificate proves who asks, and the server that receives it cannot use it.
 *
 * Thread: owner only, except for the callback of hfd_status_collector_watch.
 */
#include <stdbool.h>

#include <holdfast/cancel.h>
#include <holdfast/error.h>
#include <holdfast/host.h>

struct hfd_status_collector;
struct hfd_status_model;

/* Reads the kubeconfig file at that path and prepares a client for its server; nothing is sent
 * yet. HF_E_INVALID, HF_E_NOT_FOUND, -errno, all with a message. host is borrowed. */
int hfd_status_collector_new(const struct hf_host *host, const char *kubeconfig,
                             struct hfd_status_collector **ret_collector,
                             struct hf_status *reterr_status);

/* Accepts NULL, returns NULL. Ends the watch: once this has returned, its callback is not called
 * any more. */
struct hfd_status_collector *hfd_status_collector_free(struct hfd_status_collector *collector);

/*
 * Reads the Leases into the model. If the server does not respond, this tries the instances that
 * the model knows, so that a live view survives the instance it was reading from. Blocks until the
 * list is there, the request times out (3 s for each server) or token fires. Errors as
 * hf_client_do, with a message; the model is unchanged then.
 */
int hfd_status_collector_read_leases(struct hfd_status_collector *collector,
                                     struct hf_cancel *token, struct hfd_status_model *model,
                                     struct hf_status *reterr_status);

/*
 * Asks all instances of the model in parallel and stores what they respond. Blocks for at most 2 s.
 * An instance that does not respond is skipped for a few rounds, so that a live view does not wait
 * for it every second.
 */
void hfd_status_collector_ask_instances(struct hfd_status_collector *collector,
                                        struct hfd_status_model *model);

/* Whether the server that the Leases are read from does not respond as an instance. Then a watch of
 * it may look open and deliver nothing, so the Leases have to be read again. */
bool hfd_status_collector_is_silent(const struct hfd_status_collector *collector,
                                    const struct hfd_status_model *model);

/*
 * Opens a watch of the Leases at the model's resourceVersion, unless one is open. changed is called
 * when a Lease changed and when the watch has ended or could not be opened. Thread of the callback:
 * any; it must not block.
 */
void hfd_status_collector_watch(struct hfd_status_collector *collector,
                                const struct hfd_status_model *model, void (*changed)(void *ctx),
                                void *ctx);
