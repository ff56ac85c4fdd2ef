/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the command line (hfd_flags_parse in flags.h) by the table of flags.
 *
 * Invariant: a mistake is never ignored, unless the user asks for help or the version. An unknown
 * flag, a second value (except of a list that may be repeated) or a flag of another command is an
 * error, because a misspelt flag would otherwise have no effect.
 */
#include "server/config/flags.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/redact.h"
#include "server/config/commands.h"
#include "server/config/config_check.h"
#include "server/config/flag_table.h"
#include "server/config/flag_value.h"
#include "server/config/hint.h"

/* Sets all defaults. A string without a default becomes "", so that no string is NULL. */
static int set_defaults(struct hfd_config *config, struct hf_status *reterr_status) {
        const struct hfd_flag *flag;
        int r = 0;

        for (size_t i = 0; r == 0 && (flag = hfd_flag_table_at(i)); i++)
                /* A member that is not a string stays zero until its default is derived. */
                if (flag->default_value[0] || flag->kind <= HFD_FLAG_DIRECTORY)
                        r = hfd_flag_value_set(flag, flag->default_value, config, reterr_status);
        return r;
}

/* The command line while it is parsed. */
struct arguments {
        int argc, next; /* next: the index of the first argument that is not parsed yet */
        int first;      /* the index of the argument that follows the command */
        char *const *argv;
        bool seen[HFD_FLAGS_MAX];    /* the flags that were given, to find duplicates */
        const struct hfd_flag *bare; /* the last argument, if it is a boolean flag without '=' */
};

/* Returns the value of a flag: the text after '=', the text directly after a letter (-ovalue), or
 * the next argument. rest: what follows the name or letter in the flag's own argument. A boolean
 * flag never uses the next argument, because it needs no value. NULL: there is no value. */
static const char *read_value(struct arguments *arguments, const struct hfd_flag *flag,
                              const char *rest) {
        if (rest[0] == '=')
                return rest + 1;
        if (flag->kind == HFD_FLAG_BOOL) {
                arguments->bare = flag;
                return "true";
        }
        if (rest[0])
                return rest; /* after a letter */
        return arguments->next < arguments->argc ? arguments->argv[arguments->next++] : NULL;
}

/* The sub-command of `command` that the user may have meant by argument. NULL: none is near, or
 * argument does not follow the command directly. */
static const char *near_command(const struct arguments *arguments, const char *argument,
                                enum hfd_command command) {
        const char *begin = hfd_commands[command].suffix, *best = NULL;
        size_t n = strlen(begin);

        if (arguments->next != arguments->first + 1)
                return NULL;
        for (int i = HFD_COMMAND_RELEASE; i <= HFD_COMMAND_VERSION; i++) {
                const char *suffix = hfd_commands[i].suffix;

                if (strncmp(suffix, begin, n) == 0 && suffix[n] == ' ' &&
                    !strchr(suffix + n + 1, ' '))
                        hfd_hint_offer(argument, strlen(argument), suffix + n + 1, &best);
        }
        return best;
}

/* Refuses an argument that is not a flag. before: the boolean flag in front of it, or NULL. */
static int refuse_argument(const struct arguments *arguments, const char *argument,
                           const struct hfd_flag *before, enum hfd_command command,
                           struct hf_status *reterr_status) {
        const char *name = argument + (argument[0] == '-'), *near = NULL;
        char shown[201];
        bool yes;

        if (before && hfd_flag_value_parse_bool(argument, &yes))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flag --%s takes no second word: write --%s=%s", before->name,
                               before->name, argument);
        (void)hf__redact(argument, shown, sizeof shown);
        if (name != argument)
                near = hfd_flag_table_near(name, strcspn(name, "="), command);
        if (near)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "unexpected argument \"%s\": did you mean --%s? See "
                               "holdfastd%s --help",
                               shown, near, hfd_commands[command].suffix);
        near = near_command(arguments, argument, command);
        if (near)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "unknown command \"%s\": did you mean holdfastd%s %s? See "
                               "holdfastd%s --help",
                               shown, hfd_commands[command].suffix, near,
                               hfd_commands[command].suffix);
        return hf_fail(reterr_status, HF_E_INVALID,
                       "unexpected argument \"%s\": flags begin with --; see holdfastd --help",
                       shown);
}

/* Refuses a flag that no command has. Its name is the first n bytes of `name`, a NUL-terminated
 * text that may go on with '=' and a value. */
static int refuse_unknown(const char *name, size_t n, enum hfd_command command,
                          struct hf_status *reterr_status) {
        const char *near = hfd_flag_table_near(name, n, command);
        char shown[201];

        /* The text may be a URL with a password. hf__redact finds a password by the '@' after it,
         * which a text that is cut at '=' or at 200 bytes may lack. So cut before the password. */
        if (strchr(name, '@'))
                n = strcspn(name, ":=");
        (void)snprintf(shown, sizeof shown, "%.*s", n < 200 ? (int)n : 200, name);
        if (near)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "unknown flag --%s: did you mean --%s? See holdfastd%s --help",
                               shown, near, hfd_commands[command].suffix);
        return hf_fail(reterr_status, HF_E_INVALID, "unknown flag --%s; see holdfastd%s --help",
                       shown, hfd_commands[command].suffix);
}

/* Parses the next argument: a flag, together with its value, or an argument of the command. */
static int parse_flag(struct arguments *arguments, struct hfd_config *config,
                      struct hf_status *reterr_status) {
        const struct hfd_flag *before = arguments->bare;
        const char *argument = arguments->argv[arguments->next++];

        arguments->bare = NULL;
        /* "-" is an argument: the standard output or input. */
        if ((argument[0] != '-' || !argument[1]) &&
            hfd_commands[config->command].arguments[config->n_arguments]) {
                config->arguments[config->n_arguments] = strdup(argument);
                return config->arguments[config->n_arguments++]
                               ? 0
                               : hf_fail(reterr_status, -ENOMEM, "out of memory");
        }
        const struct hfd_flag *flag =
                argument[0] == '-' && argument[1] ? hfd_flag_table_find_letter(argument[1]) : NULL;
        if (!flag && (strncmp(argument, "--", 2) != 0 || !argument[2]))
                return refuse_argument(arguments, argument, before, config->command, reterr_status);
        const char *name = argument + 2;
        size_t n = strcspn(name, "=");
        if (flag)
                n = 0; /* the value may follow the letter at once */
        else
                flag = hfd_flag_table_find(name, n);
        if (!flag)
                return refuse_unknown(name, n, config->command, reterr_status);
        if (!hfd_flag_table_accepts(flag, config->command))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flag --%s is not a flag of holdfastd%s; see holdfastd%s --help",
                               flag->name, hfd_commands[config->command].suffix,
                               hfd_commands[config->command].suffix);
        bool again = arguments->seen[hfd_flag_table_position(flag)];
        if (again && !flag->repeats)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flag --%s is given twice: give it once", flag->name);
        arguments->seen[hfd_flag_table_position(flag)] = true;
        const char *value = read_value(arguments, flag, name + n);
        if (!value || !value[0])
                return hf_fail(reterr_status, HF_E_INVALID, "flag --%s needs a value", flag->name);
        return (again ? hfd_flag_value_append : hfd_flag_value_set)(flag, value, config,
                                                                    reterr_status);
}

static bool is_help(const char *argument) {
        return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

/* Whether the arguments begin with this command. If so, moves past it. */
static bool take_command(struct arguments *arguments, enum hfd_command command) {
        const char *rest = hfd_commands[command].suffix;
        int next = arguments->next;

        while (rest[0] == ' ') {
                size_t n = strcspn(rest + 1, " ");

                if (next == arguments->argc || strlen(arguments->argv[next]) != n ||
                    memcmp(arguments->argv[next], rest + 1, n) != 0)
                        return false;
                rest += 1 + n;
                next++;
        }
        arguments->next = next;
        return true;
}

/* Takes any command that the arguments begin with. */
static void take_any_command(struct arguments *arguments, struct hfd_config *config) {
        /* Tries the last command first, because "store" must be tried after "store copy". */
        for (int i = HFD_COMMAND_VERSION; i > HFD_COMMAND_SERVE; i--)
                if (take_command(arguments, (enum hfd_command)i)) {
                        config->command = (enum hfd_command)i;
                        break;
                }
        arguments->first = arguments->next;
}

/* Takes `help`, which stands behind a command or in front of it. Flags may follow (--man). */
static int take_help(struct arguments *arguments, struct hfd_config *config,
                     struct hf_status *reterr_status) {
        if (arguments->next == arguments->argc ||
            strcmp(arguments->argv[arguments->next], "help") != 0)
                return 0;
        arguments->next++;
        arguments->first = arguments->next;
        if (config->command == HFD_COMMAND_SERVE)
                take_any_command(arguments, config);
        config->help_command = config->command;
        config->command = HFD_COMMAND_HELP;
        if (arguments->next == arguments->argc || arguments->argv[arguments->next][0] == '-')
                return 0;
        return refuse_argument(arguments, arguments->argv[arguments->next++], NULL,
                               config->help_command, reterr_status);
}

/* Finds the command, which must come first. --help and --version may stand anywhere and take
 * precedence, so that they work on a command line with mistakes too. */
static int find_command(struct arguments *arguments, struct hfd_config *config,
                        struct hf_status *reterr_status) {
        take_any_command(arguments, config);
        int r = take_help(arguments, config, reterr_status);
        for (int i = arguments->next; i < arguments->argc; i++) {
                if (strcmp(arguments->argv[i], "--version") == 0)
                        config->command = HFD_COMMAND_VERSION;
                if (is_help(arguments->argv[i])) {
                        /* If the word `help` came before --help, help_command is set already. */
                        if (config->command != HFD_COMMAND_HELP)
                                config->help_command = config->command;
                        config->command = HFD_COMMAND_HELP;
                        return 0;
                }
        }
        return config->command == HFD_COMMAND_VERSION ? 0 : r;
}

/* Refuses a command line that lacks what its command needs, or has a URL in place of a file. */
static int check_complete(const struct hfd_config *config, struct hf_status *reterr_status) {
        const struct hfd_command_info *command = &hfd_commands[config->command];
        const char *missing = command->arguments[config->n_arguments];

        if (config->command == HFD_COMMAND_STORE)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "holdfastd store needs the name of a command: copy, backup, "
                               "restore, check or compact; see holdfastd store --help");
        if (config->command == HFD_COMMAND_PKI)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "holdfastd pki needs the name of a command: init, show, export or "
                               "join; see holdfastd pki --help");
        if (config->command == HFD_COMMAND_STORE_COPY && !config->copy_to[0])
                missing = "--to";
        if (config->command == HFD_COMMAND_STORE_COPY && !config->copy_from[0])
                missing = "--from";
        if (missing)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "holdfastd%s needs %s; see holdfastd%s --help", command->suffix,
                               missing, command->suffix);
        for (size_t i = 0; i < config->n_arguments; i++) {
                const char *argument = config->arguments[i];
                char shown[201];

                if (strstr(argument, "://") && strncmp(argument, "etcd:", 5) != 0)
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "holdfastd%s: \"%s\" is a URL, and a file is needed",
                                       command->suffix, hf__redact(argument, shown, sizeof shown));
        }
        return 0;
}

int hfd_flags_parse(int argc, char *const argv[], struct hfd_config *ret_config,
                    struct hf_status *reterr_status) {
        struct arguments arguments = {.argc = argc, .next = 1, .argv = argv};
        struct hfd_config config = {0};

        int r = find_command(&arguments, &config, reterr_status);
        if (r != 0)
                return r;
        if (config.command == HFD_COMMAND_HELP || config.command == HFD_COMMAND_VERSION) {
                *ret_config = config;
                return 0;
        }
        r = set_defaults(&config, reterr_status);
        while (r == 0 && arguments.next < arguments.argc)
                r = parse_flag(&arguments, &config, reterr_status);
        if (r == 0)
                r = check_complete(&config, reterr_status);
        if (r == 0)
                r = hfd_config_complete(&config, reterr_status);
        if (r == 0)
                r = hfd_config_check(&config, reterr_status);
        if (r != 0) {
                hfd_config_done(&config);
                return r;
        }
        *ret_config = config;
        return 0;
}
