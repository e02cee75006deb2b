// Marks the symbols that the shared library exports; everything else is hidden.
#pragma once

#define MEGANEURA_API __attribute__((visibility("default")))
