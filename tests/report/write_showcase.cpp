// Writes the made-up comparison that the browser opens. Usage: write_showcase FOLDER
#include <cstdio>

#include "fixture_runs.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_showcase FOLDER\n", stderr);
    return 2;
  }
  winnow::test::write_showcase(argv[1]);
  return 0;
}
