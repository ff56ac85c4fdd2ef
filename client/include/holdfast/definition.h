/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* CustomResourceDefinitions: for a program that adds its own kind to an API server. Blocks; made
 * for controllers. Thread: any. */
#include <stddef.h>

#include <holdfast/api.h>
#include <holdfast/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Creates the definition, or merges it into the existing one as hf_upsert does, and waits until
 * the server serves the kind: until the definition's condition Established is true and a list in
 * its storage version succeeds. Informers of the kind may be started earlier; they list again until
 * a list succeeds.
 *
 * Let only the leader call this, with hf_term_client: of two versions of a program, the one that
 * leads then decides on the definition. Needs get, create and update of customresourcedefinitions,
 * and list of the kind.
 *
 * definition: JSON of n bytes, an apiextensions.k8s.io/v1 CustomResourceDefinition. Returns 0 or an
 * error of hf_upsert; HF_E_INVALID: it is not a definition, or its storage version is not served;
 * HF_E_CONFLICT: its names are taken by another definition, or it was deleted before it was served;
 * HF_E_CANCELED: `token` fired first. reterr_status may be NULL.
 */
HF_MUST_CHECK int hf_definition_establish(struct hf_client *client, const char *definition,
                                          size_t n, struct hf_cancel *token,
                                          struct hf_status *reterr_status);

#ifdef __cplusplus
}
#endif
