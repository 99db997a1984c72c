#pragma once
/// \file
/// Records what kernels and the copy engine do to the ranks' memory (README.md). For ranks that are
/// threads of one process.

#include <cuda.h>

#include <cstddef>
#include <string>
#include <vector>

namespace symm::show {

/// A part of a rank's memory.
struct Place {
    std::string name;
    int rank;
    CUdeviceptr address;
    std::size_t bytes;
    int sender = -1;  ///< The only peer that stores here, if there is one.
};

/// What the calling thread queues is this rank's.
void set_rank(int rank);
/// What is queued from now on is recorded: all accesses of these places, except loads of a rank's
/// own memory that return the same as before. If places overlap, the first one counts.
void start_recording(std::vector<Place> places);
/// All that was queued must have ended. Returns an array in JSON, in the order of what happened:
///
/// | what           | rank | number | at             | offset          | words               |
/// |----------------|------|--------|----------------|-----------------|---------------------|
/// | begin, end     | its  | thread | copies queued before its kernel  |  |                     |
/// | load           | its  | thread | place          | in it, in bytes | as they were loaded |
/// | store, release | its  | thread | place          | in it, in bytes | as they were stored |
/// | arrive, leave  | its  | thread | block          | number of its sync |                  |
/// | queue          | its  | copy   | source's place | in it, in bytes | as they are then    |
/// | copy           | -1   | copy   | target's place | in it, in bytes | as they were copied |
std::string end_recording();

}  // namespace symm::show
