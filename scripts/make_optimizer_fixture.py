#!/usr/bin/env python3
"""Makes tests/fixtures/optimizers.safetensors: ten updates by PyTorch's optimizers, in double, for optim_test.cpp.

Needs: pip install torch numpy safetensors
"""
import pathlib

import torch
from safetensors.torch import save_file

SIZE, STEPS = 19, 10  # more than one SIMD vector and a rest
torch.manual_seed(1)
start = torch.randn(SIZE, dtype=torch.float64)
gradients = torch.randn(STEPS, SIZE, dtype=torch.float64) * torch.logspace(-4, 2, SIZE, dtype=torch.float64)
gradients[:, 3] = 0.0  # a parameter that is never used
rates = [0.1 / (step + 1) for step in range(STEPS)]

# The names are those of the cases in optim_test.cpp.
adam = {"betas": (0.9, 0.98), "eps": 1e-9}
cases = {
    "sgd": lambda p: torch.optim.SGD(p, lr=1.0),
    "sgd_momentum_decay": lambda p: torch.optim.SGD(p, lr=1.0, momentum=0.9, weight_decay=0.1),
    "adam": lambda p: torch.optim.Adam(p, lr=1.0, **adam),
    "adam_decay": lambda p: torch.optim.Adam(p, lr=1.0, weight_decay=0.1, **adam),
    "adamw_decay": lambda p: torch.optim.AdamW(p, lr=1.0, weight_decay=0.1, **adam),
}
tensors = {"start": start, "gradients": gradients, "rates": torch.tensor(rates, dtype=torch.float64)}
for name, make in cases.items():
    parameter = torch.nn.Parameter(start.clone())
    optimizer = make([parameter])
    rows = []
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = rates[step]
        parameter.grad = gradients[step].clone()
        optimizer.step()
        rows.append(parameter.detach().clone())
    tensors[name] = torch.stack(rows)
target = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "optimizers.safetensors"
save_file(tensors, target)
