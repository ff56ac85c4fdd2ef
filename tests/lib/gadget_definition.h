/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The definition of a kind that the tests of custom resources use, as text, and its keys in the
 * store. */
#include <holdfast/client.h>

#define CRDS   "/registry/apiextensions.k8s.io/customresourcedefinitions/"
#define CRD    CRDS "gadgets.example.com"
#define GADGET "/registry/example.com/gadgets/default/"
#define STATUS                                                                                     \
        ",\"status\":{\"acceptedNames\":{\"plural\":\"gadgets\",\"kind\":\"Gadget\","              \
        "\"listKind\":\"GadgetList\"},\"conditions\":[{\"type\":\"Established\","                  \
        "\"status\":\"True\"}]}}"
#define GROUP(text) "\"group\":\"" text "\""
#define VERSION(name, storage, default_text)                                                       \
        "{\"name\":\"" name "\",\"served\":true,\"storage\":" storage ",\"schema\":{"              \
        "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\","  \
        "\"default\":{},\"properties\":{\"text\":{\"type\":\"string\",\"default\":\"" default_text \
        "\"},\"n\":{\"type\":\"integer\"}}}}}}}"
#define DEFINITION(versions)                                                                       \
        "{\"kind\":\"CustomResourceDefinition\",\"apiVersion\":\"apiextensions.k8s.io/v1\","       \
        "\"metadata\":{\"name\":\"gadgets.example.com\",\"uid\":\"1\"},\"spec\":{\"group\":"       \
        "\"example.com\",\"scope\":\"Namespaced\",\"names\":{\"plural\":\"gadgets\",\"kind\":"     \
        "\"Gadget\"},\"versions\":[" versions "]}" STATUS

static const struct hf_resource gadgets = {.group = "example.com",
                                           .version = "v1",
                                           .plural = "gadgets"};
