/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The controller of the conditions of CustomResourceDefinitions: which names are accepted, and
 * whether the objects are served. Runs on the leader.
 */
#include <holdfast/leader.h>

#define HFD_DEFINITION_STATUS "custom-resource-definitions"

struct hf__json;

/*
 * hf_controller.run; ctx is the struct hfd_controller_context, which is borrowed. Thread: the
 * term's thread for this controller. Blocks until the term drains or aborts.
 */
int hfd_definition_status_run(struct hf_term *term, void *ctx);

#define HFD_DEFINITION_REVISION_MAX 32 /* bytes of a resourceVersion, with the NUL */
/* Writes metadata.finalizers, status.acceptedNames and status.conditions of a definition that was
 * read from the informer's cache. A member that is absent is not written. ret_revision (may be
 * NULL): the resourceVersion of the write. HF_E_CONFLICT: the stored definition has changed since.
 * HF_E_INVALID: the definition has no name or no resourceVersion. Blocks until the response. */
int hfd_definition_write_status(struct hf_term *term, const struct hf__json *definition,
                                char ret_revision[HFD_DEFINITION_REVISION_MAX]);
/* The time for conditions. text has HF__MICROTIME_MAX bytes. */
void hfd_definition_now(struct hf_term *term, char *text);
