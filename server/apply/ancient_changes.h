/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The limit of an object's managers that update. Thread: the owner of the arguments. */
#include "server/apply/managers.h"

#define HFD_UPDATE_MANAGERS_MAX 10

/*
 * If more than HFD_UPDATE_MANAGERS_MAX managers update, joins the oldest of each apiVersion into
 * the manager `ancient-changes`. Those that apply are not counted. Failures are in scratch.
 */
void hfd_ancient_changes_join(struct hf__arena *scratch, struct hfd_managers *managers);
