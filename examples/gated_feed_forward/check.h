// The proof that this project's operation is right.
#pragma once

/// Checks values and gradients of silu_mul, prints a table, returns 0 if all is right, else 1.
int check_silu_mul();
