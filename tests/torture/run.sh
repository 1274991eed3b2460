# What the suites on training runs share: a run with all that a state consists of, and what must be the same in two runs.
# Sourced with $weft set, in a folder to work in.

# Makes text and run.json: subwords drawn anew in each epoch, dropout of all kinds, accumulation, a moving average, patience,
# several checkpoints kept, and a warm-up over more than one epoch.
make_run() {
  awk 'BEGIN {
    srand(5)
    split("ka lo mi ru te sa no vi", syllable, " ")
    for (i = 1; i <= 135; ++i) {
      line = ""
      for (w = 1 + int(4 * rand()); w > 0; --w) {
        for (s = 1 + int(3 * rand()); s > 0; --s) line = line syllable[1 + int(8 * rand())]
        if (w > 1) line = line " "
      }
      part = i <= 120 ? "train" : "valid"
      print line > (part ".src")
      print line > (part ".trg")
    }
  }'
  cat >run.json <<'JSON'
{
  "data": {"train_source": "train.src", "train_target": "train.trg", "valid_source": "valid.src",
           "valid_target": "valid.trg", "tokenizer": "unigram", "max_vocabulary": 40, "subword_sampling": 0.2,
           "max_length": 30},
  "model": {"d_model": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "d_feed_forward": 32, "dropout": 0.1,
            "attention_dropout": 0.1, "activation_dropout": 0.1, "embedding_dropout": 0.1, "max_length": 40},
  "optimizer": {"learning_rate": 0.01},
  "schedule": {"warmup_steps": 20},
  "training": {"steps": 90, "batch_tokens": 150, "accumulate": 2, "validate_every": 7, "save_every": 3, "log_every": 2,
               "ema_decay": 0.9, "patience": 4, "keep_best": 3, "keep_last": 2, "samples": 0,
               "threads": 1}
}
JSON
}

# The log without what is measured.
plain_log() { sed -E 's/,"(tokens_per_second|peak_bytes|elapsed_seconds)":[^,}]*//g' "$1/log.jsonl"; }

# Whether two runs have the same files, checkpoints of the same bytes, and the same log.
same_runs() {
  local file
  if ! diff <(cd "$1" && ls -A) <(cd "$2" && ls -A); then echo "$2: other files than $1" && return 1; fi
  for file in "$1"/*.safetensors; do
    if ! cmp "$file" "$2/${file##*/}"; then return 1; fi
  done
  if ! diff <(plain_log "$1") <(plain_log "$2"); then echo "$2: another log than $1" && return 1; fi
}

# Whether the checkpoints of a run that may have been cut short can be loaded; those that once were must still be there.
# Sets has_last and has_best.
checkpoints_load() {
  local name seen
  for name in last best; do
    seen="has_$name"
    if [[ -e $1/$name.safetensors ]]; then
      printf -v "$seen" 1
      if ! "$weft" inspect "$1/$name.safetensors" >/dev/null; then return 1; fi
    elif ((${!seen})); then
      echo "$1: $name.safetensors is gone"
      return 1
    fi
  done
}
