/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The Event OwnerRefInvalidNamespace, which tells users that an owner reference names no valid
 * owner, because the namespaces do not match.
 */
#include <holdfast/leader.h>

struct hf__json;
struct hfd_gc_node;

/*
 * Creates that Event for node, because its reference names an owner in another namespace, or a
 * namespaced owner although node has no namespace. There is at most one such Event per object at a
 * time. It only informs users, so errors are ignored. Blocks until the response to its request
 * arrives or the term is aborted. Thread: any worker of the term.
 */
void hfd_gc_notice_create(struct hf_term *term, const struct hfd_gc_node *node,
                          const struct hf__json *reference);
