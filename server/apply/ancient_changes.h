/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Limits the number of managers that update an object. An update here is every write that is not an
 * apply. Thread: owner only. */
#include "server/apply/managers.h"

#define HFD_UPDATE_MANAGERS_MAX 10 /* as in Kubernetes */

/*
 * If there are more than HFD_UPDATE_MANAGERS_MAX managers that update, joins the oldest ones of
 * each apiVersion into a manager `ancient-changes`. At least one manager of each apiVersion stays,
 * so an object with many versions may exceed the limit. Managers that apply are not counted. When
 * memory is exhausted, scratch->failed is set.
 */
void hfd_ancient_changes_join(struct hf__arena *scratch, struct hfd_managers *managers);
