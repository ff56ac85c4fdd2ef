/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The volume from which the containers of a pod read the token of its service account. Pure, but
 * for the random end of its name. Thread: any. */
struct hf__json;

/*
 * Mounts the volume in all containers of a pod's spec that have nothing else at its path, and adds
 * it if one of them needs it. If the pod already has a volume with a name of this kind, that one is
 * mounted. The spec has the form of its schema. 0, -ENOMEM, or -EIO: there are no random numbers.
 */
int hfd_pod_mount_token(struct hf__json *spec);
