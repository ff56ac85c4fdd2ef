/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The examples A.2 and A.3 of RFC 7515: signed by another program, with keys that the RFC
 * publishes. */

#define JWT_EXAMPLE_ES256_KEY                                                                      \
        "-----BEGIN PUBLIC KEY-----\n"                                                             \
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7\n"                       \
        "6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==\n"                           \
        "-----END PUBLIC KEY-----\n"
#define JWT_EXAMPLE_RS256_KEY                                                                      \
        "-----BEGIN PUBLIC KEY-----\n"                                                             \
        "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAofgWCuLjybRlzo0tZWJj\n"                       \
        "NiuSfb4p4fAkd/wWJcyQoTbji9k0l8W26mPddxHmfHQp+Vaw+4qPCJrcS2mJPMEz\n"                       \
        "P1Pt0Bm4d4QlL+yRT+SFd2lZS+pCgNMsD1W/YpRPEwOWvG6b32690r2jZ47soMZo\n"                       \
        "9wGzjb/7OMg0LOL+bSf63kpaSHSXndS5z5rexMdbBYUsLA9e+KXBdQOS+UTo7WTB\n"                       \
        "EMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6/I5IhlJH7aGhyxX\n"                       \
        "FvUK+DWNmoudF8NAco9/h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXp\n"                       \
        "oQIDAQAB\n"                                                                               \
        "-----END PUBLIC KEY-----\n"
#define JWT_EXAMPLE_CLAIMS                                                                         \
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0" \
        "cnVlfQ"
#define JWT_EXAMPLE_ES256                                                                          \
        "eyJhbGciOiJFUzI1NiJ9." JWT_EXAMPLE_CLAIMS                                                 \
        ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
#define JWT_EXAMPLE_RS256                                                                          \
        "eyJhbGciOiJSUzI1NiJ9." JWT_EXAMPLE_CLAIMS                                                 \
        ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8" \
        "W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvk" \
        "SjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCn" \
        "vWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
