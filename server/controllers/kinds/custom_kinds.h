/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kinds of the CustomResourceDefinitions that are Established, each with an informer, and the
 * current set of all kinds. custom_kinds.c describes how kinds are added and removed.
 *
 * Thread: any, from the return of hfd_custom_kinds_new to the call of hfd_custom_kinds_free.
 */
#include "server/controllers/kinds/kind_informer.h"

struct hfd_custom_kinds;

/* built_in: the set of the built-in kinds; this function takes a reference to it. definitions: the
 * kind CustomResourceDefinition in that set. Starts nothing. 0 or -errno. */
int hfd_custom_kinds_new(const struct hfd_kind_sources *sources, struct hfd_kind_set *built_in,
                         const struct hfd_kind *definitions, struct hfd_custom_kinds **ret_custom);
/* Begins to follow the definitions. Call it before their informer is started: otherwise a wait for
 * a revision could end before the handler has counted the events up to it. 0 or -errno; also after
 * an error, hfd_custom_kinds_free stops what was started. */
int hfd_custom_kinds_start(struct hfd_custom_kinds *custom);
/* Stops following, and frees the informers of custom kinds. Call it before the informer of
 * definitions is freed. Accepts NULL; returns NULL. Blocks until the thread of custom_kinds.c has
 * returned. */
struct hfd_custom_kinds *hfd_custom_kinds_free(struct hfd_custom_kinds *custom);

/* As hfd_kinds_get and hfd_kinds_is_complete (kinds.h). */
struct hfd_kind_set *hfd_custom_kinds_get(struct hfd_custom_kinds *custom);
bool hfd_custom_kinds_is_complete(struct hfd_custom_kinds *custom, const struct hfd_kind_set *set);
