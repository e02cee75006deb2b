// Everything of the public interface.
#pragma once

#include "meganeura/autodiff.h"
#include "meganeura/compile.h"
#include "meganeura/data.h"
#include "meganeura/device.h"
#include "meganeura/dtype.h"
#include "meganeura/error.h"
#include "meganeura/graph.h"
#include "meganeura/models.h"
#include "meganeura/nn.h"
#include "meganeura/ops.h"
#include "meganeura/optim.h"
#include "meganeura/safetensors.h"
#include "meganeura/session.h"
#include "meganeura/shape.h"
#include "meganeura/trainer.h"
