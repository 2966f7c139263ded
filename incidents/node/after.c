#define FIXED
#include "before.c"
