/* SPDX-License-Identifier: Apache-2.0 */
#include "server/program.h"

int main(int argc, char **argv) { return hfd_program_main(argc, argv, 0); }
