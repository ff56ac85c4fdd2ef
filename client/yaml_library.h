/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* libyaml, which is loaded for each conversion instead of linked, so that programs that read no
 * YAML do not need it. Thread: any. */
#include <stddef.h>
#include <yaml.h>

struct hf_status;

struct hf__yaml_library {
        void *handle; /* owned */
        int (*initialize)(yaml_parser_t *parser);
        void (*set_input)(yaml_parser_t *parser, const unsigned char *input, size_t size);
        int (*parse)(yaml_parser_t *parser, yaml_event_t *event);
        void (*event_delete)(yaml_event_t *event);
        void (*parser_delete)(yaml_parser_t *parser);
};

/* 0, or HF_E_UNAVAILABLE with a message. */
int hf__yaml_library_open(struct hf__yaml_library *lib, struct hf_status *reterr_status);
void hf__yaml_library_close(struct hf__yaml_library *lib); /* also after a failed open */
