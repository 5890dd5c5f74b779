// What loops.c asks of nests.c.
#include <stddef.h>

typedef void (*nest_run)(void);

// Fills the inputs of a program's loops and returns these; NULL if there is none of this name.
nest_run nest_named(const char *name, size_t size);
// A checksum of the results of the loops that were run last.
double nest_checksum(void);
