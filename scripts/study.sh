#!/usr/bin/env bash
# The comparisons behind the tables of docs/study.md. Stopped and started again it goes on where it stopped.
# Usage: scripts/study.sh PROGRAM [FOLDER [FLAG...]]; further flags go to every comparison.
# TAMIS_STUDY="noise tail" makes these parts only; the parts are:
#   main         the README's tables: a fifth of Fashion-MNIST and a fifth of CIFAR-10
#   ablation     the same without the average, and with alpha from 0.5 to 0.95
#   budget       clean data, all methods prune the same share of the run
#   noise        40 % wrong labels, the highest scores left out after 5 epochs
#   memorized    the same with fewer samples and more epochs, until the wrong labels are known by heart
#   tail         long-tailed classes, with and without the class floor
#   homogeneous  batches of one weight against mixed ones
#   processes    two of the ablation's methods on two processes
# One thread each, so that the figures do not depend on the number of cores; at most two hours in all.
set -euo pipefail
program=$1
folder=${2:-runs/study}
shift $(($# < 2 ? $# : 2))
flags=(--threads 1 "$@")
parts=${TAMIS_STUDY:-main ablation noise memorized homogeneous budget tail processes}

wanted() { [[ " $parts " == *" $1 "* ]]; }

# compare NAME FLAG...
compare() {
  echo "== $1"
  "$program" compare --out "$folder/$1" "${@:2}" "${flags[@]}"
}

# A fifth of the data, so that there is something left to learn.
fashion=(--data fashion-mnist --limit 12000)

if wanted main; then
  methods=(full random-dynamic infobatch ogs-infobatch:cross-entropy=1 bls-infobatch seta bls-seta)
  compare fashion-mnist --preset fashion-mnist "${fashion[@]}" --seeds 0 1 2 3 4 --methods "${methods[@]}"
  compare cifar10 --preset cifar10 --limit 10000 --epochs 12 --seeds 0 1 2 3 4 --methods "${methods[@]}"
fi

if wanted ablation; then
  methods=(full bls-infobatch bls-seta last-batch-loss+infobatch last-batch-loss+seta)
  alphas=()
  for alpha in 0.5 0.8 0.9 0.95; do alphas+=("bls-infobatch:alpha=$alpha"); done
  compare ablation-fashion-mnist --preset fashion-mnist "${fashion[@]}" --seeds 0 1 2 --methods "${methods[@]}" "${alphas[@]}"
  compare ablation-cifar10 --preset cifar10 --limit 10000 --epochs 12 --methods "${methods[@]}"
fi

# trim leaves out 36 % in 15 of 20 epochs, which is 27 % of the run. Batches of 32: a mean of 128 losses says little of one.
if wanted noise; then
  compare noise --data fashion-mnist --limit 12000 --seeds 0 1 2 3 4 --epochs 20 --batch-size 32 --label-noise 0.4 --baseline random-dynamic:prune-ratio=0.27 \
    --methods full random-dynamic:prune-ratio=0.27 bls-trim:prune-ratio=0.36 blr-trim:prune-ratio=0.36 \
    ogs-trim:prune-ratio=0.36 ogs-trim:prune-ratio=0.36,cross-entropy=1 trim:prune-ratio=0.36
fi

# 36 % in 55 of 60 epochs is 33 % of the run.
if wanted memorized; then
  compare memorized --data fashion-mnist --limit 4000 --seeds 0 1 2 3 4 --epochs 60 --batch-size 32 --label-noise 0.4 \
    --baseline random-dynamic:prune-ratio=0.33 \
    --methods full random-dynamic:prune-ratio=0.33 bls-trim:prune-ratio=0.36 blr-trim:prune-ratio=0.36 \
    ogs-trim:prune-ratio=0.36 ogs-trim:prune-ratio=0.36,cross-entropy=1 trim:prune-ratio=0.36
fi

if wanted homogeneous; then
  compare homogeneous "${fashion[@]}" --seeds 0 1 2 --epochs 16 --baseline bls-infobatch \
    --methods full bls-infobatch bls-infobatch:homogeneous=1
fi

if wanted budget; then
  compare budget "${fashion[@]}" --seeds 0 1 2 --epochs 16 --target-prune 0.25 \
    --methods full random-dynamic infobatch bls-infobatch blr-infobatch bls-seta
fi

# Classes from 6,000 samples down to 60; the test data stay balanced. With a floor of 0.7 the budget can still be reached.
if wanted tail; then
  compare tail --data fashion-mnist --imbalance 0.01 --epochs 16 --seeds 0 1 2 --target-prune 0.2 \
    --methods full random-dynamic random-dynamic:min-per-class=0.7 bls-infobatch bls-infobatch:min-per-class=0.7
fi
if wanted processes; then
  export WORLD_SIZE=2 MASTER_PORT=29517
  RANK=1 compare processes --preset fashion-mnist "${fashion[@]}" --seeds 0 1 2 --methods full bls-infobatch > /dev/null &
  RANK=0 compare processes --preset fashion-mnist "${fashion[@]}" --seeds 0 1 2 --methods full bls-infobatch
  wait $!
fi
echo "study: render the results with scripts/render_study.py --collect $folder"
