// What loops.c asks of functions.c.
#include <stddef.h>

typedef void (*function_run)(void);

// Fills the arguments of a function's loop and returns that; NULL if there is none of this name.
function_run function_named(const char *name, size_t count);
// A result of the loop that was run last.
double function_result(size_t i);
