#!/usr/bin/env bash
# The longer comparison behind the README's table: Fashion-MNIST and CIFAR-10, three seeds, with the
# ablation (no average, alpha from 0.5 to 0.95). At most 90 minutes on two cores. Stopped and started
# again it goes on where it stopped.
# Usage: scripts/study.sh PROGRAM [FOLDER [FLAG...]]; further flags go to every comparison.
set -euo pipefail
program=$1
folder=${2:-runs/study}
shift $(($# < 2 ? $# : 2))

main=(full random-dynamic infobatch seta bls-infobatch bls-seta)
ablation=()
for policy in infobatch seta; do
  ablation+=("last-batch-loss+$policy")
  for alpha in 0.5 0.8 0.9 0.95; do ablation+=("bls-$policy:alpha=$alpha"); done
done

for data in fashion-mnist cifar10; do
  echo "== $data"
  "$program" compare --preset "$data" --methods "${main[@]}" "${ablation[@]}" \
    --out "$folder/$data" "$@"
done
echo "study: render the results with scripts/render_study.py --collect $folder"
