// The C interface, used by a program in C11: 06_allreduce_c_api_test CASE. Exit status 0 if all is
// right, else 1 and a line that says what is wrong. A case's ranks are threads or forked processes.

#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ranks.h"

enum { kCount = 1001 };

// An element of a rank's input.
static float element(int rank, size_t i) {
    return (float)(rank + 1) * (float)(i % 97 + 1);
}

static void fill(symm_comm* comm, float* device, size_t count, size_t first) {
    float* values = malloc(count * sizeof(float));
    for (size_t i = 0; i < count; ++i) {
        values[i] = element(symm_comm_rank(comm), first + i);
    }
    OK(symm_copy(comm, device, values, count * sizeof(float)));
    free(values);
}

static void poison(symm_comm* comm, float* device, size_t count) {
    float* values = malloc(count * sizeof(float));
    memset(values, 0xab, count * sizeof(float));
    OK(symm_copy(comm, device, values, count * sizeof(float)));
    free(values);
}

// Expects the sums of all ranks' elements from `first` on; or the elements of one rank.
static void expect(symm_comm* comm, const float* device, size_t count, size_t first, int of_rank) {
    float* values = malloc(count * sizeof(float));
    OK(symm_copy(comm, values, device, count * sizeof(float)));
    for (size_t i = 0; i < count; ++i) {
        float expected = 0;
        for (int rank = 0; rank < symm_comm_ranks(comm); ++rank) {
            expected += of_rank < 0 || of_rank == rank ? element(rank, first + i) : 0;
        }
        if (values[i] != expected) {
            fprintf(stderr, "element %zu of rank %d is %g, not %g\n", i, symm_comm_rank(comm),
                    (double)values[i], (double)expected);
            exit(1);
        }
    }
    free(values);
}

static void refuse_rms_norm(symm_comm* comm, symm_rms_norm call) {
    const symm_result bad = SYMM_ERROR_INVALID_ARGUMENT;
    const symm_rms_norm right = call;
    FAILS(symm_all_reduce_rms_norm(comm, NULL, NULL), bad, "call is a null pointer");
    call.size = 0;
    FAILS(symm_all_reduce_rms_norm(comm, &call, NULL), bad, "sizeof(symm_rms_norm)");
    call = right;
    call.hidden = 500;
    FAILS(symm_all_reduce_rms_norm(comm, &call, NULL), bad, "512 to 16384 elements");
    call = right;
    call.weight_type = SYMM_HALF;
    FAILS(symm_all_reduce_rms_norm(comm, &call, NULL), bad, "or SYMM_FLOAT, not 6");
    call = right;
    call.out_type = SYMM_UINT8;
    FAILS(symm_all_reduce_rms_norm(comm, &call, NULL), bad, "or SYMM_FLOAT8_E4M3, not 1");
    call.out_type = SYMM_FLOAT8_E4M3;
    FAILS(symm_all_reduce_rms_norm(comm, &call, NULL), bad, "needs an out_scale");
    call = right;
    call.out_scale = call.weight;
    FAILS(symm_all_reduce_rms_norm(comm, &call, NULL), bad, "for no other out_type");
    FAILS(symm_all_reduce(comm, call.x, call.out, 4, SYMM_FLOAT8_E4M3, SYMM_SUM, NULL), bad,
          "10 is not a valid DataType");
}

// No residual, and every element of a row alike: out is 1 + 1 + the bias 0.5, divided by 0.625.
static void use_float8(symm_comm* comm, symm_rms_norm call, float* values) {
    const symm_stream stream = symm_comm_stream(comm);
    const size_t count = (size_t)call.rows * call.hidden;
    float* const more = call.residual;  // which is not used as that
    const float scale = 0.625F;
    unsigned char seen[512];
    CHECK(call.hidden == sizeof(seen));
    for (size_t i = 0; i < count; ++i) {
        values[i] = (float)(1 << i / call.hidden);
    }
    OK(symm_copy(comm, (void*)call.x, values, count * sizeof(float)));
    for (unsigned i = 0; i < call.hidden; ++i) {
        values[i] = 1;
        values[call.hidden + i] = 0.5F;
    }
    OK(symm_copy(comm, (void*)call.weight, values, call.hidden * sizeof(float)));
    OK(symm_copy(comm, more, &values[call.hidden], call.hidden * sizeof(float)));
    OK(symm_copy(comm, more + call.hidden, &scale, sizeof(scale)));
    call.residual = NULL;
    call.bias = more;
    call.out_scale = more + call.hidden;
    call.out_type = SYMM_FLOAT8_E4M3;
    call.weight_offset = 1;
    call.epsilon = 0;
    for (int round = 0; round < 2; ++round) {
        OK(symm_all_reduce_rms_norm(comm, &call, stream));
        OK(symm_comm_synchronize(comm, stream));
        for (unsigned row = 0; row < call.rows; ++row) {
            OK(symm_copy(comm, seen, (char*)call.out + (size_t)row * call.hidden, sizeof(seen)));
            for (unsigned i = 0; i < call.hidden; ++i) {
                CHECK(seen[i] == 0x48);  // 2^(9 - 7)
            }
        }
    }
}

// AllReduce with RMSNorm: refused in a capture, three times, refused, and to float8.
static void use_rms_norm(symm_comm* comm) {
    enum { kHidden = 512, kRows = 5, kElements = kRows * kHidden };
    const symm_stream stream = symm_comm_stream(comm);
    const int ranks = symm_comm_ranks(comm);
    void* window = NULL;
    OK(symm_window_allocate(comm, (3 * kElements + kHidden) * sizeof(float), &window));
    float *x = window, *residual = x + kElements, *out = residual + kElements;
    float *weight = out + kElements, values[kElements], results[kElements];
    int (*retain)(void**, int), (*make_current)(void*), (*release)(int);
    int (*begin)(symm_stream, int), (*end)(symm_stream, void**), (*destroy)(void*);
    *(void**)&retain = symm_driver_function("cuDevicePrimaryCtxRetain");
    *(void**)&make_current = symm_driver_function("cuCtxSetCurrent");
    *(void**)&release = symm_driver_function("cuDevicePrimaryCtxRelease");
    *(void**)&begin = symm_driver_function("cuStreamBeginCapture");
    *(void**)&end = symm_driver_function("cuStreamEndCapture");
    *(void**)&destroy = symm_driver_function("cuGraphDestroy");
    void *context = NULL, *graph = NULL;
    CHECK(retain(&context, symm_comm_device(comm)) == 0 && make_current(context) == 0);
    CHECK(begin(stream, 1) == 0);
    symm_rms_norm call = {.size = sizeof(call),
                          .x = x,
                          .residual = residual,
                          .out = out,
                          .weight = weight,
                          .rows = kRows,
                          .hidden = kHidden,
                          .type = SYMM_FLOAT,
                          .weight_type = SYMM_FLOAT,
                          .out_type = SYMM_FLOAT,
                          .epsilon = 5000};
    FAILS(symm_all_reduce_rms_norm(comm, &call, stream), SYMM_ERROR_INVALID_ARGUMENT,
          "cannot be captured");
    CHECK(end(stream, &graph) == 0 && destroy(graph) == 0 && make_current(NULL) == 0);
    CHECK(release(symm_comm_device(comm)) == 0);
    for (int i = 0; i < kHidden; ++i) {
        values[i] = (float)(1 + i % 3);
    }
    OK(symm_copy(comm, weight, values, kHidden * sizeof(float)));
    for (int round = 0; round < 3; ++round) {
        fill(comm, x, kElements, (size_t)round);
        for (int i = 0; i < kElements; ++i) {
            values[i] = (float)(i % 5 + round);
        }
        OK(symm_copy(comm, residual, values, sizeof(values)));
        poison(comm, out, kElements);
        OK(symm_all_reduce_rms_norm(comm, &call, stream));
        OK(symm_comm_synchronize(comm, stream));
        for (int i = 0; i < kElements; ++i) {
            for (int rank = 0; rank < ranks; ++rank) {
                values[i] += element(rank, (size_t)(round + i));
            }
        }
        OK(symm_copy(comm, results, residual, sizeof(results)));
        CHECK(memcmp(results, values, sizeof(values)) == 0);
        OK(symm_copy(comm, results, out, sizeof(results)));
        for (int row = 0; row < kRows; ++row) {
            double squares = 0;
            for (int i = 0; i < kHidden; ++i) {
                squares += (double)values[row * kHidden + i] * values[row * kHidden + i];
            }
            const double rms = sqrt(squares / kHidden + 5000);
            for (int i = 0; i < kHidden; ++i) {
                const double expected = values[row * kHidden + i] / rms * (1 + i % 3);
                CHECK(fabs(results[row * kHidden + i] - expected) <= 1e-5 * fabs(expected));
            }
        }
    }
    refuse_rms_norm(comm, call);
    use_float8(comm, call, values);
    OK(symm_window_release(comm, window));
}

// All collectives, several times, in windows and in registered memory.
static void use(symm_comm* comm) {
    const int rank = symm_comm_rank(comm);
    const size_t ranks = (size_t)symm_comm_ranks(comm);
    const symm_stream stream = symm_comm_stream(comm);
    const size_t bytes = kCount * ranks * sizeof(float);
    void *in_window = NULL, *out_window = NULL, *alias = NULL;
    OK(symm_window_allocate(comm, bytes, &in_window));
    OK(symm_window_allocate(comm, bytes, &out_window));
    float *in = in_window, *out = out_window;
    for (int round = 0; round < 3; ++round) {
        fill(comm, in, kCount * ranks, 0);
        poison(comm, out, kCount * ranks);
        OK(symm_all_reduce(comm, in, out, kCount * ranks, SYMM_FLOAT, SYMM_SUM, stream));
        OK(symm_comm_synchronize(comm, stream));
        expect(comm, out, kCount * ranks, 0, -1);

        poison(comm, out, kCount);
        OK(symm_reduce_scatter(comm, in, out, kCount, SYMM_FLOAT, SYMM_SUM, stream));
        OK(symm_comm_synchronize(comm, stream));
        expect(comm, out, kCount, kCount * (size_t)rank, -1);

        poison(comm, out, kCount * ranks);
        OK(symm_all_gather(comm, in, out, kCount, SYMM_FLOAT, stream));
        OK(symm_comm_synchronize(comm, stream));
        for (size_t r = 0; r < ranks; ++r) {
            expect(comm, out + r * kCount, kCount, 0, (int)r);
        }

        for (int root = 0; root < (int)ranks; ++root) {
            const int is_root = rank == root;
            poison(comm, out, kCount);
            OK(symm_broadcast(comm, is_root ? in : NULL, out, kCount, SYMM_FLOAT, root, stream));
            OK(symm_comm_synchronize(comm, stream));
            expect(comm, out, kCount, 0, root);
            poison(comm, out, kCount);
            OK(symm_reduce(comm, in, is_root ? out : NULL, kCount, SYMM_FLOAT, SYMM_SUM, root,
                           stream));
            OK(symm_comm_synchronize(comm, stream));
            if (is_root) {
                expect(comm, out, kCount, 0, -1);
            }
        }
    }
    FAILS(symm_broadcast(comm, in, out, kCount, SYMM_FLOAT, (int)ranks, stream),
          SYMM_ERROR_INVALID_ARGUMENT, "root");
    // In a stream that is not the communicator's: the calling thread's default stream.
    const symm_stream per_thread = (symm_stream)2;
    poison(comm, out, kCount);
    OK(symm_all_reduce(comm, in, out, kCount, SYMM_FLOAT, SYMM_MAX, per_thread));
    OK(symm_comm_synchronize(comm, per_thread));
    expect(comm, out, kCount, 0, (int)ranks - 1);
    // Memory that the ranks have already: here, another window's.
    OK(symm_window_register(comm, in, bytes, &alias));
    fill(comm, in, kCount, 0);
    OK(symm_all_reduce(comm, in, in, kCount, SYMM_FLOAT, SYMM_SUM, stream));
    OK(symm_comm_synchronize(comm, stream));
    expect(comm, alias, kCount, 0, -1);
    OK(symm_window_release(comm, alias));
    OK(symm_window_release(comm, out));
    FAILS(symm_window_release(comm, out), SYMM_ERROR_INVALID_ARGUMENT, "window");
    use_rms_norm(comm);
    OK(symm_comm_async_error(comm));
}

// ---- Ranks as threads.

struct thread {
    int rank, ranks;
    const char* name;
    void (*body)(symm_comm*);
};

static void* run_thread(void* argument) {
    const struct thread* self = argument;
    symm_comm* comm = NULL;
    OK(symm_comm_create(&comm, self->rank, self->ranks, self->name, NULL));
    CHECK(symm_comm_rank(comm) == self->rank && symm_comm_ranks(comm) == self->ranks);
    CHECK(symm_comm_device(comm) >= 0 && symm_comm_stream(comm) != NULL);
    self->body(comm);
    OK(symm_comm_destroy(comm));
    return NULL;
}

static void run_threads(int ranks, void (*body)(symm_comm*)) {
    pthread_t threads[kMaxRanks];
    struct thread selves[kMaxRanks];
    char name[64];
    snprintf(name, sizeof name, "c test of %d", (int)getpid());
    for (int r = 0; r < ranks; ++r) {
        selves[r] = (struct thread){r, ranks, name, body};
        CHECK(pthread_create(&threads[r], NULL, run_thread, &selves[r]) == 0);
    }
    for (int r = 0; r < ranks; ++r) {
        CHECK(pthread_join(threads[r], NULL) == 0);
    }
}

// Threads share one range of addresses: a rank's window follows that of the rank before it.
static uintptr_t addresses[kMaxRanks];
static void keep_address(symm_comm* comm) {
    void* window = NULL;
    OK(symm_window_allocate(comm, 4096, &window));
    addresses[symm_comm_rank(comm)] = (uintptr_t)window;
}

static void threads(void) {
    int emulated = 0;
    OK(symm_is_emulated(&emulated));
    CHECK(symm_version() == SYMM_VERSION);
    for (int ranks = 1; ranks <= 3; ++ranks) {  // under the same name, one after the other
        run_threads(ranks, use);
    }
    run_threads(3, keep_address);
    CHECK(addresses[1] > addresses[0] &&
          addresses[2] - addresses[1] == addresses[1] - addresses[0]);
}

// ---- Ranks as processes.

static void use_by_allgather(struct process* self) {
    symm_comm* comm = met(self);
    use(comm);
    OK(symm_comm_destroy(comm));
}
static void by_allgather(void) {
    expect_all_exit_0(1, use_by_allgather);
    expect_all_exit_0(3, use_by_allgather);
}

static void use_by_launcher(struct process* self) {
    char text[16];
    snprintf(text, sizeof text, "%d", self->rank);
    setenv("RANK", text, 1);
    snprintf(text, sizeof text, "%d", self->ranks);
    setenv("WORLD_SIZE", text, 1);
    unsetenv("SYMM_LAUNCHER");
    symm_comm* comm = NULL;
    OK(symm_comm_create_from_launcher(&comm, NULL));
    use(comm);
    OK(symm_comm_destroy(comm));
}
static void by_launcher(void) {
    char name[64];
    snprintf(name, sizeof name, "c test of %d", (int)getpid());
    setenv("SYMM_BOOTSTRAP", name, 1);
    expect_all_exit_0(3, use_by_launcher);
}

// ---- Bad input.

static int fails(void* context, const void* mine, void* all, size_t bytes) {
    (void)context, (void)mine, (void)all, (void)bytes;
    return 7;
}
// As if rank 0 were at both places.
static int repeats(void* context, const void* mine, void* all, size_t bytes) {
    (void)context;
    memcpy(all, mine, bytes);
    memcpy((char*)all + bytes, mine, bytes);
    return 0;
}
// As if rank 1 were on another machine.
static int from_afar(void* context, const void* mine, void* all, size_t bytes) {
    repeats(context, mine, all, bytes);
    ((char*)all)[bytes + 8] = 1;    // its rank
    ((char*)all)[bytes + 16] ^= 1;  // its host
    return 0;
}

static void refuse(symm_comm* comm) {
    const symm_stream stream = symm_comm_stream(comm);
    void* window = NULL;
    OK(symm_window_allocate(comm, 4096, &window));
    const char* in = window;
    const symm_result refused = SYMM_ERROR_INVALID_ARGUMENT;
    FAILS(symm_all_reduce(comm, NULL, window, 1, SYMM_FLOAT, SYMM_SUM, stream), refused, "null");
    FAILS(symm_all_reduce(comm, in + 1, window, 1, SYMM_FLOAT, SYMM_SUM, stream), refused, "align");
    FAILS(symm_all_reduce(comm, in, window, 1, (symm_type)10, SYMM_SUM, stream), refused,
          "DataType");
    FAILS(symm_all_reduce(comm, in, window, 1, SYMM_FLOAT, (symm_op)5, stream), refused,
          "ReduceOp");
    FAILS(symm_all_reduce(comm, in, window, 1, SYMM_FLOAT, (symm_op)-1, stream), refused,
          "ReduceOp");
    FAILS(symm_all_reduce(comm, in, (char*)window + 4, 8, SYMM_FLOAT, SYMM_SUM, stream), refused,
          "overlap");
    FAILS(symm_all_reduce(comm, in, window, SIZE_MAX, SYMM_FLOAT, SYMM_SUM, stream), refused,
          "memory");
    void* other = NULL;
    FAILS(symm_window_allocate(comm, 0, &other), refused, "0");
    FAILS(symm_window_allocate(comm, 4096, NULL), refused, "window is a null pointer");
    FAILS(symm_window_release(comm, (char*)window + 1), refused, "window");
    static char plain[4096];  // not from cuMemCreate, so that peers cannot map it
    CHECK(symm_window_register(comm, plain, sizeof plain, &other) != SYMM_SUCCESS);
    CHECK(strlen(symm_last_error()) > 20);
    use(comm);  // it still works
}

// A destroyed communicator, also when others have been created since.
static void use_destroyed(void) {
    const symm_result bad = SYMM_ERROR_INVALID_ARGUMENT;
    symm_comm *first = NULL, *second = NULL;
    OK(symm_comm_create(&first, 0, 1, "first", NULL));
    OK(symm_comm_destroy(first));
    OK(symm_comm_create(&second, 0, 1, "second", NULL));
    void* window = NULL;
    OK(symm_window_allocate(second, 4096, &window));
    FAILS(symm_comm_destroy(first), bad, "comm was destroyed");
    FAILS(symm_comm_abort(first), bad, "comm was destroyed");
    FAILS(symm_comm_async_error(first), bad, "comm was destroyed");
    FAILS(symm_all_reduce(first, window, window, 1, SYMM_FLOAT, SYMM_SUM, NULL), bad,
          "comm was destroyed");
    FAILS(symm_window_allocate(first, 4096, &window), bad, "comm was destroyed");
    FAILS(symm_comm_synchronize(first, NULL), bad, "comm was destroyed");
    CHECK(symm_comm_rank(first) == -1 && symm_comm_stream(first) == NULL);
    OK(symm_all_reduce(second, window, window, 1, SYMM_FLOAT, SYMM_SUM, symm_comm_stream(second)));
    OK(symm_comm_synchronize(second, symm_comm_stream(second)));
    OK(symm_comm_destroy(second));
    FAILS(symm_comm_destroy(second), bad, "comm was destroyed");
}

static void refused(void) {
    symm_comm* comm = (symm_comm*)1;
    const symm_result bad = SYMM_ERROR_INVALID_ARGUMENT;
    FAILS(symm_comm_create(NULL, 0, 1, "x", NULL), bad, "comm is a null pointer");
    FAILS(symm_comm_create(&comm, 0, 1, NULL, NULL), bad, "name is a null pointer");
    CHECK(comm == NULL);
    FAILS(symm_comm_create(&comm, 2, 2, "x", NULL), bad, "no rank 2 of 2");
    FAILS(symm_comm_create(&comm, 0, 65, "x", NULL), bad, "1 to 64");
    FAILS(symm_comm_create(&comm, -1, 0, "x", NULL), bad, "no rank -1 of 0");
    FAILS(symm_comm_create(&comm, 0, 17, "x", &(symm_options){0}), bad, "SYMM_OPTIONS_INIT");
    symm_options options = SYMM_OPTIONS_INIT;
    options.timeout = -1;
    FAILS(symm_comm_create(&comm, 0, 1, "x", &options), bad, "timeout");
    options = (symm_options)SYMM_OPTIONS_INIT;
    options.device = 99;
    FAILS(symm_comm_create(&comm, 0, 1, "x", &options), SYMM_ERROR_CUDA, "99");
    FAILS(symm_comm_create_from_launcher(&comm, NULL), bad, "no launcher");
    FAILS(symm_comm_create_by_allgather(&comm, 0, 2, NULL, NULL, NULL), bad, "allgather is a null");
    FAILS(symm_comm_create_by_allgather(&comm, 0, 2, fails, NULL, NULL), SYMM_ERROR_FAILED,
          "allgather returned 7 on rank 0");
    FAILS(symm_comm_create_by_allgather(&comm, 0, 2, repeats, NULL, NULL), bad,
          "not from rank 1 of 2");
    FAILS(symm_comm_create_by_allgather(&comm, 0, 2, from_afar, NULL, NULL), bad,
          "different machines");
    FAILS(symm_is_emulated(NULL), bad, "null pointer");
    CHECK(symm_comm_rank(NULL) == -1 && symm_comm_ranks(NULL) == -1);
    CHECK(symm_comm_device(NULL) == -1 && symm_comm_stream(NULL) == NULL);
    FAILS(symm_all_reduce(NULL, NULL, NULL, 0, SYMM_FLOAT, SYMM_SUM, NULL), bad, "comm is a null");
    FAILS(symm_comm_synchronize(NULL, NULL), bad, "comm is a null");
    FAILS(symm_comm_abort(NULL), bad, "comm is a null");
    OK(symm_comm_destroy(NULL));
    use_destroyed();
    CHECK(strcmp(symm_result_name(SYMM_ERROR_RANK), "SYMM_ERROR_RANK") == 0);
    CHECK(strstr(symm_result_name((symm_result)99), "unknown") != NULL);
    setenv("SYMM_CHECK", "2", 1);
    FAILS(symm_comm_create(&comm, 0, 2, "x", NULL), bad, "SYMM_CHECK=2");
    unsetenv("SYMM_CHECK");
    run_threads(2, refuse);
}

// ---- Ranks that do not come, fail or end.

// Two ranks are threads of one process, and one is a process of its own.
static void* join_as_thread(void* argument) {
    struct process* self = argument;
    symm_comm* comm = NULL;
    FAILS(symm_comm_create(&comm, self->rank, 3, getenv("SYMM_TEST_NAME"), NULL),
          SYMM_ERROR_INVALID_ARGUMENT, "3 ranks are in 2 processes");
    return NULL;
}
static void mix(struct process* self) {
    struct process second = {2, 3, NULL};
    pthread_t thread;
    if (self->rank == 1) {
        CHECK(pthread_create(&thread, NULL, join_as_thread, &second) == 0);
    }
    join_as_thread(self);
    if (self->rank == 1) {
        CHECK(pthread_join(thread, NULL) == 0);
    }
}
static void not_met(void) {
    char name[64];
    snprintf(name, sizeof name, "c test of %d", (int)getpid());
    setenv("SYMM_TEST_NAME", name, 1);
    expect_all_exit_0(2, mix);
    setenv("SYMM_TIMEOUT", "1", 1);
    symm_comm* comm = NULL;
    FAILS(symm_comm_create(&comm, 0, 3, name, NULL), SYMM_ERROR_RANK, "ranks 1, 2 of 3");
    FAILS(symm_comm_create(&comm, 2, 3, name, NULL), SYMM_ERROR_RANK, "no word from rank 0");
}

// A window does not fit: all ranks fail, and can go on.
static void fill_up(symm_comm* comm) {
    void* window = NULL;
    FAILS(symm_window_allocate(comm, (size_t)1 << 30, &window), SYMM_ERROR_CUDA, "OUT_OF_MEMORY");
    use(comm);
}
// A rank fails during creation: the others are told why.
static void fail_to_create(struct process* self) {
    symm_comm* comm = NULL;
    if (self->rank == 1) {
        setenv("SYMM_EMU_FAIL", "cuStreamCreate:1:CUDA_ERROR_OUT_OF_MEMORY", 1);
    }
    FAILS(symm_comm_create_by_allgather(&comm, self->rank, self->ranks, allgather, self, NULL),
          self->rank == 1 ? SYMM_ERROR_CUDA : SYMM_ERROR_RANK,
          self->rank == 1 ? "cuStreamCreate" : "rank 1 failed: cuStreamCreate");
}
static void failed_call(void) {
    expect_all_exit_0(3, fail_to_create);
    setenv("SYMM_EMU_MEMORY", "64M", 1);
    run_threads(2, fill_up);
}

// Rank 0 makes a call that rank 1 never makes, and another thread aborts it. Rank 1 is told.
static void* abort_soon(void* comm) {
    sleep_ms(200);
    OK(symm_comm_async_error(comm));
    OK(symm_comm_abort(comm));
    return NULL;
}
static void abort_call(struct process* self) {
    const double start = now();
    symm_comm* comm = met(self);
    const symm_stream stream = symm_comm_stream(comm);
    void* window = NULL;
    OK(symm_window_allocate(comm, 4096, &window));
    if (self->rank == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, abort_soon, comm) == 0);
        OK(symm_all_reduce(comm, window, window, kCount, SYMM_FLOAT, SYMM_SUM, stream));
        FAILS(symm_comm_synchronize(comm, stream), SYMM_ERROR_FAILED, "aborted");
        FAILS(symm_comm_async_error(comm), SYMM_ERROR_FAILED, "aborted");
        CHECK(pthread_join(thread, NULL) == 0);
    } else {
        while (symm_comm_async_error(comm) == SYMM_SUCCESS && now() - start < 60) {
            sleep_ms(10);
        }
        FAILS(symm_comm_async_error(comm), SYMM_ERROR_RANK, "rank 0 failed: it was aborted");
    }
    OK(symm_comm_destroy(comm));
    CHECK(now() - start < 60);
}
// The same for a call that waits on the host.
static void* abort_at_once(void* comm) {
    sleep_ms(200);
    OK(symm_comm_abort(comm));
    return NULL;
}
static void abort_wait(struct process* self) {
    const double start = now();
    symm_comm* comm = met(self);
    if (self->rank == 0) {
        pthread_t thread;
        void* window = NULL;
        CHECK(pthread_create(&thread, NULL, abort_at_once, comm) == 0);
        FAILS(symm_window_allocate(comm, 4096, &window), SYMM_ERROR_RANK, "aborted");
        CHECK(pthread_join(thread, NULL) == 0);
    } else {
        while (symm_comm_async_error(comm) == SYMM_SUCCESS && now() - start < 60) {
            sleep_ms(10);
        }
        FAILS(symm_comm_async_error(comm), SYMM_ERROR_RANK, "rank 0 failed: it was aborted");
    }
    OK(symm_comm_destroy(comm));
    CHECK(now() - start < 20);  // not by SYMM_TIMEOUT
}
static void aborted(void) {
    expect_all_exit_0(2, abort_call);
    expect_all_exit_0(2, abort_wait);
}

// Marks after rank 0's calls are passed once rank 1 has made its own, and not before.
static pthread_barrier_t marked;
static void mark_calls(symm_comm* comm) {
    const symm_stream stream = symm_comm_stream(comm);
    const int rank = symm_comm_rank(comm);
    void* window = NULL;
    OK(symm_window_allocate(comm, 4096, &window));
    size_t mark = 0, passed = 9;
    OK(symm_comm_passed(comm, &passed));
    CHECK(passed == 0);
    for (size_t i = 1; i <= 5; ++i) {
        if (rank == 1) {
            pthread_barrier_wait(&marked);
        }
        OK(symm_all_reduce(comm, window, window, kCount, SYMM_FLOAT, SYMM_SUM, stream));
        OK(symm_comm_mark(comm, stream, &mark));
        CHECK(mark == i);
        if (rank == 0) {
            OK(symm_comm_passed(comm, &passed));
            CHECK(passed == i - 1);
            pthread_barrier_wait(&marked);
        }
        OK(symm_comm_synchronize(comm, stream));
        OK(symm_comm_passed(comm, &passed));
        CHECK(passed == i);
    }
    FAILS(symm_comm_mark(comm, stream, NULL), SYMM_ERROR_INVALID_ARGUMENT, "mark is a null");
    FAILS(symm_comm_passed(comm, NULL), SYMM_ERROR_INVALID_ARGUMENT, "mark is a null");
    OK(symm_comm_follow(comm, stream, stream));
    OK(symm_comm_finish_within(comm, 60));
    FAILS(symm_comm_finish_within(comm, -1), SYMM_ERROR_INVALID_ARGUMENT, "-1 seconds");
    pthread_barrier_wait(&marked);
    if (rank == 0) {  // a call that rank 1 never makes
        OK(symm_all_reduce(comm, window, window, kCount, SYMM_FLOAT, SYMM_SUM, stream));
        FAILS(symm_comm_finish_within(comm, 0.01), SYMM_ERROR_FAILED, "aborted");
    }
    pthread_barrier_wait(&marked);
}
static void marks(void) {
    CHECK(pthread_barrier_init(&marked, NULL, 2) == 0);
    run_threads(2, mark_calls);
}

static void die(struct process* self) {
    const double start = now();
    symm_comm* comm = met(self);
    const symm_stream stream = symm_comm_stream(comm);
    void* window = NULL;
    OK(symm_window_allocate(comm, 4096, &window));
    OK(symm_all_reduce(comm, window, window, kCount, SYMM_FLOAT, SYMM_SUM, stream));
    OK(symm_comm_synchronize(comm, stream));
    if (self->rank == 1) {
        raise(SIGKILL);
    }
    OK(symm_all_reduce(comm, window, window, kCount, SYMM_FLOAT, SYMM_SUM, stream));
    FAILS(symm_comm_synchronize(comm, stream), SYMM_ERROR_RANK, "rank 1");
    FAILS(symm_comm_async_error(comm), SYMM_ERROR_RANK, "rank 1");
    OK(symm_comm_destroy(comm));
    CHECK(now() - start < 60);
}
static void killed(void) {
    int statuses[3];
    run_processes(3, die, statuses);
    CHECK(WIFSIGNALED(statuses[1]) && WTERMSIG(statuses[1]) == SIGKILL);
    CHECK(WIFEXITED(statuses[0]) && WEXITSTATUS(statuses[0]) == 0);
    CHECK(WIFEXITED(statuses[2]) && WEXITSTATUS(statuses[2]) == 0);
}

int main(int count, char** arguments) {
    const struct {
        const char* name;
        void (*run)(void);
    } cases[] = {{"threads", threads},      {"allgather", by_allgather},
                 {"launcher", by_launcher}, {"refused", refused},
                 {"not_met", not_met},      {"failed_call", failed_call},
                 {"aborted", aborted},      {"marks", marks},
                 {"killed", killed}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        if (count == 2 && strcmp(arguments[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    }
    fprintf(stderr,
            "usage: %s threads|allgather|launcher|refused|not_met|failed_call|aborted|"
            "marks|killed\n",
            arguments[0]);
    return 2;
}
