/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The volume from which the containers of a pod read the token of its service account. Pure, except
 * that the name of the volume ends with random characters. Thread: the one that owns the spec. */
struct hf__json;

/*
 * Mounts the volume in all containers of a pod's spec that have nothing else mounted at its path,
 * and adds it to the spec if one of them needs it. If the spec already has a volume whose name
 * begins with "kube-api-access-", that one is mounted. Ephemeral containers are left alone. The
 * spec has the form of its schema. 0; -ENOMEM; or -EIO if the system has no random numbers. After
 * an error the spec may be changed in part.
 */
int hfd_pod_mount_token(struct hf__json *spec);
