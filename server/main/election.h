/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part of the assembly (assembly.h) that concerns leading: the controllers, and the elector
 * that runs them. Everything that is created belongs to server. Thread: that of hfd_assembly_make.
 */
#include <holdfast/error.h>

struct hfd_server;

/*
 * Locks a file of this instance in the directory of --leader-elect-lock-dir, if that is set and
 * this instance takes part in the election. The electors keep the lock until they are freed.
 * server->electors exists. Call it before hfd_election_make. 0 or an error; if it is a mistake of
 * the user (flag_files.h), the message names the flag. Blocks on the file.
 */
int hfd_election_lock(struct hfd_server *server, struct hf_status *reterr_status);
/*
 * Creates server->controllers and server->elector, but starts neither. All objects that assembly.c
 * creates before the election exist. 0 or an error with a message.
 */
int hfd_election_make(struct hfd_server *server, struct hf_status *reterr_status);
