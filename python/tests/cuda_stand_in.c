// Stands in for CUDA's runtime as far as pinning goes: it keeps what is registered, and checks that
// each piece of memory is still there when it is unregistered.
#include <stddef.h>

enum { MOST = 4096, ALREADY_REGISTERED = 712, NOT_REGISTERED = 713 };

static char *starts[MOST];
static size_t sizes[MOST];
static int n_registered, n_calls, device = 5, last_error, refuses, device_of_last = -1;

static int failed(int error) { return last_error = error; }

int cudaGetDevice(int *idx) { *idx = device; return 0; }
int cudaSetDevice(int idx) { return idx < 8 ? (device = idx, 0) : failed(101); }
int cudaGetLastError(void) { int error = last_error; last_error = 0; return error; }

int cudaHostRegister(void *start, size_t size, unsigned flags) {
    n_calls++;
    device_of_last = device;
    if (refuses || flags != 1 || n_registered == MOST) return failed(2);
    for (int at = 0; at < n_registered; at++)
        if ((char *)start < starts[at] + sizes[at] && starts[at] < (char *)start + size)
            return failed(ALREADY_REGISTERED);
    starts[n_registered] = start;
    sizes[n_registered++] = size;
    return 0;
}

int cudaHostUnregister(void *start) {
    for (int at = 0; at < n_registered; at++) {
        if (starts[at] != start) continue;
        // Faults if the memory is gone.
        volatile char last = starts[at][sizes[at] - 1];
        (void)last;
        n_registered--;
        starts[at] = starts[n_registered];
        sizes[at] = sizes[n_registered];
        return 0;
    }
    return failed(NOT_REGISTERED);
}

// For the test.
int is_registered(char *start, size_t size) {
    for (int at = 0; at < n_registered; at++)
        if (starts[at] <= start && start + size <= starts[at] + sizes[at]) return 1;
    return 0;
}
int registered(void) { return n_registered; }
int calls(void) { return n_calls; }
int current_device(void) { return device; }
int device_of_last_call(void) { return device_of_last; }
int error_left(void) { return last_error; }
void refuse(int whether) { refuses = whether; }
