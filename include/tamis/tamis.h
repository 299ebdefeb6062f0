// Everything of the core. Start reading at pruner.h.
#pragma once

#include "tamis/array.h"
#include "tamis/bitmap.h"
#include "tamis/communicator.h"
#include "tamis/distributed_pruner.h"
#include "tamis/epoch_plan.h"
#include "tamis/policy.h"
#include "tamis/pruner.h"
#include "tamis/rank_plan.h"
#include "tamis/recorder.h"
#include "tamis/recording.h"
#include "tamis/registry.h"
#include "tamis/schedule.h"
#include "tamis/score_view.h"
#include "tamis/scorer.h"
#include "tamis/selection.h"
#include "tamis/types.h"
