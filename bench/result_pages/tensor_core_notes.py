"""Sentences about rows of docs/results/tensor_cores.md that miss a bar or are slower than XLA: their bounds. Keys are labels without a colon
at their end."""

MASKED = "a tile of columns takes 1.7 times as long as without a mask, although only tiles on the diagonal are masked: not explained yet"
SEVEN = "seven dots for five: both kernels of the gradient compute the scores and their gradient"

NOTES: dict[str, str] = {
    "products/30522x768x8192_TN": "rows of 30522 bf16 are no multiple of 16 bytes: a padded copy takes a third of the time",
    "products/4096x11008x4096_NN": "the stores of 128 x 256 tiles are exposed, and blocks share no copies (multicast)",
    "products/4096x4096x4096_NN_bias_gelu": "the two warpgroups that multiply also compute the gelu: 17 us beyond the product",
    "attention/sdpa_fwd:b4_h16_s2048_d128": "softmax and products of a warpgroup overlap by one tile",
    "attention/sdpa_fwd:b1_h16_s8192_d128": "softmax and products of a warpgroup overlap by one tile",
    "attention/sdpa_bwd:b4_h16_s2048_d128": SEVEN,
    "attention/sdpa_bwd:b1_h16_s8192_d128": SEVEN,
    "attention/sdpa_causal_fwd:b4_h16_s2048_d128": MASKED,
    "attention/sdpa_causal_fwd:b1_h16_s8192_d128": MASKED,
    "attention/sdpa_causal_bwd:b4_h16_s2048_d128": f"{MASKED}; {SEVEN}",
    "attention/sdpa_causal_bwd:b1_h16_s8192_d128": f"{MASKED}; {SEVEN}",
    "bert/bert_train_do10:b16_s512": "12 kernels of 260 to 290 us draw masks of attention; threefry alone would take some 170",
    "gpt/gpt_train:l6_h512_b16_s512": "measured before masks were kept as words: predicted 10.0 ms then, 7.5 now",
    "resnet/resnet50_train:b64_r224": "the first layer and its gradient (3 channels) are cuDNN's: 0.79 of 12.4 ms; 1x1 gradients read unaligned windows",
    "loops/cartpole_policy:2048": "f32 at HIGHEST: multiply-adds, no tensor cores",
    "loops/cartpole_policy:131072": "f32 at HIGHEST: multiply-adds, no tensor cores",
    "loops/lstm_scan:32x256x1000": "two barriers over all blocks in each of 1,000 steps",
    "compile/bert_train_do10:b16_s512": "388 kernels by NVRTC; XLA took 30 s on this host and 13 to 17 on others",
}
