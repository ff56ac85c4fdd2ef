/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The informer of CustomResourceDefinitions: what it keeps of them, and an index of their names and
 * versions.
 */
#include <stdbool.h>

struct hf_informer;
struct hf_workqueue;

/* Sets the transform and adds the index. Call it before the informer is started. 0 or -errno. */
int hfd_definition_prepare_informer(struct hf_informer *informer);

/* Whether the name was accepted for a definition of the group. The first function looks for
 * plurals, singulars and short names, the second for the kinds of objects and of lists. Thread:
 * any. */
bool hfd_definition_uses_resource(struct hf_informer *informer, const char *group,
                                  const char *name);
bool hfd_definition_uses_kind(struct hf_informer *informer, const char *group, const char *name);
/* Whether a definition of the group has the version, with `served` set. Thread: any. */
bool hfd_definition_serves(struct hf_informer *informer, const char *group, const char *version);

/* Finds the definitions of the group that wait for a name which is in use, and adds the name of
 * each to the queue. 0, or -ENOMEM: some are missing. Thread: any, also an informer's. */
int hfd_definition_enqueue_waiting(struct hf_informer *informer, const char *group,
                                   struct hf_workqueue *queue);
