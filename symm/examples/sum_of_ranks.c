// sum_of_ranks.cpp in C: two ranks, threads of this program, add up one buffer from each.

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <symm.h>

enum { kRanks = 2, kCount = 1000 };

static void check(symm_result result) {
    if (result != SYMM_SUCCESS) {
        fprintf(stderr, "%s: %s\n", symm_result_name(result), symm_last_error());
        exit(1);
    }
}

static void* add_up(void* argument) {
    const int rank = (int)(intptr_t)argument;
    symm_comm* comm = NULL;
    void* window = NULL;
    float values[kCount];
    check(symm_comm_create(&comm, rank, kRanks, "sum_of_ranks", NULL));
    check(symm_window_allocate(comm, sizeof values, &window));
    for (int i = 0; i < kCount; ++i) {
        values[i] = (float)(rank + 1);
    }
    check(symm_copy(comm, window, values, sizeof values));
    check(symm_all_reduce(comm, window, window, kCount, SYMM_FLOAT, SYMM_SUM,
                          symm_comm_stream(comm)));
    check(symm_comm_synchronize(comm, symm_comm_stream(comm)));
    check(symm_copy(comm, values, window, sizeof values));
    for (int i = 0; i < kCount; ++i) {
        if (values[i] != 3.0F) {
            fprintf(stderr, "a sum is wrong\n");
            exit(1);
        }
    }
    check(symm_comm_destroy(comm));
    return NULL;
}

int main(void) {
    pthread_t threads[kRanks];
    for (int rank = 0; rank < kRanks; ++rank) {
        if (pthread_create(&threads[rank], NULL, add_up, (void*)(intptr_t)rank) != 0) {
            return 1;
        }
    }
    for (int rank = 0; rank < kRanks; ++rank) {
        pthread_join(threads[rank], NULL);
    }
    printf("%d sums of %d ranks are right: 1 + 2 = 3\n", kCount, kRanks);
    return 0;
}
