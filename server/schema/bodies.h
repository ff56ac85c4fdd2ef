/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The schemas of bodies that are not objects, and of what is in them: Status, the metadata of a
 * list, an event of a watch, a patch. DeleteOptions are in common.h. Names, numbers and types are
 * those of k8s.io/apimachinery; they never change. Static and immutable.
 */
#include "server/schema/schema.h"

extern const struct hfd_schema hfd_schema_list_meta, hfd_schema_status, hfd_schema_watch_event,
        hfd_schema_patch;
