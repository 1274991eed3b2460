// The program `weft`: the command line with the standard layers.
#include "weft/train/cli.h"

int main(int argc, char** argv) { return weft::run(argc, argv, weft::standard_layers()); }
