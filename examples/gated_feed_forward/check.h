// The proof that this project's gradients are right.
#pragma once

/// Checks the op and the layer against finite differences, prints a table, returns 0 if all is right, else 1.
int check_gradients();
