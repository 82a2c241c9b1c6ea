// A kernel that takes time and nothing else: work that is queued behind it begins later.
//
// Launch: one thread.

extern "C" __global__ void pause(const unsigned nanoseconds) { __nanosleep(nanoseconds); }
