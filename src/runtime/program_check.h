// Whether a device can run a program.
#pragma once

#include "device/device.h"
#include "program/program.h"

namespace meganeura {

// Error(kUnsupported) naming what the program was compiled for and the device lacks.
void check_program_fits(const Program& program, const device::Device& device);

}  // namespace meganeura
