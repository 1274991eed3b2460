// fuzz_seeds FOLDER: writes the seeds of each target into a folder of its name, and prints name and longest input of each.
#include <cstdio>
#include <filesystem>
#include <string>

#include "targets.h"
#include "weft/core/file.h"

int main(int count, char** words) {
  if (count != 2) {
    std::fputs("usage: fuzz_seeds FOLDER\n", stderr);
    return 2;
  }
  for (const weft::FuzzTarget& target : weft::fuzz_targets()) {
    const std::filesystem::path folder = std::filesystem::path(words[1]) / target.name;
    std::filesystem::create_directories(folder);
    int number = 0;
    for (const std::string& seed : target.seeds()) {
      weft::write_file(folder / ("seed-" + std::to_string(number++)), seed);
    }
    std::printf("%s %zu\n", target.name, target.most_bytes);
  }
  return 0;
}
