/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Gives a snapshot of etcd a new epoch (keys.h). When etcd is restored from that snapshot, every
 * running holdfastd notices by the epoch that the history is another one, even if the restored etcd
 * has reached revisions that the process already knew (docs/operating.md).
 *
 * The snapshot is restored into a private etcd on a unix socket in a temporary directory. The epoch
 * is written to that etcd, and a new snapshot is taken from it. Needs the programs etcd and
 * etcdctl, and etcdutl where etcdctl does not restore any more. It touches no etcd that runs.
 */
#include <holdfast/error.h>

/*
 * Writes the file `target` (new_file.h). Blocks while the programs run; SIGINT, SIGTERM and SIGHUP
 * end it. Call it on the main thread before there are others, because it starts child processes,
 * blocks signals and changes the environment. If a program fails, prints its output to stderr. 0,
 * HF_E_EXISTS, HF_E_NOT_FOUND (the snapshot has keys, but none of this prefix), HF_E_CANCELED (a
 * signal), HF_E_UNAVAILABLE (a program failed or is missing), HF_E_TOO_LARGE (a path or the prefix)
 * or -errno.
 */
int hfd_snapshot_stamp(const char *snapshot, const char *target, const char *prefix,
                       struct hf_status *reterr_status);
