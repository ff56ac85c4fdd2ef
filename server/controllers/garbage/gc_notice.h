/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The Event OwnerRefInvalidNamespace, which tells users why an owner reference has no effect.
 */
#include <holdfast/leader.h>

struct hf__json;
struct hfd_gc_node;

/*
 * Creates that Event for node: its reference names an owner in another namespace, or an owner that
 * has a namespace while node has none. There is at most one such Event per object. It is a courtesy
 * to users, so errors are ignored. Blocks for a request.
 */
void hfd_gc_notice(struct hf_term *term, const struct hfd_gc_node *node,
                   const struct hf__json *reference);
