// Only here so that the precompiled torch/torch.h has a target of its own.
