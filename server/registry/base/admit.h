/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The attributes and options of a request, for admission (server/admission). Shared by the writes
 * of objects (write/admit.h), of subresources whose bodies are of another kind (parts/) and of
 * objects that are not stored (unstored.h). Thread: owner of the request. Nothing here blocks.
 */
#include "server/admission/admission.h"
#include "server/registry/base/registry_state.h"
#include "server/registry/base/request.h"

/*
 * Whether admission is asked about a request. SKIP: it is not. REFUSE: the configuration of
 * admission is not known yet, and response is a 503.
 *
 * Of the requests from inside the process, only those of the elector and of the bootstrap always
 * skip admission. So no leader loses its Lease because a webhook hangs or refuses everything. The
 * others, and writes of Leases, are never refused here: elections do not wait for the cache. A
 * plug-in wants none of them until its configuration is known. Plug-ins in C have none, so they are
 * asked from the first request on.
 */
enum hfd_admit { HFD_ADMIT_ASK, HFD_ADMIT_SKIP, HFD_ADMIT_REFUSE };
enum hfd_admit hfd_admit_request(const struct hfd_registry *registry,
                                 const struct hfd_request *request, struct hfd_response *response);

/*
 * The attributes of a request. name: of the object; "" = not known yet, or the delete is a step of
 * a deletecollection. old: the stored object; NULL = none. The attributes borrow from all
 * arguments, which must live as long as they do.
 */
struct hfd_admission_attributes hfd_admit_attributes(const struct hfd_request *request,
                                                     enum hfd_admission_operation operation,
                                                     const char *name, const struct hf__json *old);
/*
 * Returns the options of the request as an object, which the caller owns; NULL = out of memory. A
 * patch has CreateOptions or UpdateOptions, as in Kubernetes. body: of a delete, its DeleteOptions;
 * NULL = none.
 */
struct hf__json *hfd_admit_options(const struct hfd_request *request,
                                   enum hfd_admission_operation operation,
                                   const struct hf__json *body);
/* Gives the request the time that it may take with webhooks (request.h). */
void hfd_admit_extend_deadline(struct hfd_request *request);
