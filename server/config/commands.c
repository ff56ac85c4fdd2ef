/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of commands: their names, their arguments, and how their --help begins.
 *
 * Invariant: each intro has the form that commands.h describes, because the manual is made from it.
 */
#include "server/config/commands.h"

/* Help, the last command of the enum, has no row: its text is that of the command that it
 * explains. */
const struct hfd_command_info hfd_commands[HFD_COMMAND_VERSION + 1] = {
        /* A new user's first command is holdfastd --help, so its text lists the other commands. */
        [HFD_COMMAND_SERVE] =
                {"",
                 {NULL},
                 "holdfastd [flags]          the API server with its leader-elected controllers\n"
                 "holdfastd release [flags]  releases the lease of an instance that has died\n"
                 "holdfastd status [flags]   shows the instances, the leaders and the last "
                 "hand-overs\n"
                 "holdfastd store COMMAND    copies, backs up, restores, checks or compacts a "
                 "store\n"
                 "holdfastd pki COMMAND      makes, shows, exports and joins the CA of the "
                 "certificates\n"
                 "holdfastd version          shows the version\n"},
        /* systemd runs `release` after the server, with the server's list of flags (flags.c). */
        [HFD_COMMAND_RELEASE] =
                {" release",
                 {NULL},
                 "holdfastd release [flags]: releases the lease of this instance after it has "
                 "died\n"
                 "The server's other flags except --check are accepted and checked too, but have "
                 "no effect.\n"},
        [HFD_COMMAND_STATUS] = {" status",
                                {NULL},
                                "holdfastd status [flags]: shows the instances, the leaders and "
                                "the last hand-overs\n"},
        [HFD_COMMAND_PKI] =
                {" pki",
                 {NULL},
                 "holdfastd pki init         makes the CA if there is none; may run before the "
                 "first start\n"
                 "holdfastd pki show         lists the certificates\n"
                 "holdfastd pki export FILE  writes the CA with its key, for another host\n"
                 "holdfastd pki join FILE    uses the CA of another host on this host\n"
                 "These commands use the certificates in --cert-dir. Each command has --help.\n"},
        [HFD_COMMAND_PKI_INIT] = {" pki init",
                                  {NULL},
                                  "holdfastd pki init [flags]: makes the CA if there is none; may "
                                  "run before the first start\n"},
        [HFD_COMMAND_PKI_SHOW] = {" pki show",
                                  {NULL},
                                  "holdfastd pki show [flags]: lists the certificates\n"},
        [HFD_COMMAND_PKI_EXPORT] =
                {" pki export",
                 {"FILE"},
                 "holdfastd pki export FILE [flags]: writes the CA with its key to the new file "
                 "FILE, for another host\n"
                 "FILE is - for the standard output.\n"},
        [HFD_COMMAND_PKI_JOIN] =
                {" pki join",
                 {"FILE"},
                 "holdfastd pki join FILE [flags]: uses the CA of another host, exported to FILE, "
                 "on this host\n"
                 "FILE is - for the standard input.\n"},
        [HFD_COMMAND_STORE] =
                {" store",
                 {NULL},
                 "holdfastd store copy --from STORE --to STORE  copies all objects to an empty "
                 "store\n"
                 "holdfastd store backup FILE TARGET            copies a file that is in use\n"
                 "holdfastd store restore BACKUP TARGET         makes a store from a backup\n"
                 "holdfastd store check FILE                    looks for damage\n"
                 "holdfastd store compact STORE                 removes what was overwritten or "
                 "deleted\n"
                 "A STORE is sqlite:FILE or etcd:URL[,URL]. Each command has --help.\n"},
        /* The stores are flags, so that nobody exchanges source and target. */
        [HFD_COMMAND_STORE_COPY] =
                {" store copy",
                 {NULL},
                 "holdfastd store copy --from STORE --to STORE [flags]: copies all objects to an "
                 "empty store\n"
                 "Stop all instances first. A STORE is sqlite:FILE or etcd:URL[,URL].\n"},
        /* A backup is for a file only: etcd's own program, etcdctl, makes snapshots of etcd. */
        [HFD_COMMAND_STORE_BACKUP] =
                {" store backup",
                 {"FILE", "TARGET"},
                 "holdfastd store backup FILE TARGET: writes the state of the SQLite file FILE "
                 "to the new file TARGET\n"
                 "Instances may go on using FILE.\n"},
        [HFD_COMMAND_STORE_RESTORE] =
                {" store restore",
                 {"BACKUP", "TARGET"},
                 "holdfastd store restore BACKUP TARGET [flags]: makes the new file TARGET from a "
                 "backup\n"
                 "Clients notice that the history is another one, and list again.\n"},
        [HFD_COMMAND_STORE_CHECK] =
                {" store check",
                 {"FILE"},
                 "holdfastd store check FILE: prints what is wrong with the SQLite file FILE, "
                 "and changes nothing\n"
                 "The exit status is 0 if nothing is wrong, else 1.\n"},
        [HFD_COMMAND_STORE_COMPACT] =
                {" store compact",
                 {"STORE"},
                 "holdfastd store compact STORE [flags]: removes all versions but the current "
                 "ones\n"
                 "STORE is FILE or sqlite:FILE, which no instance may use meanwhile, or "
                 "etcd:URL[,URL].\n"},
        [HFD_COMMAND_VERSION] = {" version", {NULL}, NULL},
};
