/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The order of the versions of a kind, as Kubernetes has it: "v2" before "v1" before "v1beta2"
 * before "v1alpha1", and other names after these, by name. Pure. Thread: any.
 */

/* As strcmp: below 0 if a comes before b. */
int hfd_version_order(const char *a, const char *b);
