/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Limits the number of managers that update an object (that write it in another way than by an
 * apply). Thread: the owner of the arguments. */
#include "server/apply/managers.h"

#define HFD_UPDATE_MANAGERS_MAX 10

/*
 * If more than HFD_UPDATE_MANAGERS_MAX managers update, joins the oldest of each apiVersion into
 * the manager `ancient-changes`. Those that apply are not counted. When memory is exhausted,
 * scratch->failed is set.
 */
void hfd_ancient_changes_join(struct hf__arena *scratch, struct hfd_managers *managers);
