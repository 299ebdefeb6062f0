// Writes what the browser opens: FOLDER, a made-up comparison; FOLDER-recorded, a run with a
// recording and a gallery; FOLDER-hostile, one with names that are markup; FOLDER-sweep. Usage:
// write_showcase FOLDER
#include <cstdio>
#include <string>

#include "fixture_runs.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_showcase FOLDER\n", stderr);
    return 2;
  }
  const std::string folder = argv[1];
  tamis::test::write_showcase(folder);
  tamis::test::write_recorded_run(folder + "-recorded");
  tamis::test::write_gallery(folder + "-recorded");
  tamis::test::write_recorded_run(folder + "-hostile", 3);
  tamis::test::write_gallery(folder + "-hostile", "<img src=x onerror=alert(1)>\"'&");
  tamis::test::write_sweep(folder + "-sweep", {0.5, 0.7, 0.9});
  return 0;
}
