/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Admission for creates of objects that are not stored: reviews of rights and tokens, and requests
 * for tokens. Thread: owner of the request. Never blocks.
 */
#include "server/registry/base/admit.h"

/* Whether admission is asked about the create. As hfd_admit_request, but SKIP also if no plug-in
 * wants it. */
enum hfd_admit hfd_unstored_is_asked(const struct hfd_registry *registry,
                                     const struct hfd_request *request,
                                     struct hfd_response *response);
/*
 * Asks admission. object: decoded; owned by this function. done is called once, perhaps before this
 * returns, on any thread: with the object, which it then owns and which plug-ins may have changed;
 * or with object NULL and the refusal, which is borrowed. The request's notes are filled.
 */
void hfd_unstored_admit(struct hfd_registry *registry, struct hfd_request *request,
                        struct hf__json *object,
                        void (*done)(struct hfd_request *request, struct hf__json *object,
                                     const struct hfd_response *refusal));
