/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rules of authorization that no object can change: the group system:masters may do everything,
 * and everybody may read the version and the health as a whole. Pure. Thread: any.
 */
#include "server/rbac/attributes.h"

/* Whether these rules allow the request. False: they say nothing, and other rules decide. */
bool hfd_fixed_rules_allow(const struct hfd_subject *subject,
                           const struct hfd_attributes *attributes);
