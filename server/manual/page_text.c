/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the manual pages that no other table has: more of DESCRIPTION, exit statuses,
 * signals, files, the environment, the commands that make pages and completions.
 *
 * A row is {command, section, term, text}; a term is what the text explains, such as a signal, and
 * NULL in a paragraph. The rows of a page are in the order in which it shows them.
 *
 * Invariant: the description of each flag is only in config/flags.c, from which OPTIONS has it.
 */
#include "server/manual/page_text.h"

#define SERVE   HFD_COMMAND_SERVE
#define RELEASE HFD_COMMAND_RELEASE
#define STATUS  HFD_COMMAND_STATUS
#define PKI     HFD_COMMAND_PKI
#define STORE   HFD_COMMAND_STORE

const struct hfd_manual_text hfd_manual_texts[] = {
        {SERVE, "DESCRIPTION", NULL,
         "A Kubernetes-style API server in C. kubectl and other clients of Kubernetes' API talk to "
         "it. "
         "It keeps its objects in etcd, or in a file of SQLite on one machine. One or more "
         "instances "
         "serve at the same time; one of them is the leader and runs the controllers that must run "
         "only once."},
        {SERVE, "DESCRIPTION", NULL,
         "With --check it checks the flags and the files that they name as the start would, and "
         "exits. It writes nothing, and sends nothing to the store, so it may run beside a server "
         "with the same flags. Run it as the user who runs the server: other users may not be able "
         "to read the files. Whether the port is free and whether the store responds is not "
         "checked."},
        {SERVE, "SIGNALS", "SIGTERM, SIGINT",
         "stop: readiness fails, the controllers finish, the Lease is released, requests under way "
         "are completed. Another one, a second later or more, ends the process at once, with "
         "status "
         "1"},
        {SERVE, "SIGNALS", "SIGHUP", "reads certificates and tokens again"},
        {SERVE, "EXIT STATUS", "0", "after a planned stop; with --check: ok"},
        {SERVE, "EXIT STATUS", "1", "after a failure that is none of the following"},
        {SERVE, "EXIT STATUS", "2",
         "a mistake on the command line, in a manifest, or in another file or a directory that a "
         "flag names; one line on the standard error names it. With --check there is a line for "
         "each"},
        {SERVE, "EXIT STATUS", "70",
         "a controller, or another part of the server that a stop waits for, did not stop in time "
         "after the Lease was lost or the process was stopped"},
        {SERVE, "FILES", "<data-dir>/admin.kubeconfig",
         "the kubeconfig of an administrator, written at each start"},
        {SERVE, "FILES", "<shared-dir>/store.db",
         "the objects, without --etcd-servers and --store"},
        {SERVE, "FILES", "<cert-dir>/ca.crt, server.crt, admin.crt and their keys",
         "made where they are missing, and renewed"},
        {SERVE, "FILES", "<runtime-dir>/<instance>.lock",
         "what this instance leads; locked while it runs"},
        {SERVE, "ENVIRONMENT", "STATE_DIRECTORY, RUNTIME_DIRECTORY",
         "set by systemd: the defaults of --data-dir and --runtime-dir"},
        {SERVE, "ENVIRONMENT", "NOTIFY_SOCKET, WATCHDOG_USEC, LISTEN_FDS",
         "readiness, watchdog and socket activation of systemd"},
        {SERVE, "ENVIRONMENT", "HOLDFASTD_ALLOW_DEBUG=1",
         "lets a debugger of the same user attach"},
        {RELEASE, "DESCRIPTION", NULL,
         "The command takes the lock of the instance's run file, which a process that is alive, "
         "stopped or hung still holds; then it refuses. It releases the Lease only if it still has "
         "the identity and the term that the run file names. The units of systemd run it after "
         "each end of the server."},
        {RELEASE, "EXIT STATUS", "0", "the Lease was released, or there was nothing to release"},
        {RELEASE, "EXIT STATUS", "1",
         "the instance is alive, the store did not respond, or another failure; one line on the "
         "standard error says which"},
        {RELEASE, "EXIT STATUS", "2",
         "a mistake on the command line, a file of the store that a flag names cannot be used, or "
         "the store is in memory"},
        {STATUS, "DESCRIPTION", NULL,
         "With -o json it prints one JSON object in one line, and with --watch a line for each new "
         "state. monitoring.md in the documentation says what the members are."},
        {STATUS, "EXIT STATUS", "0", "the status was printed; with --watch: a signal ended it"},
        {STATUS, "EXIT STATUS", "1",
         "the kubeconfig cannot be used, its server did not respond, or the output could not be "
         "written"},
        {STATUS, "EXIT STATUS", "2", "a mistake on the command line"},
        {PKI, "DESCRIPTION", NULL,
         "Instances on two hosts have one CA when one host exports it and the other joins, best "
         "before its first start. A CA is never replaced. Run the commands as the user of the "
         "server."},
        {PKI, "EXIT STATUS", "0", "the command has done its work"},
        {PKI, "EXIT STATUS", "1", "it has failed, or there is a CA already"},
        {PKI, "EXIT STATUS", "2", "a mistake on the command line"},
        {STORE, "EXIT STATUS", "0", "the command has done its work; store check: nothing is wrong"},
        {STORE, "EXIT STATUS", "1", "it has failed; store check: something is wrong"},
        {STORE, "EXIT STATUS", "2", "a mistake on the command line"},
};
const size_t hfd_manual_n_texts = sizeof hfd_manual_texts / sizeof hfd_manual_texts[0];

const struct hfd_manual_help_command hfd_manual_help_commands[HFD_MANUAL_N_HELP_COMMANDS] = {
        {"holdfastd help --man [COMMAND]", "prints the manual page of a command"},
        {"holdfastd help --completion bash|zsh", "prints the completion for a shell"},
};
