/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The defaults of pods, pod templates and volumes, for all kinds that have one of these. All
 * functions return 0 or -ENOMEM; after an error the object may be changed in part. Pure. Thread:
 * the one that owns the object.
 */
struct hf__json;

/* Sets the members that the template at `key` of the object lacks, as kube-apiserver does. Creates
 * the template if there is none. */
int hfd_pod_template_default(struct hf__json *object, const char *key);
/* The same for a spec: of a template, or of a pod, which has some more defaults (hfd_pod_prepare in
 * workloads/workloads.h). spec NULL: there is nothing to set. */
int hfd_pod_spec_default(struct hf__json *spec);
/* Those defaults of the source of a volume that do not depend on other members, and are not in a
 * list within the source. The source is a member of `volume`, which is a volume of a pod, or the
 * spec of a PersistentVolume. */
int hfd_volume_source_default(struct hf__json *volume);
