// Everything of the core. Start reading at pruner.h.
#pragma once

#include "winnow/array.h"
#include "winnow/bitmap.h"
#include "winnow/communicator.h"
#include "winnow/distributed_pruner.h"
#include "winnow/epoch_plan.h"
#include "winnow/policy.h"
#include "winnow/pruner.h"
#include "winnow/rank_plan.h"
#include "winnow/recorder.h"
#include "winnow/recording.h"
#include "winnow/registry.h"
#include "winnow/schedule.h"
#include "winnow/scorer.h"
#include "winnow/selection.h"
#include "winnow/types.h"
