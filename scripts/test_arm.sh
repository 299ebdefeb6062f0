#!/usr/bin/env bash
# Cross-compiles the core and its tests for 64-bit ARM and runs those under qemu that compare kernels, random numbers and
# recorded plans bit for bit. Usage: scripts/test_arm.sh [FILTER], a filter of GoogleTest.
set -euo pipefail
cd "$(dirname "$0")/.."
filter=${1:-'*KernelsOf*:InstructionSets*:*Golden*:RandomStream*:Choose*:Shuffle*:Crc32c*:*Kmeans*'}
build=build/arm
prefix=$PWD/$build/prefix
toolchain=$PWD/cmake/aarch64.cmake

# GoogleTest for ARM, and nlohmann-json without the host's other headers.
if [ ! -e "$prefix/lib/libgtest.a" ]; then
  cmake -S /usr/src/googletest -B $build/googletest -G Ninja -DCMAKE_TOOLCHAIN_FILE="$toolchain" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib >/dev/null
  cmake --build $build/googletest --target install >/dev/null
fi
mkdir -p "$prefix/include" "$prefix/lib/cmake/nlohmann_json"
ln -sfn /usr/include/nlohmann "$prefix/include/nlohmann"
cat >"$prefix/lib/cmake/nlohmann_json/nlohmann_jsonConfig.cmake" <<EOF
add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
target_include_directories(nlohmann_json::nlohmann_json INTERFACE $prefix/include)
EOF

cmake -S . -B $build/core -G Ninja -DCMAKE_TOOLCHAIN_FILE="$toolchain" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" \
  -DTAMIS_PROGRAM=OFF -DTAMIS_LIBTORCH=OFF -DTAMIS_PYTHON=OFF -DTAMIS_REPORT=OFF -DTAMIS_TESTS=ON >/dev/null
cmake --build $build/core --target core_tests
qemu-aarch64-static -L /usr/aarch64-linux-gnu "$(find $build/core -name core_tests -type f)" --gtest_filter="$filter"
