/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Admission for creates of objects that are not stored: SubjectAccessReviews and their like,
 * TokenReviews, and TokenRequests. Thread: owner of the request. Never blocks.
 */
#include "server/registry/base/admit.h"

/* Whether admission is asked about the create. As hfd_admit_request, but SKIP also if no plug-in
 * wants it. */
enum hfd_admit hfd_unstored_is_asked(const struct hfd_registry *registry,
                                     const struct hfd_request *request,
                                     struct hfd_response *response);
/*
 * Asks admission; call it only if hfd_unstored_is_asked has returned ASK. object: the parsed body;
 * this function takes ownership of it. done is called once, perhaps before this function returns,
 * on any thread. Either it gets the object, which plug-ins may have changed and which done then
 * owns; or object is NULL, and it gets the refusal, which is borrowed. Warnings and audit
 * annotations are added to the request's notes.
 */
void hfd_unstored_admit(struct hfd_registry *registry, struct hfd_request *request,
                        struct hf__json *object,
                        void (*done)(struct hfd_request *request, struct hf__json *object,
                                     const struct hfd_response *refusal));
