/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The status of a CustomResourceDefinition: which of its names are accepted, and its conditions.
 *
 *      NamesAccepted       no name is in use by another definition of its group
 *      Established         its objects are served; once True it stays
 *      KubernetesAPIApprovalPolicyConformant
 *                          a group of the Kubernetes community has an approval annotation
 *      NonStructuralSchema its objects are not pruned; definitions of v1 cannot have it
 *      Terminating         it is being deleted; its objects are deleted first
 *
 * Pure, apart from the calls of hfd_definition_uses. Thread: any; a definition belongs to the
 * caller.
 */
#include <stdbool.h>

struct hf__json;

/* The finalizer that keeps a definition until its objects are deleted. */
#define HFD_DEFINITION_FINALIZER "customresourcecleanup.apiextensions.k8s.io"

/* Both functions return whether the name was accepted for a definition of the group. That may also
 * be the definition whose conditions are set. Names of resources (plural, singular and short names)
 * and names of kinds are separate. */
struct hfd_definition_uses {
        bool (*resource)(void *ctx, const char *group, const char *name);
        bool (*kind)(void *ctx, const char *group, const char *name);
        void *ctx;
};

/*
 * Sets status.acceptedNames and all conditions except Terminating. now: a metav1.Time, for the
 * conditions whose status changes. *ret_changed: the status differs and must be written. 0 or
 * -ENOMEM; -EINVAL: status is malformed. After an error, the status may be half changed.
 */
int hfd_definition_set_conditions(struct hf__json *definition,
                                  const struct hfd_definition_uses *uses, const char *now,
                                  bool *ret_changed);

/* The content of the condition Terminating. */
enum hfd_definition_ending {
        HFD_DEFINITION_DELETES,           /* its objects are being deleted */
        HFD_DEFINITION_DELETE_FAILED,     /* some could not be deleted */
        HFD_DEFINITION_LIST_FAILED,       /* they could not be listed */
        HFD_DEFINITION_WAITS,             /* some remain */
        HFD_DEFINITION_DELETED,           /* none remains */
        HFD_DEFINITION_NEVER_ESTABLISHED, /* there were none */
        HFD_DEFINITION_OVERLAPS,          /* they are those of a built-in kind, and stay */
};

/* Sets the condition Terminating. why: the end of the message (500 bytes at most are used) for
 * DELETE_FAILED, LIST_FAILED and WAITS, else NULL. Otherwise as hfd_definition_set_conditions. */
int hfd_definition_set_terminating(struct hf__json *definition, enum hfd_definition_ending ending,
                                   const char *why, const char *now, bool *ret_changed);

/* Whether its objects must be deleted: it is being deleted and has HFD_DEFINITION_FINALIZER. */
bool hfd_definition_is_due(const struct hf__json *definition);
/* Whether a condition is True. */
bool hfd_definition_is(const struct hf__json *definition, const char *condition);
