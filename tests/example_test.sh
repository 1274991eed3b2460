#!/usr/bin/env bash
# Uses Weft as an outside project does: installs it, moves the copy to prove that it can be moved, builds
# examples/gated_feed_forward against it from a copy of its own, and goes the whole way with the program. Without its
# registration line, a program must refuse the layer's name. CTest sets CMAKE, CXX, SOURCE_DIR and BUILD_DIR.
set -euo pipefail

work=$BUILD_DIR/example_test
prefix=$work/prefix
program=$work/build/gated_feed_forward

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# Runs a command quietly; what it printed is in $work/log.
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$*"; }; }

# Expects a refusal of the layer's name: exit code 2 and one line that names it and what there is instead.
refuses() {
  local code=0 text
  "$@" >"$work/log" 2>&1 || code=$?
  text=$(cat "$work/log")
  echo "  $text"
  [[ $code == 2 ]] || fail "exit code $code, not 2: $*"
  [[ $text == *'"gated"'* && $text == *feed_forward* && $text == *default* ]] || fail "the error does not say what it should"
  [[ $(wc -l <"$work/log") == 1 ]] || fail "the error is more than one line"
}

rm -rf "$work"
mkdir -p "$work"
cp -r "$SOURCE_DIR/examples/gated_feed_forward" "$work/source"

echo "install"
quietly "$CMAKE" --install "$BUILD_DIR" --prefix "$work/installed"
mv "$work/installed" "$prefix"
for name in "$BUILD_DIR" "$SOURCE_DIR"; do
  ! grep -rqF "$name" "$prefix" --include='*.cmake' || fail "the installed CMake files name $name, so they cannot be moved"
done

echo "build"
quietly "$CMAKE" -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
quietly "$CMAKE" --build "$work/build"
grep -oE -- '-(I|isystem) ?[^ ]+' "$work/build/compile_commands.json" | sort -u >"$work/includes"
grep -qF "$prefix/include" "$work/includes" || fail "the installed headers are not used"
! grep -F "$BUILD_DIR/include" "$work/includes" || fail "headers of the build tree are used"

echo "check"
"$program" check-silu-mul || fail "check-silu-mul"
"$program" check layer gated || fail "check layer"

cd "$work"
quietly "$program" check layer gated source/gated.json --json
grep -qF '"name": "gate.weight"' log || fail "no parameters in the JSON"
echo "train, evaluate, translate"
quietly "$program" train source/gated.json --run run --set training.steps=30 --set training.validate_every=30
quietly "$program" evaluate run/best.safetensors --split valid --beam 1
grep -q 'BLEU' log || fail "evaluate printed no BLEU"
echo "3 1 4 1 5" | quietly "$program" translate run/best.safetensors
[[ $(wc -l <log) == 1 ]] || fail "one line in, $(wc -l <log) lines out"
quietly "$program" inspect run/best.safetensors
grep -q 'encoder.layers.0.feed_forward.gate.weight' log || fail "the layer is not in the checkpoint"

echo "a program without the layer"
refuses "$prefix/bin/weft" train source/gated.json --run other
refuses "$prefix/bin/weft" translate run/best.safetensors
sed -i '/registry\.add/d' source/main.cpp
! cmp -s source/main.cpp "$SOURCE_DIR/examples/gated_feed_forward/main.cpp" || fail "no registration line in main.cpp"
quietly "$CMAKE" --build "$work/build"
refuses "$program" train source/gated.json --run other
[[ ! -e other ]] || fail "a refused run left a folder behind"

echo "a wrong backward"
cp "$SOURCE_DIR/examples/gated_feed_forward/main.cpp" source
sed -i 's/put(db, i, g \* x \* s)/put(db, i, g * x * s * real(1.1))/' source/silu_mul.cpp
! cmp -s source/silu_mul.cpp "$SOURCE_DIR/examples/gated_feed_forward/silu_mul.cpp" || fail "no such line in silu_mul.cpp"
quietly "$CMAKE" --build "$work/build"
code=0
"$program" check layer gated >log 2>&1 || code=$?
[[ $code == 1 ]] || { cat log; fail "exit code $code, not 1, of the check of a wrong backward"; }
[[ $(grep -c 'FAILED$' log) == 1 ]] || { cat log; fail "not one failed check"; }
grep -E '^gradients +worst error .* FAILED$' log || { cat log; fail "the gradients did not fail"; }
grep -F 'gradients FAILED' log | grep -F 'of input 0, layer.up.weight, layer.up.bias;' || fail "the wrong gradients are not named"

echo "all well"
