/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The defaults of a pod's template, for all kinds that have one. Pure. Thread: any. */
struct hf__json;

/* Fills in what the template at `key` of object lacks, as kube-apiserver does; it is created if
 * there is none. The object has the form of its schema. 0 or -ENOMEM. */
int hfd_pod_template_default(struct hf__json *object, const char *key);
/* The same for the spec of a pod, which has the defaults of a template's spec. */
int hfd_pod_spec_default(struct hf__json *spec);
