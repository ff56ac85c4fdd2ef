/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The frames of HTTP/2 (RFC 9113, section 4), as the test servers that speak it without a library
 * need them (grpc_server.c, h2_echo_server.c). Pure functions.
 */
#include <stddef.h>
#include <stdint.h>

#define H2_PREFACE     "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" /* the first bytes of a client */
#define H2_N_PREFACE   (sizeof H2_PREFACE - 1)
#define H2_HEAD_SIZE   9 /* of a frame */
#define H2_END_STREAM  1 /* these are flags */
#define H2_END_HEADERS 4
#define H2_ACK         1

/* Header blocks: 0x88 is ":status: 200" of the static table. 0 begins a literal that is not added
 * to a table; its name and its value follow, each after a byte with its length. */
#define H2_STATUS_200 "\x88"

enum h2_frame_type {
        H2_DATA = 0,
        H2_HEADERS = 1,
        H2_RST_STREAM = 3,
        H2_SETTINGS = 4,
        H2_PING = 6,
        H2_GOAWAY = 7,
        H2_WINDOW_UPDATE = 8
};

static inline uint32_t h2_get_u32(const uint8_t from[4]) {
        return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static inline void h2_put_u32(uint8_t to[4], uint32_t value) {
        for (int i = 0; i < 4; i++)
                to[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Writes the head of a frame whose payload has n bytes. */
static inline void h2_put_head(uint8_t to[H2_HEAD_SIZE], size_t n, enum h2_frame_type type,
                               int flags, uint32_t stream) {
        h2_put_u32(to, (uint32_t)(n << 8) | (uint32_t)type);
        to[4] = (uint8_t)flags;
        h2_put_u32(to + 5, stream);
}
